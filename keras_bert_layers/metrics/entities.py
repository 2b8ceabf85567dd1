"""Precision, recall and F1 of named entities: `EntityF1` as a metric, `entity_scores` overall and by type."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.metrics.token_metrics import IGNORED
from keras_bert_layers.tag_scheme import TagScheme, check_tag_names, tag_scheme


@register
class EntityF1(keras.metrics.Metric):
    """The micro-averaged F1 of named entities; an entity is right if its label, first and last word are right.

    `f1 = 2 * correct / (gold + predicted)`, counted over all batches; 0 if there are no entities. Tags are read as in
    seqeval's default mode and conlleval: `I-` after `O`, or after another label, starts an entity. So the result is
    that of seqeval's strict modes too, wherever the rows of tags keep to their scheme. Where tags are not spans,
    such as parts of speech, every word is an entity, and F1 is the accuracy.

    Args:
        tag_names: one name for each tag, in the order of the ids, of any scheme.
        name: the metric's name.
        scheme: the scheme of the tags, as for `BertTokenClassifier`; None infers it from the names.
        dtype: the dtype of the counts; float32 counts exactly up to 16,777,216.

    Call arguments:
        y_true: int `(batch, sequence)`, tag ids; -100 at ignored positions.
        y_pred: float `(batch, sequence, tags)`, logits, or int `(batch, sequence)`, tag ids.
        sample_weight: `(batch, sequence)` or `(batch,)`; positions of weight 0 are ignored, all others count once.

    Ignored positions are skipped: their predictions neither extend an entity nor split one. The result is NaN after a
    tag id that is not in `tag_names`.

    Raises:
        TypeError, ValueError: tag names that repeat or are not strings; an unknown scheme; other shapes.

    Examples:
        >>> metric = EntityF1(["O", "B-person", "I-person"])
        >>> metric.update_state([[1, 2, 0, 1]], [[1, 2, 0, 0]])
        >>> print(f"{float(metric.result()):.3f} {float(metric.precision()):.3f} {float(metric.recall()):.3f}")
        0.667 1.000 0.500

    References:
        Tjong Kim Sang and De Meulder 2003, https://aclanthology.org/W03-0419; `seqeval.metrics.f1_score`.
    """

    def __init__(
        self,
        tag_names: Sequence[str],
        name: str = "f1",
        *,
        scheme: str | None = None,
        dtype: str | keras.DTypePolicy | None = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self.tag_names = check_tag_names("EntityF1", tag_names)
        self.scheme = scheme
        found = tag_scheme("EntityF1", self.tag_names, scheme)
        # After the last tag there is one more, for positions outside of the row.
        self._breaks = _break_table(found).reshape(-1)
        self._types = np.append(found.label_ids + 1, 0).astype("int32")
        self.correct = self.add_variable((), "zeros", name="correct")
        self.gold = self.add_variable((), "zeros", name="gold")
        self.predicted = self.add_variable((), "zeros", name="predicted")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch; see the class."""
        y_true, y_pred, counted = self._read(y_true, y_pred, sample_weight)
        known = ops.all(self._is_known(y_true) & self._is_known(y_pred) | ~counted)
        order = _kept_first(counted)
        gold_breaks, gold_types = self._mark(y_true, counted, order)  # [B, S + 1]
        breaks, types = self._mark(y_pred, counted, order)
        starts = gold_breaks & breaks & (gold_types == types) & (types > 0)
        # An entity is right if it starts here on both sides, and the next break of either side is a break of both.
        order = _kept_first(gold_breaks | breaks)
        starts = ops.take_along_axis(ops.cast(starts, "int32"), order, axis=1)
        ends = ops.take_along_axis(ops.cast(gold_breaks & breaks, "int32"), order, axis=1)
        self._add(self.correct, starts[:, :-1] * ends[:, 1:], known)
        self._add(self.gold, gold_breaks & (gold_types > 0), known)
        self._add(self.predicted, breaks & (types > 0), known)

    def _read(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor) -> tuple[Any, Any, Any]:
        """Ids of both sides, int32 `(batch, sequence)`, and whether each position counts."""
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        num_tags = len(self.tag_names)
        if len(y_true.shape) != 2:
            raise ValueError(checks.message("EntityF1", "y_true", "be tag ids (batch, sequence)", y_true.shape))
        is_logits = len(y_pred.shape) == 3
        if (is_logits and y_pred.shape[-1] not in (None, num_tags)) or len(y_pred.shape) not in (2, 3):
            rule = f"be logits (batch, sequence, {num_tags}) or tag ids (batch, sequence)"
            raise ValueError(checks.message("EntityF1", "y_pred", rule, y_pred.shape))
        y_pred = ops.argmax(y_pred, axis=-1) if is_logits else y_pred
        y_true, y_pred = ops.cast(y_true, "int32"), ops.cast(y_pred, "int32")
        counted = y_true != IGNORED
        if sample_weight is not None:
            weight = ops.convert_to_tensor(sample_weight)
            counted &= (weight if len(weight.shape) == 2 else weight[:, None]) != 0
        return y_true, y_pred, counted

    def _is_known(self, ids: Any) -> Any:
        return (ids >= 0) & (ids < len(self.tag_names))

    def _mark(self, ids: Any, counted: Tensor, order: Any) -> tuple[Any, Any]:
        """Whether there is a break before each position, and its type, 0 for "O"; with one position after the row."""
        outside = len(self.tag_names)
        ids = ops.where(counted & self._is_known(ids), ids, outside)
        ids = ops.take_along_axis(ids, order, axis=1)
        ids = ops.pad(ids, [[0, 0], [1, 1]], constant_values=outside)  # [B, S + 2]
        breaks = ops.take(ops.convert_to_tensor(self._breaks), ids[:, :-1] * (outside + 1) + ids[:, 1:])
        return breaks, ops.take(ops.convert_to_tensor(self._types), ids[:, 1:])

    def _add(self, count: Any, marks: Any, known: Any) -> None:
        added = ops.sum(ops.cast(marks, self.dtype))
        count.assign_add(ops.where(known, added, float("nan")))

    def precision(self) -> Any:
        """The share of the predicted entities that are right; 0 if none are predicted."""
        return ops.divide_no_nan(self.correct.value, self.predicted.value)

    def recall(self) -> Any:
        """The share of the gold entities that are found; 0 if there are none."""
        return ops.divide_no_nan(self.correct.value, self.gold.value)

    def result(self) -> Any:
        """The F1 of all batches, a scalar."""
        return ops.divide_no_nan(2 * self.correct.value, self.gold.value + self.predicted.value)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "tag_names": list(self.tag_names), "scheme": self.scheme}


