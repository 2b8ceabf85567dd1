"""Signatures of features: strings in, vectors of tokens, words or texts out."""

import functools
from collections.abc import Callable
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers.export import Signature
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import padded_width
from keras_bert_layers.tasks.graphs.hidden_states import feature_model
from keras_bert_layers.tasks.inputs import FeatureInputs, Inputs
from keras_bert_layers.tasks.inputs.features import single_texts
from keras_bert_layers.tasks.inputs.inputs import TEXT
from keras_bert_layers.tasks.prediction.parts import in_parts


def signature_of_features(task: Any) -> Signature:
    """The signature `features` of a task: the last hidden states of the tokens of single texts, and their bytes."""
    preprocessor = single_texts(task.preprocessor)
    if preprocessor is None:
        rule = 'be given for the signature "features", which takes strings'
        raise ValueError(checks.message(type(task).__name__, "preprocessor", rule, None))
    config = task.backbone.config
    inputs = FeatureInputs(type(task).__name__, preprocessor, per="token", size=config.hidden_dim)
    model = feature_model(task.backbone, [config.num_layers], "concat")
    return Signature("features", served(inputs, model), {"text": TEXT})


def served(inputs: Inputs, model: keras.Model) -> Callable[[Any], dict[str, Any]]:
    """A function in graph from strings `(batch,)` to the features of tokens, words or texts, by name.

    Args:
        inputs: `FeatureInputs` for tokens or words; else for texts.
        model: from ids to features.
    """
    run = functools.partial(traced_once, model, training=False)
    if isinstance(inputs, FeatureInputs):
        return functools.partial(inputs.serve, functools.partial(_run_windows, run, inputs, model.output.shape[2:]))
    return lambda texts: {"features": run(inputs.tokens(texts))}


def _run_windows(run: Callable[..., Any], inputs: Inputs, axes: tuple[int, ...], windows: dict[str, Any]) -> Any:
    """The features of any number of windows, `(windows, sequence, ...)`."""
    sequence = tf.shape(windows["token_ids"])[1]

    def run_part(part: dict[str, Any]) -> tuple[Any]:
        states = run(part)
        missing = sequence - tf.shape(states)[1]
        return (tf.pad(states, [[0, 0], [0, missing], *([0, 0] for _ in axes)]),)

    preprocessor = inputs.preprocessor
    width = functools.partial(padded_width, padding=preprocessor.padding, max_length=preprocessor.max_length)
    return in_parts(run_part, windows, width=width, sizes=((tf.float32, (None, *axes)),))[0]
