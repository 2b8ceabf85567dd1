"""Signatures of features: strings in, vectors of tokens, words or texts out."""

import functools
from collections.abc import Callable
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers.export import Signature
from keras_bert_layers.tasks.graphs.hidden_states import feature_model
from keras_bert_layers.tasks.inputs import FeatureInputs, Inputs
from keras_bert_layers.tasks.inputs.features import single_texts
from keras_bert_layers.tasks.inputs.inputs import TEXT
from keras_bert_layers.tasks.prediction.parts import outputs_of_windows


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
        preprocessor, axes = inputs.preprocessor, model.output.shape[2:]
        return lambda texts: inputs.serve(lambda ids: outputs_of_windows(run, ids, preprocessor, axes), texts)
    return lambda texts: {"features": run(inputs.tokens(texts))}
