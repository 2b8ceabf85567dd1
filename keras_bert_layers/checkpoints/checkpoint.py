"""`Checkpoint`: what every kind of stored model offers to those who read it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from keras_bert_layers.checkpoints.tensor_file import TensorFile
from keras_bert_layers.checkpoints.weight_row import Layout, WeightRow
from keras_bert_layers.config import BertConfig

if TYPE_CHECKING:  # Keras comes with it, and who only looks at a checkpoint does without
    from keras_bert_layers.preprocessing import BertTokenizer


@dataclasses.dataclass(frozen=True)
class StatedTask:
    """A task whose trained head a checkpoint holds.

    Args:
        name: a `task` of `load_task`.
        options: what the task's class takes beside the backbone and the preprocessor, as the checkpoint states it.
        rows: the head's rows of the table of weight names; empty for a task without weights of its own.
    """

    name: str
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    rows: tuple[WeightRow, ...] = ()


class Checkpoint(Protocol):
    """A checkpoint as its files say it. `str(checkpoint)` is what errors and reports call it.

    Nothing is read before it is asked for. Everything raises `CheckpointError` for files that are missing, damaged, or
    say what this package does not implement.
    """

    layout: Layout

    @property
    def config(self) -> BertConfig:
        """The encoder's config; every key of the file is honoured or refused."""
        ...

    def open_weights(self) -> TensorFile:
        """The tensors, under the names of the file; opened and checked, not read."""
        ...

    def stored_names(self, names: Iterable[str]) -> dict[str, str]:
        """The table's name -> the file's name, for every tensor of the file."""
        ...

    def ignored_reason(self, name: str) -> str | None:
        """Why a tensor of this table name, for which no row stands, may be left out; None if it may not."""
        ...

    def tokenizer_options(self) -> dict[str, Any]:
        """The arguments of the tokenizer, as the files describe them, the vocabulary first."""
        ...

    def tokenizer(self) -> BertTokenizer:
        """The tokenizer that these arguments make."""
        ...

    def max_length(self) -> int:
        """The longest text in tokens, special tokens included."""
        ...

    def stated_tasks(self) -> tuple[StatedTask, ...]:
        """Every task that the trained head can serve, the one that the checkpoint names first; none if it has none."""
        ...
