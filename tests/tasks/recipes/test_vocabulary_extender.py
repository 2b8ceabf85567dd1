"""`extend_vocabulary`: new tokens, whose rows are the mean of their pieces', and everything else unchanged."""

import keras
import numpy as np
import pytest
from vocabulary_models import array, make_backbone

from keras_bert_layers import (
    BertBackbone,
    BertDualEncoder,
    BertMaskedLM,
    BertPreprocessor,
    BertSentenceEncoder,
    BertTokenizer,
)
from keras_bert_layers.tasks import extend_vocabulary

# Of conftest's words: "goodness" is 6 and 10, "nights" 9 and 11.
NEW = ["Goodness", "nights"]
PIECES = [[6, 10], [9, 11]]
OLD_TEXTS = ["a good film.", "unhappy, bad!", "night?"]

pytestmark = pytest.mark.usefixtures("traces_nothing")  # each vocabulary has graphs of its own


@pytest.fixture(scope="module")
def backbone():
    """For words that are refused."""
    return make_backbone()


@pytest.mark.parametrize("tie_weights", [True, False])
def test_masked_lm(preprocessor, tie_weights):
    old = BertMaskedLM(make_backbone(), preprocessor, tie_weights=tie_weights, top_k=3)
    for weight in old.weights:
        weight.assign(np.random.default_rng(3).normal(0, 0.3, weight.shape))
    before = [array(weight) for weight in old.weights]
    new, made = extend_vocabulary(old, NEW)
    assert type(new) is BertMaskedLM
    assert made is new.preprocessor
    assert new.top_k == 3
    assert made.tokenizer.all_tokens() == [*preprocessor.tokenizer.all_tokens(), "goodness", "nights"]
    assert made.tokenizer.tokenize(["GOODNESS", "nights a"]).to_list() == [[18], [19, 5]]
    assert new.backbone.config.vocabulary_size == 20
    changed = 0
    for old_weight, value, weight in zip(old.weights, before, new.weights, strict=True):
        assert (array(old_weight) == value).all(), "the old model stays"
        if value.shape == weight.shape:
            assert (array(weight) == value).all()
            continue
        changed += 1
        assert (array(weight)[:18] == value).all()
        np.testing.assert_allclose(array(weight)[18:], [value[ids].mean(axis=0) for ids in PIECES], rtol=1e-6)
    assert changed == (2 if tie_weights else 3), "the embedding, the bias, and a matrix of the head's own"
    logits = new.predict(["a [MASK] film."], verbose=0)
    assert logits.shape[-1] == 20
    np.testing.assert_array_equal(logits[..., :18], old.predict(["a [MASK] film."], verbose=0))


def test_outputs_of_old_texts_are_the_same_bits(preprocessor):
    old = BertSentenceEncoder(make_backbone(), preprocessor=preprocessor)
    new, _ = extend_vocabulary(old, NEW)
    np.testing.assert_array_equal(new.predict(OLD_TEXTS, verbose=0), old.predict(OLD_TEXTS, verbose=0))
    assert (new.predict(NEW, verbose=0) != old.predict(NEW, verbose=0)).all()


def test_a_model_trains_and_loads_from_its_file(preprocessor, tmp_path):
    new, _ = extend_vocabulary(BertMaskedLM(make_backbone(), preprocessor), NEW)
    new.compile(run_eagerly=True)
    new.train_on_batch(["Goodness nights"])
    new.save(tmp_path / "new.keras")
    again = keras.models.load_model(tmp_path / "new.keras")
    assert again.preprocessor.tokenizer.tokenize("nights").numpy().tolist() == [19]
    np.testing.assert_array_equal(array(again.backbone.weights[0]), array(new.backbone.weights[0]))


def test_backbone_with_spare_rows_and_lora(preprocessor):
    old = make_backbone(19)
    old.enable_lora(2)
    new, made = extend_vocabulary(old, NEW, preprocessor=preprocessor)
    assert type(new) is BertBackbone
    assert new.config.vocabulary_size == 20, "the spare row is used first"
    assert new.lora_rank == 2
    assert made.max_length == preprocessor.max_length
    matrix = array(old.get_layer("embedding").token_embedding)
    np.testing.assert_array_equal(array(new.get_layer("embedding").token_embedding)[:18], matrix[:18])
    assert extend_vocabulary(make_backbone(25), NEW, preprocessor=preprocessor)[0].config.vocabulary_size == 25


def test_quantized_layers_stay_quantized(preprocessor):
    old = BertSentenceEncoder(make_backbone(), preprocessor=preprocessor)
    old.quantize("int8")
    new, _ = extend_vocabulary(old, NEW)
    assert [weight.dtype for weight in new.weights] == [weight.dtype for weight in old.weights]
    np.testing.assert_array_equal(new.predict(OLD_TEXTS, verbose=0), old.predict(OLD_TEXTS, verbose=0))


def test_dual_encoder_of_two_backbones(preprocessor):
    documents = BertPreprocessor(preprocessor.tokenizer, max_length=5)
    old = BertDualEncoder(make_backbone(), make_backbone(), preprocessor=preprocessor, document_preprocessor=documents)
    new, _ = extend_vocabulary(old, NEW)
    sizes = [part.config.vocabulary_size for part in (new.backbone, new.document_backbone)]
    assert sizes == [new.document_preprocessor.tokenizer.vocabulary_size()] * 2 == [20, 20]
    old.document_preprocessor = BertPreprocessor(BertTokenizer([*preprocessor.tokenizer.all_tokens()[:-1], "other"]), 5)
    with pytest.raises(ValueError, match="`model` must have one vocabulary for all its encoders and tokenizers"):
        extend_vocabulary(old, NEW)
    with pytest.raises(ValueError, match=r"Received: model=\[18, 19\] rows"):
        extend_vocabulary(BertDualEncoder(make_backbone(), make_backbone(19), preprocessor=preprocessor), NEW)


