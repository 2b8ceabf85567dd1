"""Moving the tensors of a checkpoint into a model: everything is checked before the first weight changes."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert_layers.checkpoints._progress import moved
from keras_bert_layers.checkpoints.checkpoint import Checkpoint
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.model_tensors import weights_by_row
from keras_bert_layers.checkpoints.reports import LoadReport, first_names, remember_report
from keras_bert_layers.checkpoints.tensor_file import FLOAT_DTYPES, TensorFile
from keras_bert_layers.checkpoints.weight_row import StoredWeight, WeightRow
from keras_bert_layers.checkpoints.weight_table import POOLER_ROWS
from keras_bert_layers.layers.initializers import truncated_normal

logger = logging.getLogger("keras_bert_layers.checkpoints")

_NAMES_IN_AN_ERROR = 5


class _Place(NamedTuple):
    """A row that is to be read, and the tensor of the file that it is read from."""

    row: WeightRow
    stored: StoredWeight
    name: str


def load_weights(model: Any, rows: Sequence[WeightRow], checkpoint: Checkpoint, tensors: TensorFile) -> LoadReport:
    """Fills a model's weights from a checkpoint, strictly.

    Every row must find its tensor, every tensor its row or a rule that ignores it, and every weight of the model a row.
    Names, shapes and number formats of all are checked before the first weight changes. One thing may be absent: the
    pooler, which checkpoints of token-level tasks do not have; its weights are then drawn anew.

    Args:
        model: a built model; its weights' paths end in the rows' `ours`.
        rows: the table, one row a tensor.
        checkpoint: what the tensors belong to.
        tensors: what its `open_weights` gave.

    Returns:
        The report; it is also logged, and kept for `load_report(model)`.

    Raises:
        CheckpointError: a tensor is missing, unexpected, of another shape, no float, or holds NaN or infinity; the
            tensors of a tied weight differ.
    """
    source = str(checkpoint)
    names = checkpoint.stored_names(tensors.infos)
    places, fresh_rows = _places(rows, names, checkpoint)
    ignored = _ignored(places, names, checkpoint)
    variables = weights_by_row(model, rows)
    num_heads = checkpoint.config.num_heads
    for place in places:
        _check_tensor(place, variables[place.row.ours], tensors, num_heads=num_heads, source=source)
    _check_tied(places, names, tensors, source)
    order = {row.ours: index for index, row in reversed(list(enumerate(rows)))}
    places.sort(key=lambda place: (order[place.row.ours], place.row.third or 0))
    for path, parts in itertools.groupby(places, key=lambda place: place.row.ours):
        _assign(variables[path], list(parts), tensors, source)
    for row in fresh_rows:
        _draw(variables[row.ours], checkpoint.config.initializer_range)
    report = LoadReport(
        source=source,
        loaded=tuple(place.name for place in places),
        fresh=tuple(row.ours for row in fresh_rows),
        ignored=ignored,
    )
    logger.info("%s", report)
    remember_report(model, report)
    return report


def _places(
    rows: Sequence[WeightRow], names: Mapping[str, str], checkpoint: Checkpoint
) -> tuple[list[_Place], list[WeightRow]]:
    """Where each row is read from, and the rows of the pooler if the checkpoint has no pooler at all."""
    places, absent = [], []
    for row in rows:
        stored = row.stored(checkpoint.layout)
        name = None if stored is None else names.get(stored.name, names.get(stored.again or ""))
        if stored is None or name is None:
            absent.append(row)
        else:
            places.append(_Place(row, stored, name))
    if {row.ours for row in absent} == {row.ours for row in POOLER_ROWS}:
        return places, absent
    if absent:
        missing = [(row.stored(checkpoint.layout) or StoredWeight(row.ours)).name for row in absent]
        raise CheckpointError(
            f"{checkpoint}: the model needs {len(missing)} tensors that the weights file lacks: "
            f"{first_names(missing, _NAMES_IN_AN_ERROR)}. Check that the config and the weights belong together."
        )
    return places, []


def _ignored(places: Sequence[_Place], names: Mapping[str, str], checkpoint: Checkpoint) -> dict[str, str]:
    """Stored tensor -> why it is not read, for all that no row stands for."""
    known = {place.stored.name for place in places} | {place.stored.again for place in places}
    reasons = {stored: checkpoint.ignored_reason(name) for name, stored in names.items() if name not in known}
    unexpected = [stored for stored, reason in reasons.items() if reason is None]
    if unexpected:
        raise CheckpointError(
            f"{checkpoint}: the weights file holds {len(unexpected)} tensors that the model has no place for: "
            f"{first_names(unexpected, _NAMES_IN_AN_ERROR)}. Check that the config and the weights belong together "
            "and that this is a BERT."
        )
    read = {place.name for place in places}
    again = {names[place.stored.again]: place for place in places if place.stored.again and place.stored.again in names}
    twice = {stored: f"the same weight as {place.name}" for stored, place in again.items() if stored not in read}
    return {**{stored: reason for stored, reason in reasons.items() if reason is not None}, **twice}


def _check_tensor(place: _Place, variable: Any, tensors: TensorFile, *, num_heads: int, source: str) -> None:
    """Shape and number format, before anything is read."""
    dtype, shape = tensors.infos[place.name]
    ours = place.row.part_shape(tuple(variable.shape))
    expected = place.stored.transform.stored_shape(ours, num_heads)
    if shape != expected:
        cure = "Check that the config and the weights belong together."
        if place.row.ours == "embedding/token_embedding" and shape[1:] == expected[1:]:
            cure = f"The config's vocabulary size must equal the embedding's {shape[0]} rows. {cure}"
        raise CheckpointError(
            f"{source}: tensor {place.name!r} must have shape {expected}. Received: shape={shape}. {cure}"
        )
    if dtype not in FLOAT_DTYPES:
        raise CheckpointError(
            f"{source}: tensor {place.name!r} must hold floats, one of {FLOAT_DTYPES}. Received: {dtype}. "
            "Quantised checkpoints cannot be read."
        )


def _check_tied(places: Sequence[_Place], names: Mapping[str, str], tensors: TensorFile, source: str) -> None:
    """A weight that a file holds twice must be the same twice, where a head reads both."""
    if not any(place.row.ours == "masked_lm_head/bias" for place in places):
        return
    for place in places:
        other = names.get(place.stored.again or "", place.name)
        if other != place.name and not np.array_equal(tensors.read(place.name), tensors.read(other)):
            raise CheckpointError(
                f"{source}: the tensors {place.name!r} and {other!r} must be equal: BERT's head predicts with the "
                "encoder's own embedding. This checkpoint trained the two apart, which is not implemented."
            )


def _assign(variable: Any, parts: Sequence[_Place], tensors: TensorFile, source: str) -> None:
    """Fills one weight from its tensor, or from its three."""
    shape = tuple(variable.shape)
    if len(parts) == 1:
        value = _read(parts[0], shape, tensors, source)
    else:
        value = np.empty(shape, np.float32)
        for place in parts:
            place.row.part(value)[...] = _read(place, place.row.part_shape(shape), tensors, source)
    variable.assign(value)


def _read(place: _Place, shape: tuple[int, ...], tensors: TensorFile, source: str) -> np.ndarray:
    array = moved(tensors.read(place.name))
    # A NaN passes through min; so these two find any number that is not finite without a copy of the array.
    if array.size and not (np.isfinite(array.min()) and np.isfinite(array.max())):
        raise CheckpointError(
            f"{source}: tensor {place.name!r} holds NaN or infinity, so every output would be NaN. "
            "The checkpoint is damaged."
        )
    return place.stored.transform.to_ours(array, shape)


def _draw(variable: Any, initializer_range: float) -> None:
    """Fresh numbers for a weight that was made without any."""
    is_kernel = len(variable.shape) > 1
    variable.assign(truncated_normal(initializer_range)(variable.shape) if is_kernel else np.zeros(variable.shape))
