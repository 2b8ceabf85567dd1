"""Model handlers for Beam's `RunInference`: strings in, answers out, from a SavedModel or an ONNX file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import extensions_library
from keras_bert_layers.export.signature import TEXT_INPUTS, strings_for_onnx

try:
    from apache_beam.ml.inference.base import ModelHandler, PredictionResult
except ModuleNotFoundError:

    class ModelHandler:  # type: ignore[no-redef]
        """Stands for Beam's class where Beam is not installed, so that this module can be imported and documented."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            """Raises the error."""
            cure = 'Install it with `pip install "keras-bert-layers[beam]"`.'
            raise ModuleNotFoundError(f"`{cls.__name__}`: needs Apache Beam. {cure}", name="apache_beam")


_STRINGS = {"dtype": "string", "shape": [None]}

#: Columns of strings, one for each input of the model, to name -> array, rows first.
Model = Callable[..., dict[str, np.ndarray]]


class _TextHandler(ModelHandler):
    """Checks rows, and runs them in steps of similar length; a subclass loads the model."""

    _inputs: Sequence[str] = ("text",)

    def __init__(
        self, path: str | Path, *, max_batch_size: int = 4096, max_step_bytes: int = 16384, check_rows: bool = True
    ):
        super().__init__()
        self._owner, self._path = type(self).__name__, fspath(path)
        self._max_batch_size = checks.positive_integer(self._owner, "max_batch_size", max_batch_size)
        self._max_step_bytes = checks.positive_integer(self._owner, "max_step_bytes", max_step_bytes)
        self._check_rows = checks.boolean(self._owner, "check_rows", check_rows)

    def check_row(self, row: str | bytes | tuple[str, ...]) -> Any:
        """A row, if the model can read it.

        Args:
            row: a string, or a tuple of strings for a model of several texts.

        Raises:
            TypeError: it is something else. The message has the types of its content, and not the content.
        """
        texts, count = self._texts(row), len(self._inputs)
        has_all = isinstance(texts, tuple | list) and len(texts) == count
        if not has_all or not all(isinstance(text, str) for text in texts):
            rule = "be a string" if count == 1 else f"be a tuple of {count} strings, {' and '.join(self._inputs)}"
            kind = type(row).__name__
            if isinstance(row, tuple | list):
                kind += f" of {len(row)}: {', '.join(sorted({type(value).__name__ for value in row}))}"
            raise TypeError(checks.row_message(self._owner, f"each row must {rule}", kind))
        return row

    def run_inference(
        self, batch: Sequence[Any], model: Model, inference_args: Mapping[str, Any] | None = None
    ) -> Iterable[Any]:
        """The answers to a batch, in its order; Beam calls this."""
        rows = [self._texts(self.check_row(row)) for row in batch]
        inferences: list[Any] = [None] * len(rows)
        for step in self._steps([_num_bytes(texts) for texts in rows]):
            answers = model(*zip(*(rows[index] for index in step), strict=True))
            for position, index in enumerate(step):
                inferences[index] = {name: array[position] for name, array in answers.items()}
        return [PredictionResult(row, found, self._path) for row, found in zip(batch, inferences, strict=True)]

    def _steps(self, sizes: Sequence[int]) -> Iterator[list[int]]:
        """Indices of rows, the longest first, in steps whose padded size is bounded."""
        step: list[int] = []
        for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
            if step and (len(step) + 1) * sizes[step[0]] > self._max_step_bytes:
                yield step
                step = []
            step.append(index)
        if step:
            yield step

    def get_preprocess_fns(self) -> list[Callable[[Any], Any]]:
        """What Beam does with each row before it makes batches, so that a bad row fails alone."""
        return [self.check_row] if self._check_rows else []

    def validate_inference_args(self, inference_args: Mapping[str, Any] | None) -> None:
        """ValueError if there are any."""
        if inference_args:
            raise ValueError(checks.message(self._owner, "inference_args", "be None", inference_args))

    def update_model_path(self, model_path: str | None = None) -> None:
        """The model that is loaded next, of the same inputs, where Beam watches for new ones."""
        self._path = model_path or self._path

    def batch_elements_kwargs(self) -> Mapping[str, Any]:
        """Batches as large as a bundle allows, up to `max_batch_size`: steps are made of them by length."""
        return {"min_batch_size": self._max_batch_size, "max_batch_size": self._max_batch_size}

    def get_num_bytes(self, batch: Sequence[Any]) -> int:
        """The number of UTF-8 bytes of all texts of a batch."""
        return sum(_num_bytes(self._texts(row)) for row in batch)

    def get_metrics_namespace(self) -> str:
        """Where Beam's counters are: rows, bytes and latency of batches, the time to load, the memory."""
        return "BeamML_KerasBertLayers"

    def _texts(self, row: str | bytes | tuple[str, ...]) -> Any:
        return (row,) if len(self._inputs) == 1 else row


