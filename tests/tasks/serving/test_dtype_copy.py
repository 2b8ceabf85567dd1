import keras
import numpy as np
import pytest

from keras_bert_layers import BertClassifier, BertDualEncoder
from keras_bert_layers.tasks.serving.export import copy_in_dtype


def values(model):
    return [keras.ops.convert_to_numpy(weight).astype("float32") for weight in model.weights]


def test_weights_are_rounded_and_heads_stay_float32(backbone, preprocessor):
    classifier = BertClassifier(backbone, class_names=["bad", "good"], preprocessor=preprocessor, name="critic")
    copy = copy_in_dtype(classifier, "bfloat16")
    head = {id(weight) for weight in copy.get_layer("classification_head").weights}
    assert [weight.dtype for weight in copy.weights if id(weight) in head] == ["float32", "float32"]
    assert {weight.dtype for weight in copy.weights if id(weight) not in head} == {"bfloat16"}
    for ours, theirs in zip(values(copy), values(classifier), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2**-8)  # bfloat16 keeps 8 bits
    assert {**copy.get_config(), "backbone": None} == {**classifier.get_config(), "backbone": None}


def test_the_model_stays_as_it_was(backbone):
    classifier = BertClassifier(backbone, 3)
    classifier.compile(optimizer="sgd", loss="mse", metrics=[], jit_compile=True)
    before, functions = values(classifier), (classifier.train_function, classifier.predict_function)
    copy = copy_in_dtype(classifier, "bfloat16")
    assert copy.backbone is not classifier.backbone
    assert classifier.dtype_policy.name == backbone.dtype_policy.name == "float32"
    assert (classifier.loss, type(classifier.optimizer), classifier.jit_compile) == ("mse", keras.optimizers.SGD, True)
    assert (classifier.train_function, classifier.predict_function) == functions
    for ours, theirs in zip(values(classifier), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_float32_and_back(backbone):
    half = copy_in_dtype(BertClassifier(backbone, 3), "bfloat16")
    again = copy_in_dtype(half, "float32")
    assert {weight.dtype for weight in again.weights} == {"float32"}
    for ours, theirs in zip(values(again), values(half), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_every_backbone_of_a_model(backbone):
    other = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(backbone))
    other.name = "documents"
    copy = copy_in_dtype(BertDualEncoder(backbone, other), "bfloat16")
    assert [part.compute_dtype for part in copy._backbones()] == ["bfloat16", "bfloat16"]


class Growing(BertClassifier):
    """Comes back from its config with more classes."""

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return super().from_config({**config, "num_classes": 5}, custom_objects)


def test_weights_that_the_config_does_not_make(backbone):
    with pytest.raises(ValueError, match="`export`: `dtype` must be None. Received: dtype='bfloat16'. The model's"):
        copy_in_dtype(Growing(backbone, 3), "bfloat16")
