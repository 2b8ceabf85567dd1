"""`prune_vocabulary`: the tokens that texts use, with their rows, and the same outputs."""

import numpy as np
import pytest
from vocabulary_models import array, make_backbone

from keras_bert_layers import (
    BertMaskedLM,
    BertPreprocessor,
    BertSentenceEncoder,
    BertTokenizer,
)
from keras_bert_layers.tasks import prune_vocabulary

TEXTS = ["A good film.", "good GOOD goodness", "unhappy film"]
KEPT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "film", "##ness", "un", "##happy", "."]


@pytest.mark.parametrize("tie_weights", [True, False])
@pytest.mark.usefixtures("traces_nothing")
def test_masked_lm(preprocessor, tie_weights):
    old = BertMaskedLM(make_backbone(20), preprocessor, tie_weights=tie_weights)
    for weight in old.weights:
        weight.assign(np.random.default_rng(3).normal(0, 0.3, weight.shape))
    new, made = prune_vocabulary(old, iter(TEXTS))
    assert type(new) is BertMaskedLM
    assert made is new.preprocessor
    assert made.tokenizer.all_tokens() == KEPT
    assert new.backbone.config.vocabulary_size == len(KEPT), "spare rows are left out"
    kept = [preprocessor.tokenizer.token_to_id(token) for token in KEPT]
    for old_weight, weight in zip(old.weights, new.weights, strict=True):
        value = array(old_weight)
        np.testing.assert_array_equal(array(weight), value if value.shape == weight.shape else value[kept])
    masked = ["a [MASK] film."]
    np.testing.assert_allclose(
        new.predict(masked, verbose=0), old.predict(masked, verbose=0)[..., kept], rtol=0, atol=1e-6
    )


@pytest.mark.usefixtures("traces_nothing")
def test_outputs_of_the_texts_are_the_same_bits(preprocessor):
    old = BertSentenceEncoder(make_backbone(18), preprocessor=preprocessor)
    new, _ = prune_vocabulary(old, TEXTS)
    np.testing.assert_array_equal(new.predict(TEXTS, verbose=0), old.predict(TEXTS, verbose=0))
    assert new.count_params() == old.count_params() - 8 * (18 - len(KEPT))


def test_most_frequent_tokens(preprocessor):
    warning = r"`num_tokens` leaves out 5 tokens that the texts use, 45.45% of all that they have"
    with pytest.warns(UserWarning, match=warning):
        _, made = prune_vocabulary(make_backbone(18), TEXTS, num_tokens=7, preprocessor=preprocessor)
    assert made.tokenizer.all_tokens() == [*KEPT[:5], "good", "film"]
    _, made = prune_vocabulary(make_backbone(18), TEXTS, num_tokens=99, preprocessor=preprocessor)
    assert made.tokenizer.all_tokens() == KEPT


def test_unknown_words_stay_unknown():
    # "abc" is "ab" and nothing; without "ab" it would be "a" and "##bc".
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "ab", "##bc", "x", "##x", "y"]
    tokenizer = BertTokenizer(tokens)
    texts = ["abc axbc", "a xx", "x" * 300]
    _, made = prune_vocabulary(make_backbone(10), texts, preprocessor=BertPreprocessor(tokenizer, 7))
    assert made.tokenizer.all_tokens() == tokens[:-1]
    assert made.tokenizer.tokenize(texts).to_list() == tokenizer.tokenize(texts).to_list()


def test_added_tokens_and_names_are_kept(vocabulary):
    renamed = ["<pad>", *vocabulary[1:]]
    tokenizer = BertTokenizer(
        renamed, added_tokens=["<b>", "night"], reference="huggingface", special_tokens={"pad": "<pad>"}
    )
    preprocessor = BertPreprocessor(tokenizer, 7)
    _, made = prune_vocabulary(make_backbone(19), ["good<b>"], preprocessor=preprocessor)
    assert made.tokenizer.all_tokens() == ["<pad>", *KEPT[1:5], "good", "night", "<b>"]


def test_real_texts_keep_their_tokens(minilm, shared_data):
    """Also the many unknown words in the texts of characters."""
    tokenizer = BertTokenizer(minilm / "vocab.txt")
    texts = (shared_data / "corpus" / "sample_text.txt").read_text(encoding="utf-8").split("\n")
    texts += ["".join(map(chr, range(start, start + 40))) for start in range(0x100, 0x3000, 40)]
    backbone = make_backbone(30522)
    new, made = prune_vocabulary(backbone, texts, preprocessor=BertPreprocessor(tokenizer, 7))
    old_tokens = tokenizer.all_tokens()
    new_tokens = made.tokenizer.all_tokens()
    assert 500 < len(new_tokens) == new.config.vocabulary_size < 3000
    rows = zip(tokenizer.tokenize(texts).to_list(), made.tokenizer.tokenize(texts).to_list(), strict=True)
    assert all([old_tokens[i] for i in old] == [new_tokens[i] for i in new] for old, new in rows)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([],), ValueError, "`texts` must hold at least one token. Received: texts=0 texts"),
        (("a good film",), TypeError, "`texts` must be a list or another iterable of strings"),
        ((["a", 3],), TypeError, r"`texts\[1\]` must be a string"),
        ((["a", "\udc80"],), ValueError, r"`texts\[1\]` must be Unicode text, without lone surrogates"),
        ((["a"], 5), ValueError, "`num_tokens` must be at least 6, for the special tokens and one more"),
    ],
)
def test_refuses(preprocessor, arguments, error, message):
    texts, *limit = arguments
    options = {"num_tokens": limit[0]} if limit else {}
    with pytest.raises(error, match=f"`prune_vocabulary`: {message}"):
        prune_vocabulary(make_backbone(18), texts, preprocessor=preprocessor, **options)


def test_refuses_models(preprocessor):
    with pytest.raises(TypeError, match="`prune_vocabulary`: `model` must be a task or a BertBackbone"):
        prune_vocabulary(preprocessor, TEXTS)
    with pytest.raises(ValueError, match="`preprocessor` must be given"):
        prune_vocabulary(make_backbone(18), TEXTS)


@pytest.mark.slow
def test_minilm(minilm):
    from keras_bert_layers import load_task

    old = load_task(minilm)
    texts = ["A cat sleeps on the roof.", "Stocks fell after the announcement of unhappiness."]
    new, _ = prune_vocabulary(old, texts)
    np.testing.assert_array_equal(new.predict(texts, verbose=0), old.predict(texts, verbose=0))
    assert new.count_params() < old.count_params() * 0.6
