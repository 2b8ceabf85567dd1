"""Measure how far the outputs of two checkpoints differ.

Runs two checkpoints on the same texts. Reports how many texts the two tokenizers encode differently, and the largest
difference of the outputs on all others. If both have a trained head for the same task, the outputs are the task's own,
as `predict` of the Keras model returns them; otherwise they are the encoders' sequence_output (at real tokens) and
pooled_output.

A and B are sources as for convert. FILE has one text per line; for tasks on more than one text as for predict.

exit codes: 0 equal ids for every text and no difference above the tolerance; 1 otherwise; 2 an error

Examples:
  keras-bert-layers compare uncased_L-12_H-768_A-12 bert-base --texts sentences.txt
  keras-bert-layers compare my-classifier my-classifier.keras --texts reviews.txt --tolerance 1e-6
  keras-bert-layers compare a b --texts pairs.jsonl --json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.task_table import TASKS
from keras_bert_layers.cli import text_rows
from keras_bert_layers.cli.models import ENCODER, LoadedModel, inputs_of, load_model
from keras_bert_layers.cli.terminal import progress
from keras_bert_layers.cli.text_rows import Inputs, TextRow, columns_of
from keras_bert_layers.export.text_task import refuse_columns

if TYPE_CHECKING:
    from keras_bert_layers.backbone import BertBackbone

OWNER = "compare"
_TOLERANCE = 1e-5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("one", metavar="A", help="a checkpoint")
    parser.add_argument("other", metavar="B", help="another one")
    parser.add_argument("--texts", required=True, type=Path, metavar="FILE", help="one row per line, plain or gzip")
    text_rows.add_arguments(parser)
    shown = f"the largest difference allowed (default: {_TOLERANCE})"
    parser.add_argument("--tolerance", type=float, default=_TOLERANCE, metavar="X", help=shown)
    parser.add_argument("--task", choices=[*TASKS, ENCODER], metavar="TASK", help="compare this task's outputs")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Compares, and returns 0 if the checkpoints agree, otherwise 1."""
    text_rows.check_arguments(OWNER, arguments, arguments.texts)
    if not arguments.tolerance >= 0:
        raise ValueError(checks.message(OWNER, "--tolerance", "be at least 0", arguments.tolerance))
    sources = (arguments.one, arguments.other)
    pair = [load_model(source, arguments.task, owner=OWNER) for source in sources]
    for source, loaded in zip(sources, pair, strict=True):
        if loaded.preprocessor is None:
            raise ValueError(f"`{OWNER}`: both checkpoints must have a tokenizer. Received: {source}, which has none.")
    if pair[0].task != pair[1].task:
        pair = [loaded.encoder() for loaded in pair]
    differences = _Differences(pair)
    rows = text_rows.rows_of_file(arguments.texts, _inputs(pair), form=arguments.format, owner=OWNER)
    with progress("Comparing", None, unit="rows") as advance:
        for batch in text_rows.batches(rows, arguments.batch_size):
            differences.add(batch)
            advance(len(batch))
    if not differences.num_rows:
        raise ValueError(f"`{OWNER}`: {arguments.texts} must hold at least one line.")
    found = differences.found(arguments.tolerance)
    lines = [json.dumps(found)] if arguments.json else _lines(found)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0 if found["agree"] else 1


def _inputs(pair: Sequence[LoadedModel]) -> Inputs:
    """The inputs of a row."""
    if pair[0].task is None:
        return {"text": 1}
    one, other = (inputs_of(each.model) for each in pair)
    refuse_columns(OWNER, pair[0].model, "Give --task encoder.")
    if one != other:
        raise ValueError(f"`{OWNER}`: both must take the same texts. Received: {[*one]} and {[*other]}.")
    return one


class _Differences:
    """The differences of all rows so far.

    Args:
        pair: two encoders, or two models of one task.
    """

    def __init__(self, pair: Sequence[LoadedModel]):
        self._pair = pair
        self.num_rows = 0
        self._other_ids: list[str] = []
        self._largest: dict[str, float] = {}

    def add(self, batch: Sequence[TextRow]) -> None:
        """Runs both models on the same rows."""
        self.num_rows += len(batch)
        ids = zip(*(_ids(loaded, batch) for loaded in self._pair), strict=True)
        is_same = [one == other for one, other in ids]
        self._other_ids += [row.position for row, same in zip(batch, is_same, strict=True) if not same]
        rows = [row for row, same in zip(batch, is_same, strict=True) if same]
        if not rows:
            return
        one, other = (_outputs(loaded, rows) for loaded in self._pair)
        for name in one:
            if one[name].shape != other[name].shape:
                shapes = f"{one[name].shape} and {other[name].shape}"
                raise ValueError(f"`{OWNER}`: {name} must have the same shape in both. Received: {shapes}.")
            largest = np.max(np.abs(one[name].astype(np.float64) - other[name]), initial=self._largest.get(name, 0.0))
            self._largest[name] = float(largest)  # a NaN stays

    def found(self, tolerance: float) -> dict[str, Any]:
        """The result, as JSON has it."""
        return {
            "rows": self.num_rows,
            "rows_with_other_ids": len(self._other_ids),
            "first_with_other_ids": next(iter(self._other_ids), None),
            "largest_differences": {k: value if np.isfinite(value) else None for k, value in self._largest.items()},
            "tolerance": tolerance,
            "agree": not self._other_ids and all(value <= tolerance for value in self._largest.values()),
        }


def _ids(loaded: LoadedModel, batch: Sequence[TextRow]) -> list[Any]:
    """The token ids of each row, one list per text."""
    texts = [[value] if isinstance(value, str) else value for row in batch for value in row.texts]
    ids = iter(loaded.preprocessor.tokenizer.tokenize([text for value in texts for text in value]).to_list())
    values = iter([[next(ids) for _ in value] for value in texts])
    return [[next(values) for _ in row.texts] for row in batch]


def _outputs(loaded: LoadedModel, batch: Sequence[TextRow]) -> dict[str, np.ndarray]:
    """The outputs for some rows by name; those of an encoder at real tokens only."""
    if loaded.task is not None:
        outputs = loaded.model.predict(columns_of(batch), verbose=0)
        return outputs if isinstance(outputs, dict) else {loaded.model.output_name: np.asarray(outputs)}
    inputs = loaded.preprocessor(columns_of(batch))
    outputs = loaded.model.predict_on_batch(inputs)
    is_real = np.asarray(inputs["padding_mask"]).astype(bool)
    found = {"sequence_output": np.asarray(outputs["sequence_output"])[is_real]}
    if not _has_new_pooler(loaded.model):
        found["pooled_output"] = np.asarray(outputs["pooled_output"])
    return found


def _has_new_pooler(backbone: BertBackbone) -> bool:
    """Whether the pooler is newly initialized, as the checkpoint has none."""
    from keras_bert_layers.checkpoints import load_report

    try:
        return any(path.startswith("pooler/") for path in load_report(backbone).newly_initialized)
    except ValueError:  # from a .keras file, which has every weight
        return False


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The result for people."""
    first = f", first {found['first_with_other_ids']}" if found["rows_with_other_ids"] else ""
    yield f"other ids: {found['rows_with_other_ids']} of {found['rows']} rows{first}"
    for name, value in found["largest_differences"].items():
        yield f"{name}: largest difference {np.nan if value is None else value:.3g}"
    if not found["largest_differences"]:
        yield "outputs: not compared, as no row has the same ids"
    yield f"{'agree' if found['agree'] else 'differ'} (tolerance {found['tolerance']:g})"
