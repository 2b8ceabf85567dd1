"""The table of tasks: a row per task, a column per dialect."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from keras_bert_layers.checkpoints.checkpoint import TrainedHead
from keras_bert_layers.checkpoints.weights import table
from keras_bert_layers.checkpoints.weights.table import Layout, WeightRow

if TYPE_CHECKING:
    import keras


@dataclasses.dataclass(frozen=True)
class TaskRow:
    """A task: its name, its class, its head, and its counterpart in each dialect.

    Args:
        name: the `task` of `load_task`.
        class_name: the class in `keras_bert_layers.tasks`.
        google: the program of google-research/bert that has this task; None if there is none.
        huggingface: the class in transformers; `"BertModel"` for a task without a head.
        kerashub: the class in `keras_hub.models`; None if there is none.
        head: the head's rows in the table of weight names.
        pooled: whether the head reads the pooled output.
    """

    name: str
    class_name: str
    google: str | None
    huggingface: str
    kerashub: str | None
    head: tuple[WeightRow, ...] = ()
    pooled: bool = False

    @property
    def task_class(self) -> Any:
        """The class."""
        from keras_bert_layers import tasks  # which imports Keras

        return getattr(tasks, self.class_name)

    def counterpart(self, layout: Layout) -> str | None:
        """The cell of a dialect; None where the dialect has no such task."""
        return getattr(self, layout.value)

    def head_of(self, model: keras.Model) -> tuple[WeightRow, ...]:
        """The head's rows for a model of this task."""
        head = self.head if getattr(model, "tie_weights", True) else table.untied(self.head)
        looked_up = () if getattr(model, "query_weights", None) is None else table.QUERY_ROWS
        return (*table.head_rows(head, model.backbone.parts), *looked_up)

    def trained(self, **options: Any) -> TrainedHead:
        """A trained head of this task, with these options."""
        return TrainedHead(self.name, options, self.head)


_CLASSIFIER = ("run_classifier", "BertForSequenceClassification", "BertTextClassifier", table.CLASSIFIER_ROWS)
_CHOICE = table.MULTIPLE_CHOICE_ROWS
_PRETRAINING = (*table.MASKED_LM_ROWS, *table.NEXT_SENTENCE_ROWS)
_SPANS = table.SPAN_ROWS
_TAGS = table.TOKEN_CLASSIFIER_ROWS

_ROWS = (
    TaskRow("classifier", "BertClassifier", *_CLASSIFIER, pooled=True),
    TaskRow("cross_encoder", "BertCrossEncoder", *_CLASSIFIER, pooled=True),
    TaskRow("dual_encoder", "BertDualEncoder", None, "BertModel", None),
    TaskRow("masked_lm", "BertMaskedLM", "run_pretraining", "BertForMaskedLM", "BertMaskedLM", table.MASKED_LM_ROWS),
    TaskRow("multi_vector_encoder", "BertMultiVectorEncoder", None, "BertModel", None, table.TOKEN_PROJECTION_ROWS),
    TaskRow("multiple_choice", "BertMultipleChoice", None, "BertForMultipleChoice", None, _CHOICE, pooled=True),
    TaskRow("pretrainer", "BertPretrainer", "run_pretraining", "BertForPreTraining", None, _PRETRAINING, pooled=True),
    TaskRow("question_answerer", "BertQuestionAnswerer", "run_squad", "BertForQuestionAnswering", None, _SPANS),
    TaskRow("sentence_encoder", "BertSentenceEncoder", "extract_features", "BertModel", "BertTextEmbedder"),
    TaskRow("sparse_encoder", "BertSparseEncoder", None, "BertForMaskedLM", None, table.MASKED_LM_ROWS),
    TaskRow("token_classifier", "BertTokenClassifier", None, "BertForTokenClassification", None, _TAGS),
)

TASKS: dict[str, TaskRow] = {row.name: row for row in _ROWS}
"""Every task by its name, in alphabetical order."""


def one_output_heads(**options: Any) -> tuple[TrainedHead, TrainedHead]:
    """The tasks of a classification head with one output: a regression, and the scores of pairs."""
    return TASKS["classifier"].trained(problem_type="regression", **options), TASKS["cross_encoder"].trained(**options)


def task_of(model: keras.Model) -> TaskRow | None:
    """The row of a model's class; None for anything that is not a task, such as a `BertBackbone`.

    Examples:
        >>> task_of("a string") is None
        True
    """
    return next((row for row in _ROWS if isinstance(model, row.task_class)), None)
