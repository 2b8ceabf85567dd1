"""`SentencePieceTokenizer` against the library `tokenizers`, which is what transformers' tokenizers run."""

import base64
import pickle
import random
import re

import keras
import numpy as np
import pytest
from library_tokens import assert_same

import keras_bert_layers as kbl
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import SentencePieceTokenizer, SpanPreprocessor, WordAligner

pytest.importorskip("tokenizers", reason="keras-hub brings the tokenizers library")
models = pytest.importorskip("sentence_piece_models", reason="the extra `test` brings sentencepiece")

VOCABULARY = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁good", "night", "▁n", "ight", "a", "aa", "<mask>"]
SCORES = [0, 0, 0, 0, -2.0, -3.0, -4.0, -5.0, -6.0, -1.1, -2.0, 0]
MODELS = [
    pytest.param(("unigram", "nmt_nfkc"), id="unigram"),
    pytest.param(("unigram", "identity"), id="identity", marks=pytest.mark.slow),
    pytest.param(("bpe", "nmt_nfkc"), id="bpe", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=MODELS)
def pair(request):
    """A tokenizer, and the library's."""
    proto = models.train(*request.param)
    pieces, character_map = models.pieces_of(proto), proto.normalizer_spec.precompiled_charsmap
    tokenizer = SentencePieceTokenizer(
        *map(list, zip(*pieces, strict=True)),
        character_map=base64.b64encode(character_map).decode(),
        stripping_tokens=["<mask>"],
    )
    return tokenizer, models.library(pieces, character_map)


@pytest.fixture(scope="module")
def tokenizer():
    """One for all tests: what it traces, it traces once."""
    return SentencePieceTokenizer(VOCABULARY, SCORES)


def test_hard_texts(pair):
    assert_same(*pair, ["", " ", *models.hard_texts(3000, seed=7)])


def test_equal_sums(pair):
    """Runs of equal characters have many ways to be cut with equal sums of scores."""
    assert_same(*pair, [c * n for c in "aen1.-=!?#☃" for n in range(1, 60)] + ["ab" * n for n in range(40)])


@pytest.mark.slow
def test_real_texts(pair, real_texts):
    assert_same(*pair, [text for text in real_texts(step=41) if len(text) < 3000])


@pytest.mark.exhaustive
@pytest.mark.parametrize("context", ["{c}", "ab{c}cd", "ab {c} cd", "{c}{c}", "a{c}\u0301b"])
def test_every_scalar_value(context, pair):
    scalars = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    assert_same(*pair, [context.replace("{c}", c) for c in scalars])


@pytest.mark.exhaustive
def test_all_real_texts(pair, real_texts):
    assert_same(*pair, real_texts(step=3))


def test_ill_formed_bytes_are_skipped(pair):
    tokenizer, library = pair
    pieces = [b"<s>", b"<mask>", b"\xff", b"\xed\xa0\x80", b"\xe2\x82", b"e", "\u00bd".encode(), b"ab", b" ", b"\x00"]
    generator = random.Random(19)
    texts = [b"".join(generator.choices(pieces, k=generator.randrange(10))) for _ in range(1000)]
    valid = [text.decode("utf-8", "ignore") for text in texts]
    texts = [text for text, other in zip(texts, valid, strict=True) if "<" not in other or text == other.encode()]
    expected = library.encode_batch([text.decode("utf-8", "ignore") for text in texts], add_special_tokens=False)
    assert tokenizer.tokenize(texts).to_list() == [encoding.ids for encoding in expected]


@pytest.mark.usefixtures("traces_nothing")
def test_shapes(tokenizer):
    assert tokenizer.tokenize("good night").numpy().tolist() == [5, 4, 6]
    assert tokenizer.tokenize([["good", "night"], ["", "a"]]).to_list() == [[[5], [4, 6]], [[], [4, 9]]]
    assert tokenizer.tokenize([]).to_list() == []


def test_graphs(tokenizer):
    assert tf.function(tokenizer.tokenize)(tf.constant(["good"])).to_list() == [[5]]
    dataset = tf.data.Dataset.from_tensor_slices(["good", "night good"]).batch(2).map(tokenizer.tokenize)
    assert next(iter(dataset)).to_list() == [[5], [4, 6, 5]]


def test_ids_and_tokens(tokenizer):
    assert (tokenizer.start_id, tokenizer.pad_id, tokenizer.separator_id, tokenizer.unknown_id) == (0, 1, 2, 3)
    assert (tokenizer.mask_id, tokenizer.mask_token, tokenizer.vocabulary_size()) == (11, "<mask>", 12)
    assert (tokenizer.id_to_token(5), tokenizer.token_to_id("▁good")) == ("▁good", 5)
    assert tokenizer.detokenize([[5, 4, 6, 1], [4, 6, 1, 1]]).numpy().tolist() == [b"good night", b"night"]


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_config_and_pickle(pair):
    tokenizer, _ = pair
    text = ["Some <mask> ﬁne téxt", "aaaa"]
    for copy in (SentencePieceTokenizer.from_config(tokenizer.get_config()), pickle.loads(pickle.dumps(tokenizer))):
        assert copy.get_config() == tokenizer.get_config()
        assert copy.tokenize(text).to_list() == tokenizer.tokenize(text).to_list()


def test_inputs_of_pairs(tokenizer):
    preprocessor = kbl.BertPreprocessor(tokenizer, max_length=9)
    found = preprocessor((["good", "good good good good"], ["night", "good good good good"]))
    assert found["token_ids"].numpy().tolist() == [[0, 5, 2, 2, 4, 6, 2, 1, 1], [0, 5, 5, 2, 2, 5, 5, 5, 2]]
    assert not found["segment_ids"].numpy().any()
    assert preprocessor(["good"])["token_ids"].numpy().tolist() == [[0, 5, 2]]


@pytest.mark.usefixtures("traces_nothing")
def test_windows_of_contexts(tokenizer):
    spans = SpanPreprocessor(tokenizer, max_length=8, stride=1)
    windows = spans((["good"], ["night good night"]))
    assert windows["token_ids"].numpy().tolist() == [[0, 5, 2, 2, 4, 6, 5, 2], [0, 5, 2, 2, 5, 4, 6, 2]]
    assert windows["segment_ids"].numpy().tolist() == [[0] * 4 + [1] * 4] * 2, "they mark the context"
    assert windows["ends"].numpy()[1].tolist() == [-1, -1, -1, -1, 10, 12, 16, -1]


@pytest.mark.usefixtures("traces_nothing")
def test_words(tokenizer):
    """Words are split at whitespace and punctuation, so a special token that is written in a text is three."""
    words = WordAligner(kbl.BertPreprocessor(tokenizer)).align(["good nightღ <mask> night", "night"])
    assert words.inputs["token_ids"].numpy()[0].tolist() == [0, 5, 4, 6, 3, 11, 4, 6, 2]
    assert words.starts.numpy().tolist() == [[0, 5, 14, 15, 19, 21], [0, -1, -1, -1, -1, -1]]
    assert words.ends.numpy().tolist() == [[4, 13, 15, 19, 20, 26], [5, -1, -1, -1, -1, -1]]
    given = WordAligner(kbl.BertPreprocessor(tokenizer)).align(tf.ragged.constant([["good", "nightღ"], ["night"]]))
    assert given.places.numpy().tolist() == [[1, 2], [7, -1]]


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_saved_in_a_keras_file(tokenizer, tmp_path):
    config = kbl.BertConfig(vocabulary_size=12, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
    task = kbl.BertClassifier(kbl.BertBackbone(config), 2, preprocessor=kbl.BertPreprocessor(tokenizer, max_length=16))
    expected = task.predict(["good night"], verbose=0)
    task.save(tmp_path / "x.keras")
    loaded = keras.models.load_model(tmp_path / "x.keras")
    np.testing.assert_allclose(loaded.predict(["good night"], verbose=0), expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
@pytest.mark.filterwarnings("ignore:.*texts with no mask")
def test_masks_are_filled(tokenizer):
    config = kbl.BertConfig(vocabulary_size=12, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
    masked_lm = kbl.BertMaskedLM(kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer, max_length=16), top_k=2)
    assert masked_lm.answer(["good <mask> night <mask>", "good"])["token"].shape == (2, 2, 2)
    masked_lm.fit(["good night", "night good night"], verbose=0)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"vocabulary": "pieces.model"}, TypeError, "`vocabulary` must be a list of pieces"),
        ({"vocabulary": VOCABULARY[:-1]}, ValueError, "`scores` must be 11"),
        ({"vocabulary": [*VOCABULARY[:-1], "a"]}, ValueError, "`vocabulary` must hold each piece once"),
        ({"vocabulary": [*VOCABULARY[:-1], 1]}, TypeError, "`vocabulary` must hold strings only"),
        ({"scores": [*SCORES[:-1], float("nan")]}, ValueError, "`scores` must be finite"),
        ({"mask_token": "[MASK]"}, ValueError, "`mask_token` must be in the vocabulary"),
        ({"special_tokens": ["<x>"]}, ValueError, "`special_tokens` must be in the vocabulary"),
        ({"character_map": "AAAA"}, ValueError, "`character_map` must be `precompiled_charsmap`"),
    ],
)
def test_errors(change, error, text):
    with pytest.raises(error, match=re.escape(text)):
        SentencePieceTokenizer(**{"vocabulary": VOCABULARY, "scores": SCORES, **change})


def test_errors_of_calls(tokenizer):
    with pytest.raises(TypeError, match="`SentencePieceTokenizer`: `text` must be strings"):
        tokenizer.tokenize([1, 2])
    with pytest.raises(ValueError, match="`token_id` must be at least 0 and less than 12"):
        tokenizer.id_to_token(12)
    with pytest.raises(ValueError, match="`token` must be a token of the vocabulary"):
        tokenizer.token_to_id("x")
