"""`TextTask`: what an export, and the parts of a task, need of a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Ids, Outputs, Rows, Shape, Tensor
from keras_bert_layers.export.signature import Signature

if TYPE_CHECKING:
    import keras

    from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer


class TextTask(Protocol):
    """A Keras model over ids that takes raw text too. `tasks.Task`, which is one, documents each member.

    The parts of a task are below it and cannot import it: they know it as this.
    """

    backbone: Any
    pipeline: Any
    predictor: Any
    part: str | None
    output_name: str
    output: Any
    layers: list[Any]
    optimizer: Any
    loss: Any
    compiled: bool
    steps_per_execution: int
    dtype_policy: Any
    train_function: Any
    test_function: Any
    trainable_variables: list[Any]
    default_loss_weights: dict[str, float] | None
    weighs_metrics: bool
    compares_cosines: bool
    preprocessor: TextLayer | None
    long_texts: Any

    def default_loss(self) -> Any:
        """The loss of `compile(loss="auto")`."""

    def default_metrics(self) -> Any:
        """The metrics of `compile(metrics="auto")`."""

    def forget_traces(self) -> None:
        """Drops all traced functions."""

    def predict(self, x: Rows, *arguments: Any, **options: Any) -> Any:
        """The model's outputs as NumPy arrays."""

    def predict_stream(self, x: Rows, *arguments: Any, **options: Any) -> Iterator[Any]:
        """The outputs row by row."""

    def run(self, ids: Ids, part: str | None = None) -> Outputs:
        """The outputs for ids, in graph."""

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """The answers of `serving_default`, in graph."""

    def serve_prompted(self, prompt: str, *texts: Tensor) -> dict[str, Any]:
        """The answers to texts that are read after a prompt, of a task that has prompts."""

    def text_inputs(self) -> dict[str, tuple[Shape, str]]:
        """The string inputs of the signatures."""

    def signatures(self) -> list[Signature]:
        """The signatures of the exported model."""

    def encode_documents(self, texts: Rows, *arguments: Any, **options: Any) -> Any:
        """The vectors of documents, of an encoder of texts."""

    def serve_side(self, side: str, texts: Tensor) -> Any:
        """The vectors of queries or documents in graph, of an encoder of texts."""

    def onnx_side(self, side: str, model: Any, texts: Any) -> Any:
        """The same in an ONNX file."""

    def onnx_functions(self) -> Mapping[str, Any]:
        """The functions of strings that an ONNX file may have as its signature."""

    def onnx_outputs(self, model: Any, rows: Any) -> dict[str, Any]:
        """The outputs for rows of ids in an ONNX file."""

    def get_layer(self, name: str) -> keras.layers.Layer:
        """A layer by its name."""

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""

    def get_compile_config(self) -> dict[str, Any]:
        """How the model is compiled."""

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as a config says."""

    def count_params(self) -> int:
        """The number of weights."""


def refuse_columns(owner: str, task: Any, cure: str) -> None:
    """ValueError for a task that reads columns beside a text, where only texts are read."""
    if (columns := getattr(task, "columns", None)) is not None:
        raise ValueError(checks.message(owner, "task.columns", "be None, for a task of texts alone", columns, cure))
