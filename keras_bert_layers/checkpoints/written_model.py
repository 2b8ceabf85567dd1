"""`WrittenModel`: a model to write, with the checks that the writers of all dialects share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.checkpoints.files.metadata import Metadata
from keras_bert_layers.checkpoints.task_table import TASKS, TaskRow, task_of
from keras_bert_layers.checkpoints.weights.model_tensors import ModelTensors, weights_by_row
from keras_bert_layers.checkpoints.weights.table import Layout, WeightRow
from keras_bert_layers.config import BertConfig
from keras_bert_layers.export.text_task import refuse_columns
from keras_bert_layers.layers.adapters import refuse_adapters
from keras_bert_layers.preprocessing import BertPreprocessor, BertTokenizer, SpanPreprocessor

if TYPE_CHECKING:
    import keras

    from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer

if TYPE_CHECKING:
    import keras

# Arguments of a tokenizer that only HuggingFace's files can state.
_HUGGINGFACE_ONLY = ("added_tokens", "special_tokens")


class WrittenModel:
    """A model to write in a dialect, with its task, its config and its preprocessor.

    Args:
        model: a `BertBackbone` or a task.
        layout: the dialect.
        preprocessor: the preprocessor; the task's own if None.
        owner: the public function that was called, for errors.
        cure: what to do with a task that the dialect does not have.

    Raises:
        TypeError: the model is neither a `BertBackbone` nor a task that the dialect has; `preprocessor` is not a
            `BertPreprocessor`.
        ValueError: a classifier does not read BERT's pooler; another layout than HuggingFace's has no place for
            parts that are not BERT's, nor for SentencePiece.
    """

    def __init__(
        self, model: keras.Model, layout: Layout, preprocessor: TextLayer | None = None, *, owner: str, cure: str = ""
    ):
        self.task: TaskRow | None = task_of(model)
        # The model's class in the dialect; None for an encoder.
        self.counterpart: str | None = None if self.task is None else self.task.counterpart(layout)
        if not isinstance(model, BertBackbone) and self.counterpart is None:
            names = [row.class_name for row in TASKS.values() if row.counterpart(layout)]
            rule = f"be one of {', '.join(['BertBackbone', *names])}"
            raise TypeError(checks.message(owner, "model", rule, model, cure))
        if not isinstance(preprocessor, BertPreprocessor | SpanPreprocessor | None):
            raise TypeError(checks.message(owner, "preprocessor", "be a BertPreprocessor or None", preprocessor))
        refuse_adapters(owner, model)
        self.model, self.layout, self.owner = model, layout, owner
        self.backbone: BertBackbone = model if self.task is None else model.backbone
        checks.instance(owner, "model.backbone", self.backbone, BertBackbone, "Save a `.keras` file.")
        self.config: BertConfig = self.backbone.config
        if layout != Layout.HUGGINGFACE and not self.backbone.parts.are_of_bert:
            cure = "This layout has no place for other parts. Save a `.keras` file."
            raise ValueError(checks.message(owner, "model.parts", "be BERT's own", self.backbone.parts, cure))
        self.preprocessor: Any = getattr(model, "preprocessor", None) if preprocessor is None else preprocessor
        tokenizer = getattr(self.preprocessor, "tokenizer", None)
        if layout != Layout.HUGGINGFACE and not isinstance(tokenizer, BertTokenizer | None):
            cure = "`save_huggingface` writes other tokenizers."
            raise ValueError(checks.message(owner, "preprocessor.tokenizer", "be a BertTokenizer", tokenizer, cure))
        self.name = None if self.task is None else self.task.name
        cure = "Other libraries have no place for columns beside a text. Save a `.keras` file, or export a SavedModel."
        refuse_columns(owner, model, cure)
        if self.name == "classifier" and model.pooling is not None:
            cure = (
                "The classifiers of other libraries read BERT's own pooler. Save a `.keras` file, or export the model."
            )
            raise ValueError(checks.message(owner, "model.pooling", "be None", model.pooling, cure))
        self.head = () if self.task is None else self.task.head_of(model)

    @property
    def vocabulary(self) -> list[str]:
        """The tokens of the preprocessor; ValueError for a tokenizer with more than a vocabulary."""
        options = self.preprocessor.tokenizer.get_config()
        for name in _HUGGINGFACE_ONLY:
            if options[name]:
                cure = "Only `save_huggingface` has a place for it."
                raise ValueError(checks.message(self.owner, f"tokenizer.{name}", "be empty", options[name], cure))
        return options["vocabulary"]

    def check_weights(self, rows: Sequence[WeightRow]) -> None:
        """Refuses a model that would lose weights: each must have one of the rows, and each row a weight."""
        try:
            weights_by_row(self.model, rows)
            absent = [row.ours for row in rows if row.stored(self.layout) is None]
            if absent:
                raise LookupError(f"The layout has no such weight: {', '.join(absent)}. Save a `.keras` file.")
        except LookupError as error:
            rule = "have BERT's own weights and no others"
            raise ValueError(checks.message(self.owner, "model", rule, self.model, str(error))) from error

    def tensors(self, rows: Sequence[WeightRow], rename: Callable[[str], str] = str) -> ModelTensors:
        """The weights of these rows; `rename` converts the table's names to the file's."""
        return ModelTensors(self.model, rows, self.layout, num_heads=self.config.num_heads, rename=rename)

    def metadata(self, options: dict[str, Any], **parts: int | None) -> Metadata:
        """The metadata with these options of the task."""
        tokenizer = None
        if self.preprocessor is not None:
            arguments = self.preprocessor.tokenizer.get_config()
            tokenizer = {
                name: value for name, value in arguments.items() if name not in ("vocabulary", *_HUGGINGFACE_ONLY)
            }
        return Metadata(self.config, tokenizer, self.name, options, **parts)

    def warn_of_differences(self, reader: str, settings: Iterable[tuple[str, Any, Any]], also: str = "") -> bool:
        """Warns if the dialect's own code computes something else from the files.

        Args:
            reader: the dialect's own code, such as "KerasHub".
            settings: name, our value, and the value that the dialect's code uses.
            also: a sentence to add to the warning, about another difference, with a space at its end.

        Returns:
            Whether there is a difference.
        """
        lost = [f"{name}={ours!r} (there {theirs!r})" for name, ours, theirs in settings if ours != theirs]
        if lost:
            warnings.warn(
                f"`{self.owner}`: {reader} has no setting for {', '.join(lost)}: it computes other outputs from these "
                f"files, or none. {also}This package loads the directory exactly.",
                stacklevel=3,
            )
        return bool(lost)
