"""`BytePairTokenizer` against the library `tokenizers`, which is what transformers' RobertaTokenizer runs."""

import pickle
import unicodedata

import byte_pair_models
import keras
import numpy as np
import pytest
from library_tokens import assert_same

import keras_bert_layers as kbl
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import BytePairTokenizer, WordAligner
from keras_bert_layers.preprocessing.byte_level.merges import byte_characters

pytest.importorskip("tokenizers", reason="keras-hub brings the tokenizers library")
models = pytest.importorskip("byte_pair_models")
hard_texts = pytest.importorskip("sentence_piece_models", reason="the extra `test` brings sentencepiece").hard_texts

SPACES = [
    "",
    " ",
    "  ",
    "a\n\nb",
    "a \n b",
    "\n",
    " a",
    "  a",
    "a  ",
    "\t'm",
    "a\u00a0b",
    "<mask>",
    "a <mask> b",
    "  <mask>",
]
WORDS = [
    "it's",
    "'s's'll'llama",
    "can't  do",
    "'re're",
    "he'LL 'd",
    "1's 2'd",
    "x<mask>world",
    "!'s",
    "''s",
    "'",
    "it'",
]
SETTINGS = [(False, True), (True, True), (False, False), (True, False)]


def new_pair(add_prefix_space=False, trim_offsets=True, vocabulary_size=900):
    vocabulary, merges = models.train(vocabulary_size)
    settings = {"add_prefix_space": add_prefix_space, "trim_offsets": trim_offsets}
    tokenizer = BytePairTokenizer(vocabulary, merges, stripping_tokens=["<mask>"], **settings)
    return tokenizer, models.library(vocabulary, merges, **settings)


@pytest.fixture(scope="module")
def pair():
    return new_pair()


@pytest.fixture(scope="module")
def tokenizer(pair):
    return pair[0]


@pytest.mark.parametrize("settings", SETTINGS[:2], ids=str)
def test_hard_texts(settings):
    assert_same(*new_pair(*settings), [*SPACES, *WORDS, *hard_texts(3000, seed=7)])


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS[2:], ids=str)
def test_offsets_with_spaces(settings):
    assert_same(*new_pair(*settings), [*SPACES, *WORDS, *hard_texts(3000, seed=8)])


def test_runs_and_long_words(pair):
    """Neighbors of one rank, and words of several blocks."""
    draw = np.random.default_rng(0)
    runs = [c * n for c in "ae-=#☃" for n in (*range(1, 40), 500)] + ["ab" * n for n in range(40)]
    words = ["".join(draw.choice(list("aetiosnrh'"), size)) for size in (50, 500, 3000)]
    assert_same(*pair, runs + words)


@pytest.mark.slow
def test_real_texts(pair, real_texts):
    assert_same(*pair, [text for text in real_texts(step=41) if len(text) < 3000])


@pytest.mark.exhaustive
@pytest.mark.parametrize("context", ["{c}", "ab{c}cd", "ab {c} cd", "'{c}{c}1"])
def test_every_scalar_value(context, pair):
    scalars = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert_same(*pair, [context.replace("{c}", c) for c in scalars])


COMPOSED = [
    *("e\u0301a", "a [MASK]\u0301b", "\u1100\u1161\u11a8 각 \u1112\u1161", "ẹ\u0301\u0302 \u212b", "\u0344\u0301"),
    *("a" + " " * count + "b" for count in range(1, 60)),
    *("   [MASK]  x", "[unused0] [unused1]", " |||IP_ADDRESS|||x", "[SEP]  [CLS]", " " * 30 + "[MASK]", "\u09c7\u09be"),
]


@pytest.fixture(scope="module")
def modern():
    options = models.modern()
    return BytePairTokenizer(**options), models.modern_library(options)


def test_composed_texts(modern):
    """The tokenizer of ModernBERT: NFC, runs of spaces, and special tokens in brackets."""
    texts = hard_texts(500, seed=9)
    assert_same(*modern, [*SPACES, *WORDS, *COMPOSED, *texts, *(unicodedata.normalize("NFD", text) for text in texts)])
    assert BytePairTokenizer.from_config(modern[0].get_config()).get_config() == modern[0].get_config()
    ids = modern[0].tokenize(COMPOSED[-6:-1])
    texts = [text.decode() for text in modern[0].detokenize(ids).numpy()]
    assert texts == [modern[1].decode(row, skip_special_tokens=False) for row in ids.to_list()]


@pytest.mark.exhaustive
@pytest.mark.parametrize("context", ["{c}", "a{c}\u0301", "e\u0323{c}  b", "{c}\u0302{c} [MASK]"])
def test_every_scalar_value_composed(context, modern):
    scalars = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert_same(*modern, [context.replace("{c}", c) for c in scalars])


@pytest.mark.exhaustive
def test_all_real_texts_composed(modern, real_texts):
    assert_same(*modern, real_texts(step=3))


def test_refuses_a_normalizer_with_trimmed_offsets(modern):
    with pytest.raises(ValueError, match="`trim_offsets` must be False with a normalizer"):
        BytePairTokenizer(**{**modern[0].get_config(), "trim_offsets": True})
    with pytest.raises(ValueError, match="`added_tokens` must be in the vocabulary"):
        BytePairTokenizer(**{**modern[0].get_config(), "added_tokens": ["nothing"]})


@pytest.mark.exhaustive
@pytest.mark.parametrize("settings", SETTINGS[:2], ids=str)
def test_all_real_texts(settings, real_texts):
    assert_same(*new_pair(*settings, vocabulary_size=8000), real_texts(step=3))