class SavedModelHandler(_TextHandler):
    """Runs a SavedModel that `task.export` wrote in an Apache Beam pipeline: `RunInference(SavedModelHandler(path))`.

    An element is a string, or a tuple of strings for a model of several texts, such as `(text, text_pair)` or
    `(question, context)`. The result is a `PredictionResult` of the element, a dictionary of its answers, and the path.
    The answers are those of the signature without the batch axis; strings are `str`.

    A worker loads the model once. The rows of a batch are sorted by their number of bytes and run in steps of similar
    length. With `RunInference(...).with_exception_handling()`, a row that the model cannot read goes to
    `failed_preprocessing` alone; every other row gets its answer.

    Args:
        path: the folder of the SavedModel, on a disk that the workers see under this path.
        signature: its signature; all inputs must be strings `(batch,)`.
        **options: `max_batch_size`, `max_step_bytes` and `check_rows`, as for `OnnxHandler`.

    Raises:
        ModuleNotFoundError: Apache Beam is not installed.
        FileNotFoundError: `path` has no model card.
        ValueError: there is no such signature, or it takes something other than one string per row and input.

    References:
        Apache Beam, `apache_beam.ml.inference.base.ModelHandler`.
    """

    def __init__(self, path: str | Path, signature: str = "serving_default", **options: Any):
        from keras_bert_layers.export.model_card import read_model_card

        super().__init__(path, **options)
        signatures = read_model_card(path)["signatures"]
        inputs = signatures[checks.one_of(self._owner, "signature", signature, sorted(signatures))]["inputs"]
        if set(inputs) - set(TEXT_INPUTS) or any(put != _STRINGS for put in inputs.values()):
            rule = f"take strings of shape (batch,) alone, of {list(TEXT_INPUTS)}"
            raise ValueError(checks.message(self._owner, "signature", rule, signature, f"It takes {inputs}."))
        self._inputs = sorted(inputs, key=TEXT_INPUTS.index)
        self._signature = signature

    def load_model(self) -> Model:
        """Loads the SavedModel; Beam calls this once per worker process."""
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  registers the tokenizer's operations

        module = tf.saved_model.load(self._path)
        signature, names = module.signatures[self._signature], self._inputs

        def run(*columns: Sequence[str]) -> dict[str, np.ndarray]:
            found = signature(**{name: tf.constant(texts) for name, texts in zip(names, columns, strict=True)})
            return {name: _decoded(tensor.numpy()) for name, tensor in found.items()}

        run.module = module  # type: ignore[attr-defined]  # a signature does not keep its variables
        return run


class OnnxHandler(_TextHandler):
    """Runs an ONNX file that `export(format="onnx")` wrote in an Apache Beam pipeline, without TensorFlow.

    Elements, results, batches and bad rows are as for `SavedModelHandler`. On Linux, onnxruntime-extensions cannot run
    in a process that has imported TensorFlow before.

    Args:
        path: the file, on a disk that the workers see under this path.
        inputs: the names of the file's inputs, in the order of the strings of an element.
        **options: `max_batch_size` (4096), the most rows that are sorted together; a bundle that ends earlier makes a
            smaller batch. `max_step_bytes` (16384), the most UTF-8 bytes of a step, counted as if all its rows were as
            long as the longest one; a row that is longer is a step of its own. A token has three to five bytes in most
            languages, so the default is about 4096 tokens. `check_rows` (True): whether each row is checked before
            batches are made. False for a handler inside Beam's `KeyedModelHandler`, which refuses handlers that look
            at rows, and for `with_no_batching()`. A bad row then fails with its batch; see `check_row`.

    Raises:
        ModuleNotFoundError: Apache Beam is not installed; in a worker, ONNX Runtime or its extensions are not.
        ValueError: `inputs` has an unknown name.
    """

    def __init__(self, path: str | Path, inputs: Sequence[str] = ("text",), **options: Any):
        super().__init__(path, **options)
        self._inputs = [checks.one_of(self._owner, "inputs", name, list(TEXT_INPUTS)) for name in inputs]

    def load_model(self) -> Model:
        """Loads the file; Beam calls this once per worker process."""
        from onnxruntime import InferenceSession, SessionOptions

        options = SessionOptions()
        options.register_custom_ops_library(extensions_library())
        session = InferenceSession(self._path, options)
        names = [output.name for output in session.get_outputs()]

        def run(*columns: Sequence[str]) -> dict[str, np.ndarray]:
            given = {name: strings_for_onnx(column) for name, column in zip(self._inputs, columns, strict=True)}
            return dict(zip(names, session.run(names, given), strict=True))

        return run


def _num_bytes(texts: Iterable[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def _decoded(array: np.ndarray) -> np.ndarray:
    """The array, with strings as `str` in place of bytes."""
    return np.vectorize(bytes.decode, otypes=[object])(array) if array.dtype == object else array
