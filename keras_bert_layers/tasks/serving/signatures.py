"""The signatures that every task exports, ids in and outputs out, and those that `export` writes on request."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.export import Signature
from keras_bert_layers.export.batching import refuse_foreign_padding
from keras_bert_layers.export.text_task import TextTask
from keras_bert_layers.tasks.graphs.hidden_states import feature_model
from keras_bert_layers.tasks.inputs import FeatureInputs, Inputs
from keras_bert_layers.tasks.inputs.features import single_texts
from keras_bert_layers.tasks.prediction.windows import states_of_windows
from keras_bert_layers.tasks.serving.attribution import attribution_signature


def signature_of_ids(task: TextTask, name: str = "token_ids", part: str | None = None) -> Signature:
    """A signature that takes the ids of a model, or of a part of it, and returns its outputs by name.

    Padding that a server added to a batch is refused.

    Args:
        task: the task.
        name: the signature's name.
        part: the part that computes the outputs; None for `task.part`.
    """
    model_inputs = task.predictor.part(task.part).input
    added = () if task.preprocessor is None else task.pipeline.added_inputs
    names = [name for name in model_inputs if name not in added]

    def serve(*ids: Any, **ids_by_name: Any) -> dict[str, Any]:
        given = {**dict(zip(names, ids, strict=False)), **ids_by_name}
        token_ids = refuse_foreign_padding(type(task).__name__, given["token_ids"], given["padding_mask"])
        outputs = task.run({**given, "token_ids": token_ids}, part)
        return outputs if isinstance(outputs, dict) else {task.output_name: outputs}

    return Signature(name, serve, {key: (tuple(model_inputs[key].shape), model_inputs[key].dtype) for key in names})


def signature_of_vectors(name: str, inputs: Inputs, model: keras.Model) -> Signature:
    """A signature from strings to the features of tokens, words or texts.

    Args:
        name: the signature's name.
        inputs: `FeatureInputs` for tokens or words; else for texts.
        model: from ids to features.
    """
    run = functools.partial(traced_once, model, training=False)

    def serve(texts: Tensor) -> dict[str, Any]:
        if not isinstance(inputs, FeatureInputs):
            return {"features": run(inputs.tokens(texts))}
        return inputs.serve(lambda ids: states_of_windows(run, ids, inputs.preprocessor, model.output), texts)

    return Signature(name, serve, dict(inputs.text_inputs))


def signature_of_features(task: TextTask) -> Signature:
    """The signature `features` of a task: the last hidden states of the tokens of single texts, and their bytes."""
    owner, config = type(task).__name__, task.backbone.config
    inputs = FeatureInputs(owner, single_texts(owner, task.preprocessor), per="token", size=config.hidden_dim)
    return signature_of_vectors("features", inputs, feature_model(task.backbone, [config.num_layers], "concat"))


#: The signatures on request, by the name that `Task.export(signatures=...)` takes: task -> signature.
OPTIONAL_SIGNATURES: dict[str, Callable[[Any], Signature]] = {
    "features": signature_of_features,
    "attributions": attribution_signature,
}


def requested_signatures(task: TextTask, names: Sequence[str]) -> list[Signature]:
    """The signatures that `export` writes on request.

    Raises:
        TypeError, ValueError: not a sequence of names; an unknown name; the task cannot give that signature.
    """
    owner = type(task).__name__
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise TypeError(checks.message(owner, "signatures", "be a list of names", names))
    return [OPTIONAL_SIGNATURES[checks.one_of(owner, "signatures", name, OPTIONAL_SIGNATURES)](task) for name in names]
