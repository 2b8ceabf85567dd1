"""`answer`: the answers of the exported model, from Keras."""

import numpy as np
import pytest

from keras_bert_layers import BertClassifier
from keras_bert_layers.tasks.serving.answers import as_text


@pytest.fixture(scope="module")
def classifier(new_backbone, preprocessor):
    return BertClassifier(new_backbone(), class_names=["bad", "good"], preprocessor=preprocessor, pairs=True)


def test_equals_the_softmax_of_predict(classifier):
    pairs = (["a good film", "night", ""], ["a bad film", "", "good !"])
    answers = classifier.answer(pairs, batch_size=2)
    logits = classifier.predict(pairs, verbose=0)
    expected = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-6)  # float32 rounding of other batches
    assert answers["label"].tolist() == [["bad", "good"][column] for column in expected.argmax(axis=-1)]


@pytest.mark.usefixtures("traces_nothing")
def test_a_single_row(classifier, backbone, preprocessor):
    rows = classifier.answer((["a good film"], ["night"]))
    answer = classifier.answer(("a good film", "night"))
    assert type(answer["label"]) is str
    assert answer["label"] == rows["label"][0]
    np.testing.assert_allclose(answer["probabilities"], rows["probabilities"][0], atol=1e-6)
    single = BertClassifier(backbone, num_classes=3, preprocessor=preprocessor)
    assert single.answer("a good film")["label"] in {"0", "1", "2"}
    assert single.answer(b"a good film")["probabilities"].shape == (3,)
    with pytest.raises(ValueError, match="this model takes pairs of texts. Received: single texts"):
        classifier.answer("a good film")
    with pytest.raises(ValueError, match="this model takes single texts. Received: pairs of texts"):
        BertClassifier(backbone, 2, preprocessor=preprocessor, pairs=False).answer(("a", "good"))


def test_texts_are_str():
    answers = {"label": np.array([["Kraków".encode(), b""], [b"\xff", b"a"]], object), "score": np.zeros((2, 1))}
    found = as_text(answers)
    assert found["label"].tolist() == [["Kraków", ""], ["\ufffd", "a"]]
    assert found["score"] is answers["score"]
    assert as_text({"label": np.zeros((0, 2), object)})["label"].shape == (0, 2)


def test_no_texts(classifier):
    answers = classifier.answer(([], []))
    assert answers["label"].shape == (0,)
    assert answers["probabilities"].shape == (0, 2)


def test_refuses(backbone, classifier):
    with pytest.raises(ValueError, match="this model takes pairs of texts. Received: single texts"):
        classifier.answer(["a"])
    with pytest.raises(ValueError, match="`batch_size`"):
        classifier.answer((["a"], ["good"]), batch_size=0)
    with pytest.raises(ValueError, match="`preprocessor` must be given for raw text"):
        BertClassifier(backbone, 2).answer(["a"])


def test_a_pair_for_a_model_without_pairs(backbone, preprocessor):
    classifier = BertClassifier(backbone, class_names=["bad", "good"], preprocessor=preprocessor)
    text = r"`pairs` must be True for answers to pairs of texts\. .*Set `task\.pairs = True`, or give `pairs=True`"
    with pytest.raises(ValueError, match=text):
        classifier.answer((["a good film"], ["night"]))


class TestPredictLabels:
    @pytest.mark.usefixtures("traces_nothing")
    def test_names(self, classifier):
        pairs = (["a good film", "night"], ["a bad film", ""])
        labels = classifier.predict_labels(pairs)
        assert labels.tolist() == classifier.answer(pairs)["label"].tolist()
        assert classifier.predict_labels(("a good film", "a bad film")) == labels[0]

    @pytest.mark.usefixtures("traces_nothing")
    def test_indices_without_names(self, backbone, preprocessor):
        classifier = BertClassifier(backbone, 3, preprocessor=preprocessor)
        texts = ["a good film", "night"]
        labels = classifier.predict_labels(texts)
        assert labels.dtype == np.int64
        assert labels.tolist() == classifier.predict(texts, verbose=0).argmax(axis=1).tolist()
        assert classifier.predict_labels(texts[0]) == labels[0]