def test_known_words_are_skipped_with_a_warning(preprocessor):
    with pytest.warns(UserWarning, match="`extend_vocabulary`: 2 of the words are tokens already and were skipped"):
        _, made = extend_vocabulary(make_backbone(), ["Good", "film", "good", "Éé", "ee"], preprocessor=preprocessor)
    assert made.tokenizer.all_tokens()[18:] == ["ee"]


def test_added_tokens_keep_their_ids(vocabulary):
    tokenizer = BertTokenizer(vocabulary, added_tokens=["<b>"], reference="huggingface")
    _, made = extend_vocabulary(make_backbone(19), NEW, preprocessor=BertPreprocessor(tokenizer, 7))
    texts = ["a<b>good[SEP]"]
    assert made.tokenizer.tokenize(texts).to_list() == tokenizer.tokenize(texts).to_list() == [[5, 18, 6, 3]]
    assert made.tokenizer.tokenize("goodness").numpy().tolist() == [19]


@pytest.mark.parametrize(
    ("added", "doubled", "rule"),
    [
        ("goods", [], r"`tokenizer.added_tokens` must hold no word that the vocabulary lacks"),
        ("##x", [], r"`tokenizer.added_tokens` must hold no word that the vocabulary lacks"),
        ("<b>", ["film"], r"`tokenizer.vocabulary` must hold each token once"),
    ],
)
def test_refuses_added_tokens_that_would_move(vocabulary, added, doubled, rule):
    tokenizer = BertTokenizer([*vocabulary, *doubled], added_tokens=[added], reference="huggingface")
    with pytest.raises(ValueError, match=rule):
        extend_vocabulary(make_backbone(25), NEW, preprocessor=BertPreprocessor(tokenizer, 7))


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (["covid-19", "nights"], ValueError, "Received: words=2 words. 'covid-19' is split into covid, -, 19. Leave"),
        (["\x00"], ValueError, r"nothing is left of '\\x00'"),
        (["a b"] * 5, ValueError, "'a b' is split into a, b and 2 more"),
        (["x" * 201], ValueError, r"is \[UNK\]"),
        (["good"], ValueError, "`words` must hold a word that is not a token yet. Received: words=1 words"),
        ("nights", TypeError, "`words` must be a list of strings"),
        (["nights", 3], TypeError, r"`words\[1\]` must be a string"),
        (["\udc80"], ValueError, r"`words\[0\]` must be Unicode text, without lone surrogates"),
    ],
)
def test_refuses_words(backbone, preprocessor, words, error, message):
    with pytest.raises(error, match=message):
        extend_vocabulary(backbone, words, preprocessor=preprocessor)


def test_refuses_models(backbone, preprocessor):
    with pytest.raises(TypeError, match="`extend_vocabulary`: `model` must be a task or a BertBackbone"):
        extend_vocabulary(preprocessor, NEW)
    with pytest.raises(ValueError, match="`preprocessor` must be given"):
        extend_vocabulary(backbone, NEW)
    with pytest.raises(TypeError, match=r"`preprocessor.tokenizer` must be a BertTokenizer.*SentencePiece has scores"):
        extend_vocabulary(backbone, NEW, preprocessor=sentence_pieces())


def sentence_pieces():
    """A preprocessor whose tokenizer is not WordPiece."""
    from keras_bert_layers.preprocessing import SentencePieceTokenizer

    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "▁a"]
    return BertPreprocessor(SentencePieceTokenizer(vocabulary, [*[None] * 5, -1.0]), 7)


@pytest.mark.peers
def test_transformers_reads_the_extended_model(preprocessor, tmp_path):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    from keras_bert_layers import save_huggingface

    tokenizer = BertTokenizer(preprocessor.tokenizer.all_tokens(), reference="huggingface")
    new, _ = extend_vocabulary(BertMaskedLM(make_backbone(), BertPreprocessor(tokenizer, 9)), NEW)
    save_huggingface(new, tmp_path)
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    ids = transformers.AutoTokenizer.from_pretrained(tmp_path)(["goodness, [MASK] nights"], return_tensors="pt")
    assert ids["input_ids"].tolist() == [[2, 18, 14, 4, 19, 3]]
    with torch.no_grad():
        logits = theirs(**ids).logits.numpy()[:, 3:4]
    np.testing.assert_allclose(new.predict(["goodness, [MASK] nights"], verbose=0), logits, atol=1e-5)


@pytest.mark.slow
def test_minilm(minilm):
    from keras_bert_layers import load_task

    old = load_task(minilm)
    words = ["angiogenesis", "cytokine", "lymphocytes", "phosphorylation", "immunohistochemistry"]
    new, made = extend_vocabulary(old, words)
    assert made.tokenizer.tokenize(words).to_list() == [[30522 + row] for row in range(5)]
    texts = ["A cat sleeps.", "Stocks fell after the announcement.", ""]
    np.testing.assert_array_equal(new.predict(texts, verbose=0), old.predict(texts, verbose=0))
