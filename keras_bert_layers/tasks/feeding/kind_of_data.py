"""`KindOfData`: what the parts that make batches need of a kind of data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Columns, Labels, Rows
from keras_bert_layers.tasks.feeding.epochs import Epochs

#: `x`, `y` and `sample_weight`, of all rows or of a batch; those at the end may be left out.
Parts = tuple[Any, ...]
#: From the epochs of training, or None for evaluation, to a dataset of encoded batches.
BatchMaker = Callable[[Epochs | None], Any]


class KindOfData(Protocol):
    """What the parts that make batches need of a kind of data. `tasks.inputs.Inputs`, which is one, documents it."""

    owner: str
    preprocessor: Any
    long_texts: Any
    prompt: str
    batches: Any
    cuts: Any
    column_names: Sequence[str] | None
    one_weight_per_row: bool
    columns_beside: int

    @property
    def text_inputs(self) -> Mapping[str, Any]:
        """The string inputs of the exported model."""

    @property
    def label_names(self) -> Sequence[str] | None:
        """The names of the labels in the order of their ids."""

    def read_together(self, columns: Columns) -> Any:
        """Texts, each of which is one sequence; None if long ones are not cut."""

    def is_raw(self, x: Rows) -> bool:
        """Whether `x` needs the preprocessor."""

    def table(self, x: Rows) -> Any:
        """A table as one whose columns can be read by name; anything else unchanged."""

    def columns(self, x: Rows) -> Any:
        """`x` as checked columns."""

    def labels(self, columns: Any, y: Labels) -> Any:
        """Checked labels, as the loss takes them."""

    def raw_labels(self, columns: Columns, y: Labels) -> Any:
        """Checked labels, as a dataset of raw rows has them."""

    def makes_labels(self, x: Rows) -> bool:
        """Whether labels are made from `x`."""

    def check_dataset(self, dataset: tf.data.Dataset) -> None:
        """Refuses a dataset of another kind of data."""

    def encoder(self, *, training: bool) -> Callable[..., Parts]:
        """A function from a batch of rows to ids, labels and weights."""

    def before_cut(self, x: Columns) -> Callable[..., Parts] | None:
        """What comes before the cut of a batch into the parts of processes; None if all encode the whole batch."""

    def encoded(self, rows: Any, epochs: Epochs | None) -> Any:
        """A dataset of checked batches, encoded."""

    def batches_of(self, x: Rows, y: Labels, sample_weight: Labels, *, batch_size: int | None) -> BatchMaker:
        """What makes a dataset of encoded batches of columns."""
