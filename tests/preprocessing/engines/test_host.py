"""The text engine on the host, part by part against that of tensorflow-text: the same bytes, ids and offsets."""

import numpy as np
import pytest

from keras_bert_layers import BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import tables
from keras_bert_layers.preprocessing.engines import engine, host
from keras_bert_layers.preprocessing.engines.character_table import character_table
from keras_bert_layers.preprocessing.tokens.markers import SUFFIX, WHITESPACE, any_of
from keras_bert_layers.preprocessing.word_piece.pieces import NEVER

SCALARS = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
# Texts without tokens, with NUL, and with each way to break UTF-8: bytes that do not lead, surrogates, cut characters.
ODD = [b"", b"\0", b"a\0\xff", b"\xed\xa0\x80b", b"\xe4\xb8", b"\xf0\x9f\x98a", b"\xc3\xa9\xa9", b"\xf5\x80\x80\x80 "]


@pytest.fixture(scope="module")
def tf_text_engine():
    pytest.importorskip("tensorflow_text")
    from keras_bert_layers.preprocessing.engines import tensorflow_text

    return tensorflow_text


@pytest.fixture(scope="module")
def words(hard_texts):
    """Words of letters, marks, emoji and Chinese, as WordPiece gets them: no whitespace, no punctuation."""
    rng = np.random.default_rng(5)
    letters = [*"abcdeuné中文อ😀ß", "\u0301"]
    return ["".join(rng.choice(letters, size)) for size in rng.integers(1, 13, 600)]


def assert_equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("name", [("google", True, True), ("huggingface", False, False)])
def test_characters(name, hard_texts, tf_text_engine):
    """Every 17th scalar value, texts that are hard to get right, and random bytes."""
    rng = np.random.default_rng(3)
    some = ["".join(SCALARS[i : i + 17 * 64 : 17]) for i in range(rng.integers(17), len(SCALARS), 17 * 64)]
    noise = [rng.bytes(size) for size in rng.integers(0, 40, 500)]
    texts = tf.constant([*some, *hard_texts(1, 100), *noise, *ODD])
    model = tables.load(*name).model
    found, sources = host.CharacterReplacer(model).replace_with_sources(texts)
    expected, expected_sources = tf_text_engine.CharacterReplacer(model).replace_with_sources(texts)
    assert_equal([found, sources.values], [expected, expected_sources.values])
    np.testing.assert_array_equal(sources.row_splits, expected_sources.row_splits)
    np.testing.assert_array_equal(host.CharacterReplacer(model).replace(texts), expected)


def test_characters_of_a_table_made_here(tf_text_engine):
    """A table of a SentencePiece tokenizer, which keeps NUL."""
    model = character_table({"a": "bcd", "é": "", "中": " ▁", "\t": " "})
    texts = tf.constant(["aé中\tx", "\0a", *ODD])
    found, sources = host.CharacterReplacer(model).replace_with_sources(texts)
    expected, expected_sources = tf_text_engine.CharacterReplacer(model).replace_with_sources(texts)
    assert found.numpy()[0] == "bcd ▁ x".encode()
    assert_equal([found, sources.values], [expected, expected_sources.values])


def test_no_texts():
    replaced, sources = host.CharacterReplacer(character_table({})).replace_with_sources(tf.constant([], tf.string))
    assert replaced.shape == (0,)
    assert sources.to_list() == []


def test_word_pieces(words, tf_text_engine):
    beginnings = ["a", "ab", "un", "中", "é", "?", "😀"]
    tokens = [*beginnings, *(f"{SUFFIX}{text}" for text in ["un", "文", "e\u0301", *"abcdeuné"]), NEVER, "[UNK]"]
    options = {"max_word_length": 11, "unknown": "[UNK]", "splits_texts": False}
    made = [module.WordPieceModel(tokens, **options) for module in (host, tf_text_engine)]
    found, expected = (model.encode_words(tf.constant([w for w in words if len(w) < 12])) for model in made)
    assert_equal(found, expected)
    assert 0.1 < np.mean(found.ids == len(tokens) - 1) < 0.9


def test_sentence_pieces(words, tf_text_engine):
    """Scores of which many sums are equal, and neighbouring unknown characters."""
    vocabulary = ["<s>", "<unk>", "▁", "▁a", "a", "b", "ab", "▁un", "un", "n", "u", "中文", "e", "ee", "<pad>"]
    scores = [None, 0.0, -2.0, -2.5, -1.0, -1.5, -2.5, -3.0, -2.0, -1.0, -1.0, -4.0, -1.0, -2.0, None]
    made = [module.SentencePieces(vocabulary, scores, unknown_id=1) for module in (host, tf_text_engine)]
    texts = tf.constant([f"▁{word}" for word in [*words, "a<unk>b", "<s>", "<pad>a"]])
    assert_equal(*(model.encode_words(texts) for model in made))


@pytest.mark.parametrize(
    ("boundary", "kept"),
    [("[ ,中]", "[,中]"), ("", ""), (f"[{WHITESPACE}]*\\[SEP\\]|\\[CLS\\]", None)],
    ids=["characters", "no boundary", "tokens"],
)
def test_split(boundary, kept, tf_text_engine):
    boundary = boundary or any_of(["never found"])
    texts = ["", " ", ",", "a, b 中c", "  ,,a  ", "中", "a\xa0[SEP] [CLS][SEP]b", "[SEP]", b"\xff,\xe4 \xb8[CLS]"]
    arguments = tf.constant([*texts, ""]), boundary, kept or boundary
    assert_equal(host.split(*arguments), tf_text_engine.split(*arguments))


@pytest.mark.parametrize(
    "options",
    [
        {"reference": "google"},
        {
            "reference": "huggingface",
            "lowercase": False,
            "added_tokens": ["a b", {"content": "Σ", "lstrip": True}],
        },
    ],
    ids=["google", "huggingface"],
)
def test_tokenizer(options, hard_texts, vocabulary, tf_text_engine, monkeypatch):
    """Ids and offsets of whole texts, in a dataset: long words, final sigmas, added tokens, broken UTF-8."""
    texts = [*hard_texts(7, 150), "A b, a bΣ ΑΣ a  Σ", "a" * 101, "é" * 201]
    found = []
    for module in (host, tf_text_engine):
        monkeypatch.setattr(engine, "text_engine", lambda module=module: module)
        tokenizer = BertTokenizer([*vocabulary, "σ", "ς", "##ς", *"xyz"], **options)
        dataset = tf.data.Dataset.from_tensor_slices([*texts, ""]).batch(64).map(tokenizer.tokenize_with_offsets)
        found.append([[part.to_list() for part in batch] for batch in dataset])
    assert found[0] == found[1]
