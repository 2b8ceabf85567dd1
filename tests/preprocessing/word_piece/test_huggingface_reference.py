"""`reference="huggingface"` against the `tokenizers` library, which is what transformers' fast BertTokenizer runs."""

import random
from importlib.metadata import version

import pytest
from library_tokens import assert_same

from keras_bert_layers.preprocessing import BertTokenizer, tables

tokenizers = pytest.importorskip("tokenizers", reason="keras-hub brings the tokenizers library")

SWITCHES = [(lowercase, strip) for lowercase in (True, False) for strip in (True, False)]
MADE_FROM = tables.made_from()["huggingface"]
RUNS_ON = f"tokenizers {version('tokenizers')}"


def normalizer(lowercase, strip_accents=None, split_chinese=True):
    return tokenizers.normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=split_chinese, strip_accents=strip_accents, lowercase=lowercase
    )


@pytest.fixture
def library(minilm):
    """The tokenizer.json of all-MiniLM-L6-v2 as the library reads it."""
    tokenizer = tokenizers.Tokenizer.from_file(str(minilm / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


@pytest.fixture
def library_of():
    """A function that makes the library's BERT tokenizer of a vocabulary, as transformers does."""

    def make(vocabulary, **switches):
        ids = {token: token_id for token_id, token in enumerate(vocabulary)}
        model = tokenizers.models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100)
        tokenizer = tokenizers.Tokenizer(model)
        tokenizer.normalizer = normalizer(**switches)
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        tokenizer.add_special_tokens([tokenizers.AddedToken(token, normalized=False) for token in special])
        return tokenizer

    return make


def ids_of(library, texts):
    return [encoding.ids for encoding in library.encode_batch_fast(texts, add_special_tokens=False)]


def check_every_scalar_value(tokenizer, library, differences):
    different = differences(lambda texts: tokenizer.tokenize(texts).to_list(), lambda texts: ids_of(library, texts))
    assert_none(different)


def assert_none(different):
    if different and MADE_FROM != RUNS_ON:
        pytest.xfail(f"The tables are of {MADE_FROM}, installed is {RUNS_ON}: {different} differ.")
    assert different == []


@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, False])
def test_every_scalar_value(lowercase, library, minilm, differences):
    library.normalizer = normalizer(lowercase)
    tokenizer = BertTokenizer(minilm / "vocab.txt", lowercase, reference="huggingface")
    check_every_scalar_value(tokenizer, library, differences)


@pytest.mark.exhaustive
@pytest.mark.parametrize("context", ["ab{c}cd", "{c}", " {c} ", "a{c}{c}b"])
@pytest.mark.parametrize("name", ["uncased", "cased"])
def test_every_scalar_value_alone(name, context, library_of, shared_data):
    """Each context as a text of its own, under Google's published vocabularies."""
    path = shared_data / f"vocab/bert-base-{name}.txt"
    tokenizer = BertTokenizer(path, name == "uncased", reference="huggingface")
    vocabulary = tokenizer.get_config()["vocabulary"]
    scalars = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = [context.replace("{c}", c) for c in scalars]
    expected = ids_of(library_of(vocabulary, lowercase=name == "uncased"), texts)
    pairs = zip(scalars, tokenizer.tokenize(texts).to_list(), expected, strict=True)
    assert_none([f"U+{ord(c):04X}" for c, a, b in pairs if a != b])


@pytest.mark.exhaustive
@pytest.mark.parametrize(("lowercase", "strip_accents"), SWITCHES)
def test_every_scalar_value_with_switches_apart(lowercase, strip_accents, library_of, rich_vocabulary, differences):
    library = library_of(rich_vocabulary, lowercase=lowercase, strip_accents=strip_accents)
    tokenizer = BertTokenizer(rich_vocabulary, lowercase, strip_accents=strip_accents, reference="huggingface")
    check_every_scalar_value(tokenizer, library, differences)


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize(("lowercase", "strip_accents"), SWITCHES)
@pytest.mark.parametrize("split_chinese", [True, False])
def test_hard_texts(lowercase, strip_accents, split_chinese, library_of, rich_vocabulary, hard_texts):
    """Ids and offsets; the library's offsets count characters."""
    switches = {"lowercase": lowercase, "strip_accents": strip_accents, "split_chinese": split_chinese}
    texts = hard_texts(seed=23, number=1200)
    tokenizer = BertTokenizer(rich_vocabulary, **switches, reference="huggingface")
    assert_same(tokenizer, library_of(rich_vocabulary, **switches), texts)


def test_ill_formed_bytes_are_skipped(library, minilm):
    """Also beside special tokens. The library takes text only: what is left of the bytes without the bad ones."""
    pieces = [b"[SEP]", b"[MASK]", b"\xff", b"\xed\xa0\x80", b"\xe2\x82", "\u03a3".encode(), b"ab", b" ", b"\x00", b"["]
    generator = random.Random(19)
    texts = [b"".join(generator.choices(pieces, k=generator.randrange(10))) for _ in range(2000)]
    ids, starts, ends = BertTokenizer(minilm / "vocab.txt", reference="huggingface").tokenize_with_offsets(texts)
    assert ids.to_list() == ids_of(library, [text.decode("utf-8", "ignore") for text in texts])
    for text, *rows in zip(texts, ids.to_list(), starts.to_list(), ends.to_list(), strict=True):
        cuts = [text[start:end] for token_id, start, end in zip(*rows, strict=True) if token_id in (102, 103)]
        assert set(cuts) <= {b"[SEP]", b"[MASK]"}


@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [True, False])
def test_real_texts(lowercase, library, minilm, real_texts):
    library.normalizer = normalizer(lowercase)
    tokenizer = BertTokenizer(minilm / "vocab.txt", lowercase, reference="huggingface")
    assert_same(tokenizer, library, real_texts(step=29))


@pytest.mark.exhaustive
@pytest.mark.parametrize("lowercase", [True, False])
def test_all_real_texts(lowercase, library, minilm, real_texts):
    library.normalizer = normalizer(lowercase)
    tokenizer = BertTokenizer(minilm / "vocab.txt", lowercase, reference="huggingface")
    assert_same(tokenizer, library, real_texts(step=1))
