"""Moving the tensors of a checkpoint into a model: everything is checked before the first weight changes."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.huggingface_names import ignored_reason, stored_names
from keras_bert_layers.checkpoints.reports import LoadReport, remember_report
from keras_bert_layers.checkpoints.tensor_file import FLOAT_DTYPES, TensorFile
from keras_bert_layers.checkpoints.weight_table import POOLER_ROWS, WeightRow

logger = logging.getLogger("keras_bert_layers.checkpoints")

_NAMES_IN_AN_ERROR = 5


def load_weights(model: Any, rows: Sequence[WeightRow], tensors: TensorFile, *, source: str) -> LoadReport:
    """Fills a model's weights from a checkpoint, strictly.

    Every row must find its tensor, every tensor its row or a rule that ignores it, and every weight of the model a row.
    Names, shapes and number formats of all are checked before the first weight changes. One thing may be absent: the
    pooler, which checkpoints of token-level tasks do not have; its weights then stay fresh.

    Args:
        model: a built model; its weights' paths end in the rows' `ours`.
        rows: the table, one row a tensor.
        tensors: the checkpoint's tensors.
        source: what errors and the report call the checkpoint.

    Returns:
        The report; it is also logged, and kept for `load_report(model)`.

    Raises:
        CheckpointError: a tensor is missing, unexpected, of another shape, no float, or holds NaN or infinity.
    """
    names = stored_names(tensors.infos, source=source)
    fresh_rows = _absent_pooler(rows, names)
    loaded_rows = [row for row in rows if row not in fresh_rows]
    _check_missing(loaded_rows, names, source)
    ignored = _ignored(rows, names, source)
    variables = _variables(model, rows)
    _check_tensors(loaded_rows, names, variables, tensors, source)
    for path, parts in itertools.groupby(sorted(loaded_rows, key=_place(rows)), key=lambda row: row.ours):
        _assign(variables[path], list(parts), names, tensors, source)
    report = LoadReport(
        source=source,
        loaded=tuple(names[row.huggingface.name] for row in loaded_rows),
        fresh=tuple(row.ours for row in fresh_rows),
        ignored=ignored,
    )
    logger.info("%s", report)
    remember_report(model, report)
    return report


def _absent_pooler(rows: Sequence[WeightRow], names: Mapping[str, str]) -> list[WeightRow]:
    """The pooler's rows if the checkpoint has none of them; one alone is a damaged checkpoint."""
    pooler = [row for row in rows if row in POOLER_ROWS]
    return [] if any(row.huggingface.name in names for row in pooler) else pooler


def _check_missing(rows: Iterable[WeightRow], names: Mapping[str, str], source: str) -> None:
    missing = [row.huggingface.name for row in rows if row.huggingface.name not in names]
    if missing:
        raise CheckpointError(
            f"{source}: the model needs {len(missing)} tensors that the weights file lacks: {_some(missing)}. "
            "Check that config.json and the weights belong together."
        )


def _ignored(rows: Sequence[WeightRow], names: Mapping[str, str], source: str) -> dict[str, str]:
    """Stored tensor -> why it is not read, for all that no row stands for."""
    known = {row.huggingface.name for row in rows}
    reasons = {stored: ignored_reason(name) for name, stored in names.items() if name not in known}
    unexpected = [stored for stored, reason in reasons.items() if reason is None]
    if unexpected:
        raise CheckpointError(
            f"{source}: the weights file holds {len(unexpected)} tensors that the model has no place for: "
            f"{_some(unexpected)}. Check that config.json and the weights belong together and that this is a BERT."
        )
    return {stored: reason for stored, reason in reasons.items() if reason is not None}


def _variables(model: Any, rows: Sequence[WeightRow]) -> dict[str, Any]:
    """Our path in the table -> the model's variable; every variable must have a row."""
    found: dict[str, Any] = {}
    for variable in model.weights:
        matches = {row.ours for row in rows if f"/{variable.path}".endswith(f"/{row.ours}")}
        if len(matches) != 1 or matches & found.keys():
            raise LookupError(f"The table of weight names needs one row for the weight {variable.path!r}.")
        found[matches.pop()] = variable
    absent = [row.ours for row in rows if row.ours not in found]
    if absent:
        raise LookupError(f"The table of weight names has rows without a weight in the model: {_some(absent)}.")
    return found


def _check_tensors(
    rows: Iterable[WeightRow],
    names: Mapping[str, str],
    variables: Mapping[str, Any],
    tensors: TensorFile,
    source: str,
) -> None:
    """Shapes and number formats, of all tensors before any is read."""
    for row in rows:
        stored = names[row.huggingface.name]
        dtype, shape = tensors.infos[stored]
        ours = tuple(variables[row.ours].shape)
        expected = row.huggingface.transform.shape(row.part_shape(ours))
        if shape != expected:
            cure = "Check that config.json and the weights belong together."
            if row.ours == "embedding/token_embedding" and shape[1:] == expected[1:]:
                cure = f"config.json's vocab_size must equal the embedding's {shape[0]} rows. {cure}"
            raise CheckpointError(
                f"{source}: tensor {stored!r} must have shape {expected}. Received: shape={shape}. {cure}"
            )
        if dtype not in FLOAT_DTYPES:
            raise CheckpointError(
                f"{source}: tensor {stored!r} must hold floats, one of {FLOAT_DTYPES}. Received: {dtype}. "
                "Quantised checkpoints cannot be read."
            )


def _place(rows: Sequence[WeightRow]) -> Any:
    """A sort key that brings the parts of one merged weight together."""
    first = {row.ours: index for index, row in reversed(list(enumerate(rows)))}
    return lambda row: (first[row.ours], row.third or 0)


def _assign(
    variable: Any, parts: Sequence[WeightRow], names: Mapping[str, str], tensors: TensorFile, source: str
) -> None:
    """Fills one weight from its tensor, or from its three."""
    if len(parts) == 1:
        value = _read(parts[0], names, tensors, source)
    else:
        value = np.empty(tuple(variable.shape), np.float32)
        for row in parts:
            row.part(value)[...] = _read(row, names, tensors, source)
    variable.assign(value)


def _read(row: WeightRow, names: Mapping[str, str], tensors: TensorFile, source: str) -> np.ndarray:
    stored = names[row.huggingface.name]
    array = tensors.read(stored)
    # A NaN passes through min; so these two find any number that is not finite without a copy of the array.
    if array.size and not (np.isfinite(array.min()) and np.isfinite(array.max())):
        raise CheckpointError(
            f"{source}: tensor {stored!r} holds NaN or infinity, so every output would be NaN. "
            "The checkpoint is damaged."
        )
    return row.huggingface.transform.apply(array)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES_IN_AN_ERROR} more" if len(names) > _NAMES_IN_AN_ERROR else ""
    return ", ".join(names[:_NAMES_IN_AN_ERROR]) + more