@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_ill_formed_bytes_are_skipped(add_prefix_space):
    tokenizer, library = new_pair(add_prefix_space)
    texts = [b"\xffa", b"a\xe2\x82 b", b"\xff b", b"it\xff's", b"", b"\xed\xa0\x80"]
    expected = library.encode_batch([text.decode("utf-8", "ignore") for text in texts], add_special_tokens=False)
    assert tokenizer.tokenize(texts).to_list() == [encoding.ids for encoding in expected]
    assert tokenizer.tokenize_with_offsets(texts)[0].to_list() == [encoding.ids for encoding in expected]


@pytest.mark.usefixtures("traces_nothing")
def test_detokenizes_as_the_library(pair):
    tokenizer, library = pair
    texts = ["Hello, it's  me", "½ € 😀", "a<mask> b", ""]
    ids = [encoding.ids for encoding in library.encode_batch(texts, add_special_tokens=False)]
    ids.append(ids[1][:-1])  # a character without its last byte
    found = [text.decode() for text in tokenizer.detokenize(tf.ragged.constant(ids)).numpy()]
    assert found == library.decode_batch(ids, skip_special_tokens=False)
    assert tokenizer.detokenize(ids[0]).numpy().decode() == texts[0]


def test_saves(tokenizer):
    config = tokenizer.get_config()
    again = BytePairTokenizer.from_config(config)
    assert again.get_config() == config
    assert pickle.loads(pickle.dumps(tokenizer)).get_config() == config
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(tokenizer))
    assert restored.get_config() == config


def test_graphs_and_exports(tokenizer, tmp_path):
    module = tf.Module()
    module.encode = tf.function(
        lambda texts: tokenizer.tokenize(texts).to_tensor(-1), [tf.TensorSpec([None], tf.string)]
    )
    tf.saved_model.save(module, tmp_path / "model")
    texts = ["it's a test <mask>", "", "x"]
    found = tf.saved_model.load(str(tmp_path / "model")).encode(tf.constant(texts))
    assert found.numpy().tolist() == tokenizer.tokenize(texts).to_tensor(-1).numpy().tolist()
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(2).map(tokenizer.tokenize)
    assert [row for batch in dataset for row in batch.to_list()] == tokenizer.tokenize(texts).to_list()


@pytest.mark.usefixtures("traces_nothing")
def test_pairs(tokenizer):
    one = BytePairTokenizer(**{**tokenizer.get_config(), "num_pair_separators": 1})
    for each, ends in ((tokenizer, [2, 2]), (one, [2])):
        inputs = kbl.BertPreprocessor(each)((["a"], ["b"]))
        a, b = (each.token_to_id(letter) for letter in "ab")
        assert inputs["token_ids"].numpy().tolist() == [[0, a, *ends, b, 2]]
        assert not inputs["segment_ids"].numpy().any()


@pytest.mark.usefixtures("traces_nothing")
def test_words(tokenizer):
    """Words end at whitespace and punctuation; given words have the tokens that they have in a text."""
    aligner = WordAligner(kbl.BertPreprocessor(tokenizer))
    words = aligner.align(["new york's  hall"])
    assert words.starts.numpy().tolist() == [[0, 4, 8, 9, 12]]
    assert words.ends.numpy().tolist() == [[3, 8, 9, 10, 16]]
    given = aligner.align(tf.ragged.constant([["new", "york's", "hall"]]))
    assert given.inputs["token_ids"].numpy()[0, 1:-1].tolist() == tokenizer.tokenize("new york's hall").numpy().tolist()
    assert given.word_ids.numpy().tolist() == [[0, 1, 1, 1, 2]]
    older = BytePairTokenizer.from_config(
        {key: value for key, value in tokenizer.get_config().items() if key != "word_boundaries"}
    )
    words = WordAligner(kbl.BertPreprocessor(older)).align(["new york's  hall"])
    assert words.starts.numpy().tolist() == [[0, 4, 11, 12]]  # of two spaces, one is a word
    spaced = BytePairTokenizer(**{**tokenizer.get_config(), "add_prefix_space": True})
    aligned = WordAligner(kbl.BertPreprocessor(spaced)).align(tf.ragged.constant([["new", "york"]]))
    expected = spaced.tokenize("new york").numpy().tolist()
    assert aligned.inputs["token_ids"].numpy().tolist() == [[0, *expected, 2]]


@pytest.mark.parametrize("trained", ["roberta", "modernbert"])
def test_readable_tokens_are_what_the_library_decodes(trained):
    options = byte_pair_models.modern()
    tokenizer, library = BytePairTokenizer(**options), byte_pair_models.modern_library(options)
    if trained == "roberta":
        vocabulary, merges = byte_pair_models.train()
        tokenizer, library = BytePairTokenizer(vocabulary, merges), byte_pair_models.library(vocabulary, merges)
    expected = [library.decode([index], skip_special_tokens=False) for index in range(tokenizer.vocabulary_size())]
    assert tokenizer.readable_tokens() == expected


BYTES = list(byte_characters().values())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("abc", []), TypeError, "`vocabulary` must be a list of tokens"),
        (([*models.SPECIAL, 3], []), TypeError, "`vocabulary` must hold strings only"),
        (([*models.SPECIAL, *BYTES[1:]], []), ValueError, "`vocabulary` must hold each byte. Received: .*'!'"),
        (
            ([*models.SPECIAL[:4], *BYTES], []),
            ValueError,
            "`mask_token` must be in the vocabulary. Received: .*'<mask>'",
        ),
        (([*models.SPECIAL, *BYTES], ["a b"]), ValueError, "`merges` must be in the vocabulary. Received: .*'ab'"),
        (([*models.SPECIAL, *BYTES], ["a b c"]), ValueError, "`merges` must hold pairs of tokens"),
    ],
)
def test_refuses(arguments, error, message):
    with pytest.raises(error, match=f"`BytePairTokenizer`: {message}"):
        BytePairTokenizer(*arguments)
