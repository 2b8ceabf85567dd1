"""`export_task`: a SavedModel or an ONNX file of a task, with warm-up requests and the facts of a model card."""

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.config import COLUMNS
from keras_bert_layers.export import Signature, write_saved_model
from keras_bert_layers.export.onnx import write_onnx
from keras_bert_layers.export.saved_model import check_destination
from keras_bert_layers.export.signature import TEXT_INPUTS, check_max_bytes, with_bound
from keras_bert_layers.export.text_task import TextTask
from keras_bert_layers.layers.initializers import replaced_weights
from keras_bert_layers.preprocessing.engines import engine
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.graphs.heads import backbones_of
from keras_bert_layers.tasks.serving.signatures import requested_signatures

_BACKBONES = ("BertBackbone", "StaticBackbone")
_OTHER_FORMATS = {
    ".onnx": 'For an ONNX file, give format="onnx".',
    ".keras": "A .keras file, which trains on, is written by `save`.",
}


def copy_in_dtype(model: keras.Model, dtype: str) -> Any:
    """Copies a model, its backbones with another dtype policy, and converts the weights.

    The other layers follow the backbones; weights that are float32 under every policy stay float32. Weights are copied
    one by one, so that memory holds both models and one weight.

    Args:
        model: a model that `from_config` makes from its `get_config`, with the backbones in the config.
        dtype: name of the policy.

    Returns:
        The copy, compiled with the defaults.

    Raises:
        ValueError: the model's weights differ from those that its config makes.
    """
    with replaced_weights():
        copy = type(model).from_config(_with_backbones_in(dtype, model.get_config()))
    if [weight.shape for weight in copy.weights] != [weight.shape for weight in model.weights]:
        cure = "The model's weights differ from those that `get_config` describes, as after `quantize`."
        raise ValueError(checks.message("export", "dtype", "be None", dtype, cure))
    for ours, theirs in zip(copy.weights, model.weights, strict=True):
        ours.assign(theirs)
    return copy


def _with_backbones_in(dtype: str, config: Any) -> Any:
    """A config with the dtype of every backbone in it replaced."""
    if isinstance(config, list):
        return [_with_backbones_in(dtype, part) for part in config]
    if not isinstance(config, dict):
        return config
    config = {key: _with_backbones_in(dtype, part) for key, part in config.items()}
    if config.get("class_name") in _BACKBONES:
        config["config"]["dtype"] = dtype
    return config


def check_strings() -> None:
    """Raises a RuntimeError where text is read in Python, which a SavedModel cannot hold."""
    if not engine.text_engine().IN_GRAPH:
        raise RuntimeError(
            "`export`: signatures of strings need tensorflow-text, whose operations read text inside the SavedModel. "
            "Received: tensorflow-text is not installed; there is none for Windows. Export the ids alone: "
            '`write_saved_model(path, [s for s in task.signatures() if s.name == "token_ids"])`. Or save the task with '
            '`task.save("model.keras")`, and load and export it on Linux or a Mac. Or give `format="onnx"`.'
        )


# One text of a row may be long: longer than a model reads at once, with something to find in it. The others must fit
# beside it, whatever `max_length` is.
_WORDS = "The man went to the [MASK] in New York. "
LONG_COLUMN = (_WORDS.strip(), _WORDS * 80, "")
OTHER_COLUMNS = ("Who?", "Who?", "")


def export_task(
    task: keras.Model,
    filepath: str | PathLike[str],
    format: str,  # noqa: A002 - Keras's name
    *,
    dtype: str | None,
    version: int | str | None,
    max_bytes: int | None,
    warm_up: bool,
    signatures: Sequence[str],
    verbose: bool,
) -> Path:
    """Writes a task as a SavedModel or as an ONNX file; see `Task.export`."""
    owner = type(task).__name__
    task.predictor.warn_of_new_head()
    if checks.one_of(owner, "format", format, ["tf_saved_model", "onnx"]) == "onnx":
        if version is not None:
            raise ValueError(checks.message(owner, "version", 'be None with format="onnx", which is a file', version))
        facts = facts_of(task, max_bytes) | {"parameters": task.count_params()}
        if len(signatures) > 1:
            rule = 'name at most one signature, whose inputs and outputs the file has, with format="onnx"'
            raise ValueError(checks.message(owner, "signatures", rule, list(signatures)))
        signature = next(iter(signatures), "serving_default")
        path = write_onnx(
            filepath, task, dtype=dtype or "float32", signature=signature, max_bytes=max_bytes, facts=facts
        )
    else:
        if (suffix := Path(filepath).suffix) in _OTHER_FORMATS:
            raise ValueError(checks.message(owner, "filepath", "name a folder", str(filepath), _OTHER_FORMATS[suffix]))
        options: dict[str, Any] = {"dtype": dtype, "version": version, "max_bytes": max_bytes, "warm_up": warm_up}
        path = _export_saved_model(task, filepath, requested=signatures, **options)
    if verbose:
        sys.stdout.write(f"Saved the model at {path}\n")
    return path