def entity_scores(
    gold_tags: Sequence[Sequence[str]], predicted_tags: Sequence[Sequence[str]], *, scheme: str | None = None
) -> dict[str, Any]:
    """Precision, recall and F1 of whole entities, overall and for each type.

    Tags are read as in `EntityF1`; an entity is right if its type, first and last word are right.

    Args:
        gold_tags: for each text one tag per word, of any scheme.
        predicted_tags: as many texts, of the same lengths.
        scheme: the scheme of the tags, as for `BertTokenClassifier`; None infers it from all tags of both.

    Returns:
        `"precision"`, `"recall"`, `"f1"`, each from 0 to 1, and 0 in place of 0 / 0; `"num_gold"` and
        `"num_predicted"`, counts of entities; and `"by_type"`: type -> the same five, in alphabetical order.

    Raises:
        TypeError: a tag that is not a string.
        ValueError: different numbers of texts, or of tags in a text; an unknown scheme.

    Examples:
        >>> scores = entity_scores([["B-person", "I-person", "O", "B-place"]], [["B-person", "I-person", "O", "O"]])
        >>> scores["precision"], scores["recall"], scores["by_type"]["place"]["f1"]
        (1.0, 0.5, 0.0)

    References:
        `seqeval.metrics.classification_report`.
    """
    owner, rule = "entity_scores", f"hold one list for each of the {len(gold_tags)} texts"
    checks.length(owner, "predicted_tags", predicted_tags, len(gold_tags), rule=rule, unit="lists")
    for row, (gold_row, predicted_row) in enumerate(zip(gold_tags, predicted_tags, strict=True)):
        if len(gold_row) != len(predicted_row):
            rule = f"hold {len(gold_row)} tags, as `gold_tags[{row}]` does"
            checks.length(owner, f"predicted_tags[{row}]", predicted_row, len(gold_row), rule=rule, unit="tags")
    ids = _tag_ids(gold_tags=gold_tags, predicted_tags=predicted_tags)
    found = tag_scheme(owner, list(ids) or ["O"], scheme)
    breaks = _break_table(found)
    gold, predicted, correct = Counter[str](), Counter[str](), Counter[str]()
    for rows in zip(gold_tags, predicted_tags, strict=True):
        ours, theirs = (set(_read_entities([ids[tag] for tag in row], found, breaks)) for row in rows)
        for count, entities in ((gold, ours), (predicted, theirs), (correct, ours & theirs)):
            count.update(kind for kind, _, _ in entities)
    types = {kind: _scores(correct[kind], gold[kind], predicted[kind]) for kind in sorted({*gold, *predicted})}
    return {**_scores(correct.total(), gold.total(), predicted.total()), "by_type": types}


