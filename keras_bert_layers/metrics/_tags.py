"""Reads rows of tags as entities, by one rule for the metric in the graph and the scores on the host."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from keras_bert_layers._internal.tag_scheme import TagScheme


def break_table(scheme: TagScheme) -> np.ndarray:
    """Whether an entity starts or ends between two neighbouring tags, as in conlleval and seqeval.

    Bool `(C + 1, C + 1)`; the last index is for positions outside of the row.
    """
    labels, begins, ends = (
        np.append(values, outside)
        for values, outside in ((scheme.label_ids, -1), (scheme.begins, False), (scheme.ends, False))
    )
    is_new = begins | ends[:, None]
    return (labels != labels[:, None]) | (is_new & (labels >= 0))


def read_entities(tags: Sequence[int], scheme: TagScheme, breaks: np.ndarray) -> list[tuple[str, int, int]]:
    """The entities of one row of tags: label, first position, and the position after the last."""
    row = [len(breaks) - 1, *tags, len(breaks) - 1]
    places = [index for index, pair in enumerate(pairwise(row)) if breaks[pair]]
    spans = [(start, end, scheme.label_ids[tags[start]]) for start, end in pairwise(places)]
    return [(scheme.labels[label], start, end) for start, end, label in spans if label >= 0]
