"""Added tokens against the `tokenizers` library: ids and offsets, for random sets of tokens with random flags."""

import contextlib
import random
import warnings

import keras
import pytest
import random_tokens
from hard_texts import HARD_TOKENS

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import AddedToken, BertTokenizer

tokenizers = pytest.importorskip("tokenizers", reason="keras-hub brings the tokenizers library")

TOKENS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b", "co", "##vid", "the", "new", "york", "中", "国"),
    *("[", "]", "<", ">", "e", "-", "19", ".", "ก", "##ก"),
]


@pytest.fixture(scope="module")
def letters(minilm_vocabulary):
    """A small vocabulary of single characters, pieces and hard tokens, so that words are seldom unknown."""
    single = [token for token in minilm_vocabulary if len(token.removeprefix("##")) == 1]
    return list(dict.fromkeys([*TOKENS, *single, *HARD_TOKENS]))


def library(vocabulary, tokens, *, lowercase=True, strip_accents=None, split_chinese=True):
    ids = {token: token_id for token_id, token in enumerate(vocabulary)}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = tokenizers.normalizers.BertNormalizer(
        handle_chinese_chars=split_chinese, strip_accents=strip_accents, lowercase=lowercase
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens([tokenizers.AddedToken(token, normalized=False) for token in TOKENS[:5]])
    made.add_tokens([tokenizers.AddedToken(**AddedToken.of(token).get_config()) for token in tokens])
    return made


def differences(vocabulary, tokens, texts, **switches):
    """The texts for which ids, with or without offsets, or the offsets differ from the library's."""
    tokenizer = BertTokenizer(vocabulary, **switches, reference="huggingface", added_tokens=tokens)
    expected = library(vocabulary, tokens, **switches).encode_batch(texts, add_special_tokens=False)
    found = [part.to_list() for part in tokenizer.tokenize_with_offsets(texts)]
    different = []
    for text, encoding, plain, ids, *offsets in zip(
        texts, expected, tokenizer.tokenize(texts).to_list(), *found, strict=True
    ):
        places = [0]
        for character in text:
            places.append(places[-1] + len(character.encode()))
        wanted = [(places[start], places[end]) for start, end in encoding.offsets]
        if not (plain == ids == encoding.ids and list(zip(*offsets, strict=True)) == wanted):
            different.append(text)
    return different


def check_random_sets(seed, num_sets, num_texts, vocabulary, hard_texts):
    generator = random.Random(seed)
    hard = [text[:300] for text in hard_texts(seed, 300)] + ["x"]
    for _ in range(num_sets):
        switches = {
            "lowercase": generator.random() < 0.6,
            "strip_accents": generator.choice([None, True, False]),
            "split_chinese": generator.random() < 0.8,
        }
        tokens = random_tokens.random_tokens(generator)
        texts = random_tokens.random_texts(generator, tokens, hard, num_texts)
        with contextlib.suppress(ValueError):  # a combination that is refused: see test_wrong_arguments
            assert differences(vocabulary, tokens, texts, **switches) == [], (tokens, switches)


@pytest.mark.slow
def test_random_sets(letters, hard_texts):
    check_random_sets(3, 3, 300, letters, hard_texts)


@pytest.mark.exhaustive
def test_many_random_sets(letters, hard_texts):
    check_random_sets(4, 400, 250, letters, hard_texts)


@pytest.mark.slow
def test_flags_together():
    tokens = [
        AddedToken("<e>", special=True, rstrip=True),
        "covid",
        AddedToken("new york", lstrip=True),
        AddedToken("co", single_word=True),
        "国",
    ]
    texts = [
        "a<e> <E>",
        "a new york  b new\u3000york",
        "co covid COVID aco co- co\u0301 _co",
        "中国co国 a 国国",
        "the a b",
    ]
    assert differences(TOKENS, tokens, texts) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("tokens", "texts"),
    [
        ([AddedToken("<e>", special=True)], ["a<e>b", "<e><e>", "<E>", " <e>", "<e", "e>"]),
        (["covid"], ["covid COVID xCovidx co\u0301vid \u0441ovid", "cov id", "covi"]),
        (["covid", AddedToken("COVID", normalized=False)], ["covid COVID Covid"]),
        (
            [AddedToken("new york", lstrip=True, rstrip=True)],
            ["a new york  b", " New York", "new\u3000york中", "中New York国"],
        ),
        ([AddedToken("co", single_word=True)], ["co covid aco co- _co co1 é co", "中co中"]),
        (
            [AddedToken("a", single_word=True, normalized=False), AddedToken("ab", normalized=False)],
            ["ab aab a ba b a"],
        ),
        (["中国", "国"], ["中国 中国国", "a中国b中 国"]),
        ([" "], ["a b", "中", "ab"]),
        (["\u0301"], ["e\u0301", "a"]),
        ([AddedToken("[MASK]", lstrip=True, special=True), "[mask]"], ["a [MASK] [mask] [Mask]"]),
    ],
)
def test_flags(tokens, texts):
    assert differences(TOKENS, tokens, texts) == []


