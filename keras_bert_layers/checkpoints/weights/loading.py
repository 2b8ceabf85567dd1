"""Loading the tensors of a checkpoint into a model: all are checked before the first weight changes."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert_layers.checkpoints.checkpoint import Checkpoint
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile, stored_dtype
from keras_bert_layers.checkpoints.weights.model_tensors import weights_by_row
from keras_bert_layers.checkpoints.weights.progress import moved
from keras_bert_layers.checkpoints.weights.reports import LoadReport, first_names, remember_report
from keras_bert_layers.checkpoints.weights.row import StoredWeight, WeightRow
from keras_bert_layers.checkpoints.weights.table import POOLER_ROWS
from keras_bert_layers.layers.initializers import truncated_normal

logger = logging.getLogger("keras_bert_layers.checkpoints")

_NAMES_IN_AN_ERROR = 5
_CURE = "Check that the config and the weights belong together"


class _Match(NamedTuple):
    """A row of the table and the name of its tensor in the file."""

    row: WeightRow
    stored: StoredWeight
    name: str


def load_weights(model: Any, rows: Sequence[WeightRow], checkpoint: Checkpoint, tensors: TensorFile) -> LoadReport:
    """Loads a model's weights from a checkpoint, strictly.

    Every row must have a tensor, every tensor a row or a rule that ignores it, and every weight of the model a row. All
    names, shapes and dtypes are checked before the first weight changes. Only the pooler may be missing, as in
    checkpoints of token-level tasks; its weights are then newly initialized.

    Args:
        model: a built model; its weights' paths end in the rows' `ours`.
        rows: the table, one row for each tensor.
        checkpoint: the checkpoint.
        tensors: what its `open_weights` returned.

    Returns:
        The report; it is also logged, and kept for `load_report(model)`.

    Raises:
        CheckpointError: a tensor is missing, unexpected, of another shape, not of floats, or holds NaN or infinity; the
            tensors of a tied weight differ.
    """
    names = checkpoint.stored_names(tensors.infos)
    matches, new_rows = _matches(rows, names, checkpoint)
    ignored = _ignored(matches, names, checkpoint)
    variables = weights_by_row(model, rows)
    for match in matches:
        _check_tensor(match, tuple(variables[match.row.ours].shape), tensors, checkpoint)
    _check_tied(matches, names, tensors, checkpoint)
    order = {row.ours: index for index, row in reversed(list(enumerate(rows)))}
    matches.sort(key=lambda match: (order[match.row.ours], match.row.qkv_index or 0))
    for path, parts in itertools.groupby(matches, key=lambda match: match.row.ours):
        _assign(variables[path], list(parts), tensors, checkpoint)
    for row in new_rows:
        _initialize(variables[row.ours], checkpoint.config.initializer_range)
    report = LoadReport(
        source=str(checkpoint),
        loaded=tuple(match.name for match in matches),
        newly_initialized=tuple(row.ours for row in new_rows),
        ignored=ignored,
    )
    logger.info("%s", report)
    remember_report(model, report)
    return report


def _matches(
    rows: Sequence[WeightRow], names: Mapping[str, str], checkpoint: Checkpoint
) -> tuple[list[_Match], list[WeightRow]]:
    """The tensor of each row, and the rows of the pooler if the checkpoint has no pooler at all."""
    matches, absent = [], []
    for row in rows:
        stored = row.stored(checkpoint.layout) or StoredWeight(row.ours)
        name = names.get(stored.name, names.get(stored.alias or ""))
        if name is None:
            absent.append((row, stored.name))
        else:
            matches.append(_Match(row, stored, name))
    new_rows = [row for row, _ in absent]
    if absent and {row.ours for row in new_rows} != {row.ours for row in POOLER_ROWS}:
        raise CheckpointError(
            f"{checkpoint}: the model needs {len(absent)} tensors that the weights file lacks: "
            f"{first_names([name for _, name in absent], _NAMES_IN_AN_ERROR)}. {_CURE}."
        )
    return matches, new_rows


def _ignored(matches: Sequence[_Match], names: Mapping[str, str], checkpoint: Checkpoint) -> dict[str, str]:
    """Stored tensor -> why it is not read, for all that are not read."""
    read = {match.name for match in matches}
    copies = {name: match.name for match in matches for name in (match.stored.name, match.stored.alias)}
    reasons = {
        stored: f"the same weight as {copies[name]}" if name in copies else checkpoint.ignored_reason(name)
        for name, stored in names.items()
        if stored not in read
    }
    unexpected = [stored for stored, reason in reasons.items() if reason is None]
    if unexpected:
        raise CheckpointError(
            f"{checkpoint}: the weights file holds {len(unexpected)} tensors that the model has no weight for: "
            f"{first_names(unexpected, _NAMES_IN_AN_ERROR)}. {_CURE} and that this is a BERT."
        )
    return {stored: str(reason) for stored, reason in reasons.items()}


def _check_tensor(match: _Match, shape: tuple[int, ...], tensors: TensorFile, checkpoint: Checkpoint) -> None:
    """Checks shape and dtype before any value is read."""
    dtype, stored_shape = tensors.infos[match.name]
    expected = match.stored.transform.stored_shape(match.row.part_shape(shape), checkpoint.config.num_heads)
    if stored_shape != expected:
        cure = f"{_CURE}."
        if match.row.ours == "embedding/token_embedding" and stored_shape[1:] == expected[1:]:
            cure = f"The config's vocabulary size must equal the embedding's {stored_shape[0]} rows. {cure}"
        raise CheckpointError(
            f"{checkpoint}: tensor {match.name!r} must have shape {expected}. Received: shape={stored_shape}. {cure}"
        )
    stored_dtype(checkpoint, match.name, dtype)


def _check_tied(
    matches: Sequence[_Match], names: Mapping[str, str], tensors: TensorFile, checkpoint: Checkpoint
) -> None:
    """Checks that the two copies of a tied weight are equal, if the model's head reads both."""
    if not any(match.row.ours == "masked_lm_head/bias" for match in matches):
        return
    for match in matches:
        other = names.get(match.stored.alias or "", match.name)
        if other != match.name and not np.array_equal(tensors.read(match.name), tensors.read(other)):
            raise CheckpointError(
                f"{checkpoint}: the tensors {match.name!r} and {other!r} must be equal: BERT's head predicts with the "
                "encoder's own embedding. This checkpoint trained the two apart, which is not implemented."
            )


