"""`keras.models.clone_model` of tasks and backbones."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertDualEncoder

TEXTS = ["a good film", "bad !"]


@pytest.fixture
def classifier(backbone, preprocessor):
    return BertClassifier(backbone, class_names=["bad", "good"], preprocessor=preprocessor)


def test_a_clone_is_a_task_with_its_text_part_and_new_weights(classifier, backbone, preprocessor):
    backbone.get_layer("embedding").trainable = False
    classifier.compile(keras.optimizers.SGD(0.25))
    ids = preprocessor(TEXTS)
    before = np.asarray(classifier(ids))
    clone = keras.models.clone_model(classifier)
    assert type(clone) is type(classifier) is BertClassifier
    assert clone.get_config() == classifier.get_config()
    assert clone.get_compile_config() == classifier.get_compile_config()
    assert [layer.trainable for layer in clone._flatten_layers()] == [
        layer.trainable for layer in classifier._flatten_layers()
    ]
    assert not {id(weight) for weight in clone.weights} & {id(weight) for weight in classifier.weights}
    assert np.abs(np.asarray(clone(ids)) - before).max() > 1e-3
    clone.set_weights(classifier.get_weights())
    np.testing.assert_allclose(clone(ids), before, atol=1e-6)  # float32 rounding


def test_backbones_and_models_that_hold_a_task(classifier, backbone):
    clone = keras.models.clone_model(backbone)
    assert type(clone) is BertBackbone
    assert clone.config == backbone.config
    outer = keras.Model(classifier.input, keras.layers.Dense(3)(classifier(classifier.input)))
    for recursive in (False, True):
        inner = keras.models.clone_model(outer, recursive=recursive).get_layer(classifier.name)
        assert type(inner) is BertClassifier
        assert inner is not classifier


def test_a_task_with_parts(backbone, preprocessor):
    encoder = BertDualEncoder(backbone, preprocessor=preprocessor)
    clone = keras.models.clone_model(encoder)
    assert type(clone) is BertDualEncoder
    ids = preprocessor(TEXTS)
    assert clone.predictor.part("query")(ids).shape == (2, 15)
    assert clone.predictor.part("query") is not encoder.predictor.part("query")


def scaled_inputs(model):
    return {name: keras.Input((None,), dtype="int32", name=name) * 1 for name in model.input}


@pytest.mark.parametrize(
    "options",
    [
        lambda model: {"clone_function": lambda layer: layer},
        lambda model: {"clone_function": lambda layer: keras.layers.Dense(2)},
        lambda model: {"call_function": lambda layer, *args, **kwargs: layer(*args, **kwargs)},
        lambda model: {"input_tensors": scaled_inputs(model)},
    ],
    ids=["same layers", "other layers", "call_function", "input_tensors"],
)
def test_refuses_what_a_config_does_not_describe(classifier, options):
    with pytest.raises(ValueError, match="`BertClassifier`: `keras.models.clone_model` must be called without `clone_"):
        keras.models.clone_model(classifier, **options(classifier))
    assert type(classifier) is BertClassifier


def test_takes_a_function_that_changes_nothing(classifier):
    clone = keras.models.clone_model(
        classifier, clone_function=lambda layer: type(layer).from_config(layer.get_config())
    )
    assert type(clone) is BertClassifier