def _export_saved_model(
    task: TextTask,
    filepath: str | PathLike[str],
    *,
    requested: Sequence[str],
    dtype: str | None,
    version: int | str | None,
    max_bytes: int | None,
    warm_up: bool,
) -> Path:
    owner = type(task).__name__
    cure = "On a CPU float16 is no faster than float32; take bfloat16." if dtype == "float16" else ""
    checks.one_of(owner, "dtype", dtype, [None, "bfloat16", "float32"], cure)
    checks.boolean(owner, "warm_up", warm_up)
    check_max_bytes(owner, max_bytes)
    check_destination(filepath, version)
    if task.preprocessor is not None:
        check_strings()
    model = task if dtype is None else copy_in_dtype(task, dtype)
    with set_for_serving(model):
        all_signatures = [*model.signatures(), *requested_signatures(model, requested)]
        signatures = [with_bound(signature, max_bytes) for signature in all_signatures]
        requests = requests_of(model, signatures) if warm_up else None
        facts = facts_of(model, max_bytes)
        return write_saved_model(filepath, signatures, version=version, warm_up=requests, facts=facts)


@contextmanager
def set_for_serving(task: TextTask) -> Iterator[None]:
    """Context in which rows hold one text and padding is not computed, without XLA, which a server may lack."""
    before = [(backbone, backbone.padding_free, backbone.packed_rows) for backbone in backbones_of(task)]
    try:
        for backbone, _, _ in before:
            backbone.padding_free, backbone.packed_rows = True, False
        yield
    finally:
        for backbone, padding_free, packed_rows in before:
            backbone.padding_free, backbone.packed_rows = padding_free, packed_rows


def requests_of(task: TextTask, signatures: Sequence[Signature]) -> dict[str, list[dict[str, np.ndarray]]]:
    """For each signature, a request of one row, and one of a short, a long and an empty text."""
    return {
        signature.name: [_request(task, signature, rows) for rows in (1, len(LONG_COLUMN))] for signature in signatures
    }


def _request(task: TextTask, signature: Signature, rows: int) -> dict[str, np.ndarray]:
    texts = [name for name, (_, dtype) in signature.inputs.items() if dtype == "string" and name in TEXT_INPUTS]
    shortens_first = getattr(task.preprocessor, "truncation", None) == "only_first"
    long = texts[0 if shortens_first else -1] if texts else None
    return {
        name: _texts(shape, name == long, rows) if dtype == "string" else _ids(task, name, shape, rows).astype(dtype)
        for name, (shape, dtype) in signature.inputs.items()
    }


def _texts(shape: tuple[int | None, ...], is_long: bool, rows: int) -> np.ndarray:
    texts = np.array((LONG_COLUMN if is_long else OTHER_COLUMNS)[:rows], object)
    return texts if len(shape) == 1 else np.stack([texts, texts[::-1]], axis=1)


def _ids(task: TextTask, name: str, shape: tuple[int | None, ...], rows: int) -> np.ndarray:
    """The ids of as many tokens as a short text, a long one and an empty one have."""
    if name == COLUMNS or len(shape) == 1:  # what stands beside a text
        return np.zeros([rows, *([task.pipeline.features.width] if name == COLUMNS else [])])
    config = task.backbone.config
    width = min(config.max_sequence_length, 8 if rows == 1 else 128)
    real = np.arange(width) < np.array([8, width, 2])[:rows, None]  # [rows, width]
    values = {
        "token_ids": np.arange(width) % config.vocabulary_size * real,
        "padding_mask": real,
        "mask_positions": np.ones((rows, 1)),
    }.get(name, np.zeros((rows, width)))
    return np.repeat(values[:, None], 2, axis=1) if len(shape) == 3 else values


def facts_of(task: TextTask, max_bytes: int | None) -> dict[str, Any]:
    """The facts of a task for its model card, of types that JSON can hold."""
    options = {key: value for key, value in task.get_config().items() if key not in _PARTS}
    found = {
        "task": type(task).__name__,
        "options": options,
        "backbone": task.backbone.config.to_dict(),
        "dtype": task.dtype_policy.name,
    }
    if tasks := getattr(task, "tasks", None):
        found["tasks"] = {name: facts_of(part, max_bytes) for name, part in tasks.items()}
    elif task.preprocessor is not None:
        found["preprocessing"] = _preprocessing(task.preprocessor, max_bytes)
    return found


_PARTS = ("backbone", "preprocessor", "document_backbone", "document_preprocessor", "tasks", "trainable", "dtype")


def _preprocessing(preprocessor: TextLayer, max_bytes: int | None) -> dict[str, Any]:
    tokenizer = preprocessor.tokenizer.get_config()
    vocabulary = "".join(f"{token}\n" for token in tokenizer.pop("vocabulary"))
    options = {key: value for key, value in preprocessor.get_config().items() if key not in ("tokenizer", "dtype")}
    return {
        **{key: value for key, value in options.items() if key not in ("name", "trainable")},
        "max_bytes": max_bytes,
        "tokenizer": tokenizer,
        "vocabulary_sha256": hashlib.sha256(vocabulary.encode()).hexdigest(),
        "vocabulary_size": preprocessor.tokenizer.vocabulary_size(),
    }