@pytest.mark.slow
def test_tokens_without_a_trace_on_large_batches(letters):
    texts = ["the a b", "", "new covid york", "covid" * 3, "ก" * 101] * 60
    assert differences(letters, ["covid"], texts) == []
    assert differences(letters, ["covid", AddedToken("<e>", special=True)], texts) == []


@pytest.fixture(scope="module")
def tokenizer():
    tokens = [AddedToken("<e>", special=True), {"content": "covid", "single_word": True}, "b"]
    return BertTokenizer(TOKENS, reference="huggingface", added_tokens=tokens)


def test_ids(tokenizer):
    size = len(TOKENS)
    assert tokenizer.vocabulary_size() == size + 2
    assert [tokenizer.token_to_id(token) for token in ("<e>", "covid", "b")] == [size, size + 1, TOKENS.index("b")]
    assert [tokenizer.id_to_token(token_id) for token_id in (size, size + 1)] == ["<e>", "covid"]
    assert tokenizer.all_tokens() == [*TOKENS, "<e>", "covid"]
    assert tokenizer.get_config()["vocabulary"] == TOKENS
    assert tokenizer.tokenize("a <e>covid").numpy().tolist() == [5, size, size + 1]
    assert tokenizer.detokenize([5, size, size + 1]).numpy() == b"a <e> covid"


def test_travels(tokenizer, tmp_path):
    copied = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(tokenizer))
    assert copied.get_config() == tokenizer.get_config()
    module = tf.Module()
    module.run = tf.function(
        lambda text: tokenizer.tokenize(text).to_tensor(), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    tf.saved_model.save(module, tmp_path)
    texts = tf.constant(["a<e> COVID", "zz"])
    expected = tokenizer.tokenize(texts).to_tensor().numpy().tolist()
    assert tf.saved_model.load(tmp_path).run(texts).numpy().tolist() == expected


def test_other_names_of_the_special_tokens():
    names = {"pad": "<pad>", "unknown": "<unk>", "start": "<s>", "separator": "</s>", "mask": "<mask>"}
    tokenizer = BertTokenizer([*names.values(), "a", "<"], reference="huggingface", special_tokens=names)
    ids = (tokenizer.pad_id, tokenizer.unknown_id, tokenizer.start_id, tokenizer.separator_id, tokenizer.mask_id)
    assert ids == (0, 1, 2, 3, 4)
    assert tokenizer.tokenize("a</s>z<mask>").numpy().tolist() == [5, 3, 1, 4]
    assert BertTokenizer.from_config(tokenizer.get_config()).get_config() == tokenizer.get_config()


@pytest.mark.usefixtures("traces_nothing")
def test_of_equal_tokens_the_last_counts():
    """New ids then follow the number of different tokens, as in the library."""
    vocabulary = [*TOKENS[:5], "a", "b", "a", "", "c"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tokenizer = BertTokenizer(vocabulary, reference="huggingface", added_tokens=["q"])
    assert tokenizer.tokenize("a b c q").numpy().tolist() == [7, 6, 9, 9]
    assert tokenizer.detokenize([5, 7, 6]).numpy() == b"a a b"
    assert differences(vocabulary, ["q"], ["a b c q", "[SEP]a"]) == []


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"added_tokens": "<e>"}, TypeError, "`added_tokens` must be a list of AddedToken"),
        ({"added_tokens": [3]}, TypeError, "`AddedToken`: `content` must be a string"),
        ({"added_tokens": ["a"], "reference": "google"}, ValueError, "must hold no normalized tokens with reference"),
        ({"added_tokens": [" a", AddedToken("b", rstrip=True)]}, ValueError, "begins with whitespace"),
        ({"special_tokens": {"cls": "a"}}, ValueError, "`special_tokens` must be one of"),
        ({"special_tokens": {"pad": 3}}, TypeError, "must be a string"),
        ({"special_tokens": {"unknown": "é"}}, ValueError, "be letters, digits and punctuation of ASCII"),
        ({"special_tokens": {"pad": "<pad>"}}, ValueError, "must hold <pad>"),
    ],
)
def test_wrong_arguments(arguments, error, match):
    with pytest.raises(error, match=match):
        BertTokenizer(**{"vocabulary": TOKENS, "reference": "huggingface", **arguments})


def test_google_takes_tokens_as_they_are_written():
    tokenizer = BertTokenizer(TOKENS, added_tokens=[AddedToken("<e>", special=True)])
    assert tokenizer.tokenize("a<e>[SEP]").numpy().tolist()[:3] == [5, len(TOKENS), TOKENS.index("[")]
