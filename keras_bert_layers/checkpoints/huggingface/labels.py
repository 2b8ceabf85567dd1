"""The labels of a HuggingFace `config.json`, fitted to the outputs of the stored head."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import Doubt, DoubtKind
from keras_bert_layers.checkpoints.files.json_file import shown

# What older releases of transformers wrote for every model.
_DEFAULT = {0: "LABEL_0", 1: "LABEL_1"}
# A file may state any number; there is a bound, so that a hostile one does not fill the memory.
_MOST = 1_000_000


def stated_labels(values: Mapping[str, Any]) -> list[str] | None:
    """The labels that the config states, by `id2label` or by `num_labels` alone; None if it states none.

    Examples:
        >>> stated_labels({"id2label": {"0": "bad", "1": "good"}}), stated_labels({"num_labels": 2})
        (['bad', 'good'], ['LABEL_0', 'LABEL_1'])
        >>> stated_labels({}) is None
        True
    """
    known = _by_index(values.get("id2label"))
    number = values.get("num_labels")
    if known and known != _DEFAULT:
        number = max(known) + 1
    is_number = isinstance(number, int) and not isinstance(number, bool) and 0 < number <= _MOST
    return labels_of(values, number)[0] if is_number else None  # type: ignore[arg-type]


def labels_of(
    values: Mapping[str, Any], number: int, path: Path | str = "config.json"
) -> tuple[list[str], list[Doubt]]:
    """A label for each output of a head, and what is doubtful about them.

    Output `i` has the label that `id2label` gives for `i`. Without one it is `LABEL_i`, as in transformers. A label
    that several outputs have is numbered.

    Args:
        values: the content of `config.json`.
        number: the number of outputs, from the weights.
        path: the config's file, for the doubts.

    Returns:
        The labels, all different; and doubts, none if `id2label` gives every output its own label, or is not there.

    Examples:
        >>> labels_of({"id2label": {"1": "bad", "2": "good", "3": "bad"}}, 4)[0]
        ['LABEL_0', 'bad', 'good', 'bad (2)']
    """
    stated = values.get("id2label")
    known = _by_index(stated)
    labels = _numbered([known.get(index) or f"LABEL_{index}" for index in range(number)])
    if not stated or known == dict(enumerate(labels)):
        return labels, []
    text = (
        f"{path}: `id2label` must give each of the head's {number} outputs its own label, by its index from 0. "
        f"Received: {shown(stated)}. The outputs have the labels {shown(labels)}."
    )
    return labels, [Doubt(DoubtKind.LABELS, text)]


def _by_index(stated: Any) -> dict[int, str]:
    """Index -> label, of a dictionary or a list; without what has no index or no label."""
    pairs = stated.items() if isinstance(stated, dict) else enumerate(stated) if isinstance(stated, list) else ()
    return {int(index): str(label) for index, label in pairs if str(index).isdecimal() and label not in (None, "")}


def _numbered(labels: Sequence[str]) -> list[str]:
    """The labels, with a number behind each that was there before."""
    taken: set[str] = set()
    result = []
    for label in labels:
        name, count = label, 1
        while name in taken or (count > 1 and name in labels):
            count += 1
            name = f"{label} ({count})"
        taken.add(name)
        result.append(name)
    return result
