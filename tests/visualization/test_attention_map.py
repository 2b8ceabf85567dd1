import numpy as np
import pytest

from keras_bert_layers.visualization import AttentionGrid, AttentionLines, AttentionMap

TOLERANCE = 1e-5  # two ways through the same layers in float32


@pytest.fixture
def reference(backbone, preprocessor):
    """The scores that the backbone itself gives for a pair of texts."""
    from keras_bert_layers import BertBackbone

    speaking = BertBackbone(backbone.config, return_attention_scores=True)
    speaking.set_weights(backbone.get_weights())
    scores = speaking(preprocessor((["good night"], ["a film"])))["attention_scores"]
    return np.stack([np.asarray(score)[0] for score in scores])


def test_weights_are_the_models_own(backbone, preprocessor, reference):
    def drawn(**index):
        return AttentionMap.from_model(backbone, "good night", "a film", preprocessor=preprocessor, **index)

    assert drawn().tokens == ["[CLS]", "good", "night", "[SEP]", "a", "film", "[SEP]"]
    assert drawn(layer=1, head=2).weights == pytest.approx(reference[1, 2], abs=TOLERANCE)
    assert drawn(layer=-1, head=-3).weights == pytest.approx(reference[1, 0], abs=TOLERANCE)
    assert drawn(layer=0).weights == pytest.approx(reference[0].mean(axis=0), abs=TOLERANCE)
    assert drawn(layer=-1, head=-3).title == "Attention, layer 1, head 0"
    lines = AttentionLines.from_model(backbone, "good night", "a film", layer=1, head=2, preprocessor=preprocessor)
    assert lines.weights == pytest.approx(reference[1, 2], abs=TOLERANCE)
    grid = AttentionGrid.from_model(backbone, "good night", "a film", preprocessor=preprocessor)
    assert grid.weights == pytest.approx(reference, abs=TOLERANCE)
    assert grid.title == "All heads on “good night / a film”"


def test_a_task_brings_its_preprocessor(backbone, preprocessor):
    from keras_bert_layers import BertClassifier

    classifier = BertClassifier(backbone, 2, preprocessor=preprocessor)
    assert AttentionMap.from_model(classifier, "film").tokens == ["[CLS]", "film", "[SEP]"]


def test_nothing_is_padded_and_what_is_too_long_is_cut(backbone, tokenizer):
    from keras_bert_layers import BertPreprocessor

    padding = BertPreprocessor(tokenizer, max_length=32, padding="max_length")  # the backbone has 13 positions
    assert len(AttentionMap.from_model(backbone, "film", preprocessor=padding).tokens) == 3
    assert len(AttentionMap.from_model(backbone, "film " * 40, preprocessor=padding).tokens) == 13


def test_an_empty_text_has_two_tokens(backbone, preprocessor):
    assert AttentionMap.from_model(backbone, "", preprocessor=preprocessor).tokens == ["[CLS]", "[SEP]"]


def test_page_shows_percents():
    page = AttentionMap(["a", "b"], [[0.2, 0.8], [1.0, 0.0]]).html()
    assert '<td class="number s2">20</td><td class="number s6">80</td>' in page


def test_shares_that_rounding_made_larger_than_one():
    assert AttentionMap(["a"], [[1.004]]).weights.tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([[1.0]], r"`AttentionMap`: `weights.shape` must be \(tokens, tokens\) of 2 tokens. Received: .*\(1, 1\)"),
        ([[0.5, 0.5], [-0.1, 1.0]], "`AttentionMap`: `weights` must be shares from 0 to 1. Received"),
        ([[0.5, 0.5], [float("nan"), 1.0]], "`AttentionMap`: `weights` must be shares from 0 to 1. Received"),
    ],
)
def test_wrong_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        AttentionMap(["a", "b"], weights)


def test_no_tokens():
    with pytest.raises(ValueError, match=r"of 0 tokens. Received: weights.shape=\(0, 0\)"):
        AttentionMap([], np.zeros((0, 0)))


def test_wrong_indices(backbone, preprocessor):
    with pytest.raises(ValueError, match="`layer` must be at least -2 and less than 2. Received: layer=2"):
        AttentionMap.from_model(backbone, "a", layer=2, preprocessor=preprocessor)
    with pytest.raises(ValueError, match="`head` must be at least -3 and less than 3. Received: head=-4"):
        AttentionMap.from_model(backbone, "a", head=-4, preprocessor=preprocessor)
    with pytest.raises(TypeError, match="`layer` must be an integer. Received: layer=0.5"):
        AttentionMap.from_model(backbone, "a", layer=0.5, preprocessor=preprocessor)


def test_what_is_not_a_model_a_preprocessor_or_a_text(backbone, preprocessor):
    with pytest.raises(
        TypeError, match="`AttentionMap`: `model` must be a BertBackbone or a task. Received: model='x'"
    ):
        AttentionMap.from_model("x", "a")
    with pytest.raises(TypeError, match="`preprocessor` must be a preprocessor. Received: preprocessor=None. Give a"):
        AttentionMap.from_model(backbone, "a")
    with pytest.raises(TypeError, match=r"`AttentionGrid`: `text` must be a string. Received: text=\['a'\]"):
        AttentionGrid.from_model(backbone, ["a"], preprocessor=preprocessor)
    with pytest.raises(TypeError, match="`AttentionLines`: `text_pair` must be a string. Received: text_pair=3"):
        AttentionLines.from_model(backbone, "a", 3, preprocessor=preprocessor)