def _break_table(scheme: TagScheme) -> np.ndarray:
    """Whether an entity starts or ends between two neighbouring tags, as in conlleval and seqeval.

    Bool `(C + 1, C + 1)`; the last index is for positions outside of the row.
    """
    labels, begins, ends = (
        np.append(values, outside)
        for values, outside in ((scheme.label_ids, -1), (scheme.begins, False), (scheme.ends, False))
    )
    is_new = begins | ends[:, None]
    return (labels != labels[:, None]) | (is_new & (labels >= 0))


def _read_entities(tags: Sequence[int], scheme: TagScheme, breaks: np.ndarray) -> list[tuple[str, int, int]]:
    """The entities of one row of tags: label, first position, and the position after the last."""
    row = [len(breaks) - 1, *tags, len(breaks) - 1]
    places = [index for index, pair in enumerate(pairwise(row)) if breaks[pair]]
    spans = [(start, end, scheme.label_ids[tags[start]]) for start, end in pairwise(places)]
    return [(scheme.labels[label], start, end) for start, end, label in spans if label >= 0]


def _kept_first(kept: Any) -> Any:
    """For each row, the indices where `kept` is true, in order, and then the others."""
    position = ops.cumsum(ops.ones_like(kept, dtype="int32"), axis=1)
    return ops.argsort(ops.where(kept, position, position + ops.shape(kept)[1]), axis=1)


def _tag_ids(**rows_of_tags: Sequence[Sequence[str]]) -> dict[str, int]:
    """A number for each tag in use; TypeError for a tag that is not a string."""
    ids: dict[str, int] = {}
    for argument, rows in rows_of_tags.items():
        for row, tags in enumerate(rows):
            for tag in tags:
                if not isinstance(tag, str):
                    raise TypeError(checks.message("entity_scores", f"{argument}[{row}]", "hold strings", tag))
                ids.setdefault(tag, len(ids))
    return ids


def _scores(correct: int, gold: int, predicted: int) -> dict[str, float]:
    return {
        "precision": correct / predicted if predicted else 0.0,
        "recall": correct / gold if gold else 0.0,
        "f1": 2 * correct / (gold + predicted) if gold + predicted else 0.0,
        "num_gold": gold,
        "num_predicted": predicted,
    }