def _assign(variable: Any, parts: Sequence[_Match], tensors: TensorFile, checkpoint: Checkpoint) -> None:
    """Assigns one weight from its tensor, or from its three."""
    shape = tuple(variable.shape)
    if len(parts) == 1:
        value = _read(parts[0], shape, tensors, checkpoint)
    else:
        value = np.empty(shape, np.float32)
        for match in parts:
            match.row.part(value)[...] = _read(match, match.row.part_shape(shape), tensors, checkpoint)
    variable.assign(value)


def _read(match: _Match, shape: tuple[int, ...], tensors: TensorFile, checkpoint: Checkpoint) -> np.ndarray:
    array = moved(tensors.read(match.name))
    # `min` passes a NaN on, so these two find every value that is not finite without a copy of the array.
    if array.size and not (np.isfinite(array.min()) and np.isfinite(array.max())):
        raise CheckpointError(
            f"{checkpoint}: tensor {match.name!r} holds NaN or infinity, so every output would be NaN. "
            "The checkpoint is damaged."
        )
    return match.stored.transform.to_ours(array, shape)


def _initialize(variable: Any, initializer_range: float) -> None:
    """Initializes a weight that was created without values."""
    is_kernel = len(variable.shape) > 1
    variable.assign(truncated_normal(initializer_range)(variable.shape) if is_kernel else np.zeros(variable.shape))
