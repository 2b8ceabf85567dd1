"""Loading the tensors of a checkpoint into a model: all are checked before the first weight changes."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from keras_bert_layers._internal.keras_models import all_layers
from keras_bert_layers.checkpoints.checkpoint import Checkpoint
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, first_names
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile, read_into, stored_dtype
from keras_bert_layers.checkpoints.weights.model_tensors import weights_by_row
from keras_bert_layers.checkpoints.weights.reports import UNKNOWN, LoadReport, moved, remember_report
from keras_bert_layers.checkpoints.weights.table import StoredWeight, Transform, WeightRow, pooler_rows
from keras_bert_layers.layers.adapters import AdapterBank
from keras_bert_layers.layers.initializers import aligned_zeros, shared_tensor, truncated_normal

if TYPE_CHECKING:
    import keras

logger = logging.getLogger("keras_bert_layers.checkpoints")

_NAMES_IN_AN_ERROR, _UNKNOWN_NAMES_IN_AN_ERROR = 5, 20
_CURE = "Check that the config and the weights belong together"


class _Match(NamedTuple):
    """A row of the table and the name of its tensor in the file."""

    row: WeightRow
    stored: StoredWeight
    name: str


def load_weights(
    model: keras.Model,
    rows: Sequence[WeightRow],
    checkpoint: Checkpoint,
    tensors: TensorFile,
    *,
    strict: bool = False,
    needs_pooler: bool = False,
) -> LoadReport:
    """Loads a model's weights from a checkpoint.

    Every row must have a tensor, and every weight of the model a row. A tensor without a row is in the report; it is an
    error if it could change what the encoder computes. All names, shapes and dtypes are checked before the first weight
    changes. Only the pooler may be missing, as in checkpoints of token-level tasks; its weights are then newly
    initialized.

    Args:
        model: a built model; its weights' paths end in the rows' `ours`.
        rows: the table, one row for each tensor.
        checkpoint: the checkpoint.
        tensors: what its `open_weights` returned.
        strict: whether unknown keys of the config and unknown tensors are an error.
        needs_pooler: whether a missing pooler is an error, as for a trained head that reads its output.

    Returns:
        The report; it is also logged, and kept for `load_report(model)`.

    Raises:
        CheckpointError: a tensor is missing, unexpected, of another shape, not of floats, or holds NaN or infinity.
    """
    names = checkpoint.stored_names(tensors.infos)
    matches, new_rows = _matches(rows, names, checkpoint)
    if new_rows and needs_pooler:
        raise _without_pooler(new_rows, checkpoint)
    ignored = _ignored(matches, names, checkpoint)
    if strict:
        _check_known(ignored, checkpoint)
    variables = weights_by_row(model, rows)
    for match in matches:
        _check_tensor(match, tuple(variables[match.row.ours].shape), tensors, checkpoint)
    order = {row.ours: index for index, row in reversed(list(enumerate(rows)))}
    matches.sort(key=lambda match: (order[match.row.ours], match.row.part_index or 0))
    for path, parts in itertools.groupby(matches, key=lambda match: match.row.ours):
        _assign(variables[path], list(parts), tensors, checkpoint)
    for row in new_rows:
        _initialize(variables[row.ours], checkpoint.config.initializer_range)
    report = LoadReport(
        source=str(checkpoint),
        loaded=tuple(dict.fromkeys(match.name for match in matches)),
        newly_initialized=tuple(row.ours for row in new_rows),
        ignored=ignored,
        ignored_keys=checkpoint.ignored_keys(),
        notes=checkpoint.notes,
    )
    logger.info("%s", report)
    remember_report(model, report)
    return report


def load_adapters(
    model: keras.Model, rows: Sequence[WeightRow], checkpoint: Checkpoint, adapted: Mapping[str, Any]
) -> None:
    """Loads the adapters of a backbone into their banks.

    Args:
        model: the backbone, or a task of it.
        rows: the table.
        checkpoint: the checkpoint.
        adapted: name of an adapter -> the checkpoint's tensors with it.

    Raises:
        CheckpointError: an adapter replaces weights, changes others than those with a bank, or holds NaN or infinity.
    """
    variables = weights_by_row(model, rows, all_weights=False)
    banks = {layer.beside: layer for layer in all_layers(model) if isinstance(layer, AdapterBank)}
    names = checkpoint.stored_names(checkpoint.weights.infos)
    for adapter, tensors in adapted.items():
        owner = f"{checkpoint}: the adapter {adapter!r}"
        factors = tensors.low_rank(owner)
        values: dict[str, Any] = {}
        for row in rows:
            cell = row.stored(checkpoint.layout) or StoredWeight("")
            bank, read = banks.get(variables[row.ours].path), factors.pop(names.get(cell.name, ""), None)
            if bank is None or read is None:
                continue
            first, second = values.setdefault(bank.beside, [np.zeros(each.shape, "f4") for each in bank.pairs[adapter]])
            up, down = read()
            up, down = (down.T, up.T) if cell.transform is Transform.TRANSPOSE else (up, down)
            start = (row.part_index or 0) * (first.shape[1] // (1 if row.part_index is None else row.num_parts))
            first[:, start : start + up.shape[1]] = up
            row.part(second[start : start + up.shape[1]])[...] = down
        if factors or not all(np.isfinite(array).all() for pair in values.values() for array in pair):
            raise CheckpointError(f"{owner} must change weights of the encoder only, by finite numbers. {_CURE}.")
        for path, pair in values.items():
            for variable, array in zip(banks[path].pairs[adapter], pair, strict=True):
                variable.assign(array)


def check_sizes(rows: Sequence[WeightRow], checkpoint: Checkpoint, tensors: TensorFile) -> None:
    """Compares a config with the tensors before a model is made of it, which may be too large for the memory.

    Args:
        rows: the table of the model.
        checkpoint: the checkpoint.
        tensors: what its `open_weights` returned.

    Raises:
        CheckpointError: a tensor is missing, or the sizes of the config are not those of the tensors.
    """
    config = checkpoint.config
    hidden, width = config.hidden_dim, config.embedding_dim or config.hidden_dim
    shapes: dict[str, tuple[int, ...]] = {
        "embedding/token_embedding": (config.vocabulary_size, width),
        "embedding/segment_embedding": (config.num_segments, width),
        "embedding/position_embedding": (config.max_sequence_length + config.position_offset, width),
        "encoder_block_0/attention/query_key_value/kernel": (hidden, 3 * hidden),
        "encoder_block_0/feed_forward/intermediate/kernel": (hidden, _inner_width(checkpoint)),
    }
    span = getattr(checkpoint.parts and checkpoint.parts.positions, "span", 0)
    shapes["positions/vectors"] = (2 * span, hidden)
    kernel_size = getattr(checkpoint.parts and checkpoint.parts.convolution, "kernel_size", 0)
    shapes["encoder_block_0/convolution/kernel"] = (kernel_size, hidden, hidden)
    for match in _matches(rows, checkpoint.stored_names(tensors.infos), checkpoint)[0]:
        if match.row.ours in shapes:
            _check_tensor(match, shapes[match.row.ours], tensors, checkpoint)


def _inner_width(checkpoint: Checkpoint) -> int:
    """The width of the first product of a feed-forward layer, which with a gate has two parts."""
    feed_forward = None if checkpoint.parts is None else checkpoint.parts.feed_forward
    return (1 + getattr(feed_forward, "has_gate", False)) * checkpoint.config.intermediate_dim


def check_num_layers(checkpoint: Checkpoint, tensors: TensorFile) -> None:
    """CheckpointError for more layers than tensors, before the rows of all layers are made."""
    is_one = checkpoint.parts is not None and checkpoint.parts.shares_block
    if not is_one and checkpoint.config.num_layers > len(tensors.infos):
        raise CheckpointError(
            f"{checkpoint}: the weights file must hold the tensors of every layer. Received: a config of "
            f"{checkpoint.config.num_layers} layers, and {len(tensors.infos)} tensors. {_CURE}."
        )


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
    pooler = {row.ours for row in pooler_rows(checkpoint.parts)}
    new_rows = [row for row, _ in absent if row.ours in pooler]
    if len(new_rows) == len(pooler):
        absent = [(row, name) for row, name in absent if row.ours not in pooler]
    if absent:
        raise CheckpointError(
            f"{checkpoint}: the model needs {len(absent)} tensors that the weights file lacks: "
            f"{first_names([name for _, name in absent], _NAMES_IN_AN_ERROR)}. It holds "
            f"{first_names(list(names.values()), _NAMES_IN_AN_ERROR)}. {_CURE}."
        )
    return matches, new_rows


def _ignored(matches: Sequence[_Match], names: Mapping[str, str], checkpoint: Checkpoint) -> dict[str, str]:
    """Stored tensor -> why it is not read, for all that are not read; CheckpointError if one could change numbers."""
    read = {match.name for match in matches}
    copies = {name: match.name for match in matches for name in (match.stored.name, match.stored.alias)}
    reasons = {
        stored: f"the same weight as {copies[name]}" if name in copies else checkpoint.ignored_reason(name)
        for name, stored in names.items()
        if stored not in read
    }
    unexpected = [name for name, reason in reasons.items() if reason is None and checkpoint.changes_numbers(name)]
    if unexpected:
        raise CheckpointError(
            f"{checkpoint}: the weights file holds {len(unexpected)} tensors that the model has no weight for: "
            f"{first_names(unexpected, _NAMES_IN_AN_ERROR)}. Without them its outputs would differ. {_CURE} and "
            "that this is a BERT; merge adapters into the weights before."
        )
    return {stored: reason or UNKNOWN for stored, reason in reasons.items()}


def _check_known(ignored: Mapping[str, str], checkpoint: Checkpoint) -> None:
    """Refuses what is unknown, all of it at once."""
    unknown = LoadReport(str(checkpoint), ignored=dict(ignored), ignored_keys=checkpoint.ignored_keys()).unknown
    if unknown:
        raise CheckpointError(
            f"{checkpoint}: strict=True allows no unknown keys and tensors. Received: "
            f"{first_names(unknown, _UNKNOWN_NAMES_IN_AN_ERROR)}. If they change nothing, load with strict=False."
        )


def _without_pooler(new_rows: Sequence[WeightRow], checkpoint: Checkpoint) -> CheckpointError:
    names = [row.stored(checkpoint.layout) or StoredWeight(row.ours) for row in new_rows]
    return CheckpointError(
        f"{checkpoint}: the trained head reads the pooled output, and the weights file lacks the pooler: "
        f"{', '.join(cell.name for cell in names)}. With a random pooler its answers would mean nothing. If the head "
        "reads the first token or a mean instead, load the encoder with `load_backbone` and add the head in Keras."
    )


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


def _assign(variable: keras.Variable, parts: Sequence[_Match], tensors: TensorFile, checkpoint: Checkpoint) -> None:
    """Assigns one weight from its tensor, or from those of its parts."""
    value = aligned_zeros(tuple(variable.shape))
    for match in parts:
        _read(match, match.row.part(value), tensors, checkpoint)
    variable.assign(shared_tensor(value))


def _read(match: _Match, place: np.ndarray, tensors: TensorFile, checkpoint: Checkpoint) -> None:
    """Reads one tensor into its place in a weight."""
    array = place
    if match.stored.transform is Transform.COPY:
        read_into(tensors, match.name, place)
    else:
        array = tensors.read(match.name)
        place[...] = match.stored.transform.to_ours(array, place.shape)
    moved(array)
    # `min` passes a NaN on, so these two find every value that is not finite without a copy of the array.
    if array.size and not (np.isfinite(array.min()) and np.isfinite(array.max())):
        raise CheckpointError(
            f"{checkpoint}: tensor {match.name!r} holds NaN or infinity, so every output would be NaN. "
            "The checkpoint is damaged."
        )


def _initialize(variable: keras.Variable, initializer_range: float) -> None:
    """Initializes a weight that was created without values."""
    is_kernel = len(variable.shape) > 1
    variable.assign(truncated_normal(initializer_range)(variable.shape) if is_kernel else np.zeros(variable.shape))
