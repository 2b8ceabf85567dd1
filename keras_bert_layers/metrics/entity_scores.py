"""Precision, recall and F1 of entities in a collection of texts, overall and by type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.tag_scheme import tag_scheme
from keras_bert_layers.metrics._tags import break_table, read_entities


def entity_scores(
    gold_tags: Sequence[Sequence[str]], predicted_tags: Sequence[Sequence[str]], *, scheme: str | None = None
) -> dict[str, Any]:
    """Precision, recall and F1 of whole entities, overall and for each type.

    Tags are read as in `EntityF1`; an entity is right if its type, first and last word are right.

    Args:
        gold_tags: for each text one tag a word, of any scheme.
        predicted_tags: as many texts, of the same lengths.
        scheme: the scheme of the tags, as for `BertTokenClassifier`; None finds it out from all tags of both.

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
    rule = f"hold one list for each of the {len(gold_tags)} texts"
    checks.length("entity_scores", "predicted_tags", predicted_tags, len(gold_tags), rule=rule, unit="lists")
    for row, (gold_row, predicted_row) in enumerate(zip(gold_tags, predicted_tags, strict=True)):
        if len(gold_row) != len(predicted_row):
            raise ValueError(
                f"`entity_scores`: `predicted_tags[{row}]` must hold {len(gold_row)} tags, as `gold_tags[{row}]` does. "
                f"Received: {len(predicted_row)} tags."
            )
    ids = _tag_ids(gold_tags=gold_tags, predicted_tags=predicted_tags)
    found = tag_scheme("entity_scores", list(ids) or ["O"], scheme)
    breaks = break_table(found)
    gold, predicted, correct = Counter[str](), Counter[str](), Counter[str]()
    for rows in zip(gold_tags, predicted_tags, strict=True):
        ours, theirs = (set(read_entities([ids[tag] for tag in row], found, breaks)) for row in rows)
        for count, entities in ((gold, ours), (predicted, theirs), (correct, ours & theirs)):
            count.update(kind for kind, _, _ in entities)
    types = {kind: _scores(correct[kind], gold[kind], predicted[kind]) for kind in sorted({*gold, *predicted})}
    return {**_scores(correct.total(), gold.total(), predicted.total()), "by_type": types}


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
