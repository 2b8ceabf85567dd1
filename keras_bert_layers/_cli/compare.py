"""`keras-bert-layers compare`: how far apart two checkpoints are."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers._cli.models import ENCODER, TASKS, LoadedModel, load_model
from keras_bert_layers._cli.terminal import progress
from keras_bert_layers._cli.text_rows import FORMATS, TextRow, batches, columns_of, rows_of_file

OWNER = "compare"
HELP = "measure how far the outputs of two checkpoints are apart"
DESCRIPTION = """\
Runs two checkpoints on the same texts and says how many texts their tokenizers read differently, and the largest
difference of the outputs on all others. Where both state the same task, the outputs are the task's own, as `predict`
of the Keras model gives them; else they are the encoders' sequence_output (on real tokens) and pooled_output.

A and B are what convert reads. FILE has a text a line; for tasks on more than one text as for `predict`.

exit codes: 0 the same ids for every text and no output further apart than the tolerance; 1 not so; 2 an error"""
EXAMPLES = """\
examples:
  keras-bert-layers compare uncased_L-12_H-768_A-12 bert-base --texts sentences.txt
  keras-bert-layers compare my-classifier my-classifier.keras --texts reviews.txt --tolerance 1e-6
  keras-bert-layers compare a b --texts pairs.jsonl --json"""
_TOLERANCE = 1e-5
_TEXT = {"text": 1}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("one", metavar="A", help="a checkpoint")
    parser.add_argument("other", metavar="B", help="another one")
    parser.add_argument("--texts", required=True, type=Path, metavar="FILE", help="a row a line, UTF-8, plain or gzip")
    parser.add_argument("--format", choices=FORMATS, help="what a line is (default: by the file's name, else lines)")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=_TOLERANCE,
        metavar="X",
        help=f"may differ by so much (default: {_TOLERANCE})",
    )
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="rows at once (default: 32)")
    parser.add_argument("--task", choices=[*TASKS, ENCODER], metavar="TASK", help="compare this task's outputs")
    parser.add_argument("--json", action="store_true", help="one JSON object for machines")


def run(arguments: argparse.Namespace) -> int:
    """Compares; 0 where the two agree, 1 where they do not."""
    from keras_bert_layers._internal import checks

    checks.positive_integer(OWNER, "--batch-size", arguments.batch_size)
    if not arguments.tolerance >= 0:
        raise ValueError(checks.message(OWNER, "--tolerance", "be at least 0", arguments.tolerance))
    if not arguments.texts.is_file():
        raise FileNotFoundError(f"`{OWNER}`: no such file: {arguments.texts}.")
    sources = (arguments.one, arguments.other)
    pair = [load_model(source, arguments.task, owner=OWNER) for source in sources]
    for source, loaded in zip(sources, pair, strict=True):
        if loaded.preprocessor is None:
            raise ValueError(f"`{OWNER}`: both checkpoints must have a tokenizer. Received: {source}, which has none.")
    if pair[0].task != pair[1].task:
        pair = [_encoder(loaded) for loaded in pair]
    found = _Differences(pair)
    inputs = found.inputs
    rows = rows_of_file(arguments.texts, inputs, form=arguments.format)
    with progress("Comparing", None, unit="rows") as advance:
        for batch in batches(rows, arguments.batch_size):
            found.add(batch)
            advance(len(batch))
    return _report(found, arguments)


def _encoder(loaded: LoadedModel) -> LoadedModel:
    model = loaded.model if loaded.task is None else loaded.model.backbone
    return LoadedModel(model, loaded.preprocessor, None)


class _Differences:
    """What was found so far.

    Args:
        pair: two encoders, or two models of one task.
    """

    def __init__(self, pair: Sequence[LoadedModel]):
        self.pair = pair
        self.num_rows = 0
        self.other_ids: list[str] = []
        self.largest: dict[str, float] = {}

    @property
    def inputs(self) -> Mapping[str, int]:
        """What a row holds."""
        loaded = self.pair[0]
        if loaded.task is None:
            return _TEXT
        both = [{name: len(shape) for name, (shape, _) in each.model.text_inputs().items()} for each in self.pair]
        if both[0] != both[1]:
            raise ValueError(f"`{OWNER}`: both must take the same texts. Received: {[*both[0]]} and {[*both[1]]}.")
        return both[0]

    def add(self, batch: Sequence[TextRow]) -> None:
        """Asks both models the same rows."""
        self.num_rows += len(batch)
        same = []
        for row, ids in zip(batch, zip(*(_ids(loaded, batch) for loaded in self.pair), strict=True), strict=True):
            if ids[0] == ids[1]:
                same.append(row)
            else:
                self.other_ids.append(row.place)
        if not same:
            return
        one, other = (_outputs(loaded, same) for loaded in self.pair)
        for name in one:
            if one[name].shape != other[name].shape:
                shapes = f"{one[name].shape} and {other[name].shape}"
                raise ValueError(f"`{OWNER}`: {name} must have the same shape in both. Received: {shapes}.")
            apart = float(np.max(np.abs(one[name].astype(np.float64) - other[name]), initial=0.0))
            # A NaN anywhere stays: no later batch hides it.
            self.largest[name] = float(np.maximum(self.largest.get(name, 0.0), apart))


def _ids(loaded: LoadedModel, batch: Sequence[TextRow]) -> list[Any]:
    """What the tokenizer makes of each row: the ids of each of its texts."""
    tokenizer = loaded.preprocessor.tokenizer
    flat = [text for row in batch for value in row.texts for text in ([value] if isinstance(value, str) else value)]
    ids = iter(tokenizer.tokenize(flat).to_list())
    return [
        [next(ids) if isinstance(value, str) else [next(ids) for _ in value] for value in row.texts] for row in batch
    ]


def _outputs(loaded: LoadedModel, batch: Sequence[TextRow]) -> dict[str, np.ndarray]:
    """The outputs for some rows by name; of an encoder those at real tokens."""
    if loaded.task is not None:
        outputs = loaded.model.predict(columns_of(batch), verbose=0)
        return outputs if isinstance(outputs, dict) else {loaded.model.output_name: np.asarray(outputs)}
    inputs = loaded.preprocessor(columns_of(batch))
    outputs = loaded.model.predict_on_batch(inputs)
    real = np.asarray(inputs["padding_mask"]).astype(bool)
    found = {"sequence_output": np.asarray(outputs["sequence_output"])[real]}
    if not _has_fresh_pooler(loaded.model):
        found["pooled_output"] = np.asarray(outputs["pooled_output"])
    return found


def _has_fresh_pooler(backbone: Any) -> bool:
    from keras_bert_layers.checkpoints import load_report

    try:
        return any(path.startswith("pooler/") for path in load_report(backbone).fresh)
    except ValueError:  # from a .keras file, which has every weight
        return False


def _report(found: _Differences, arguments: argparse.Namespace) -> int:
    """Writes what was found; the exit code."""
    if not found.num_rows:
        raise ValueError(f"`{OWNER}`: {arguments.texts} must hold at least one line.")
    agree = not found.other_ids and all(value <= arguments.tolerance for value in found.largest.values())
    if arguments.json:
        values = {
            "rows": found.num_rows,
            "rows_with_other_ids": len(found.other_ids),
            "first_with_other_ids": next(iter(found.other_ids), None),
            "largest_differences": {
                name: value if np.isfinite(value) else None for name, value in found.largest.items()
            },
            "tolerance": arguments.tolerance,
            "agree": agree,
        }
        sys.stdout.write(f"{json.dumps(values)}\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(found, arguments.tolerance, agree=agree))
    return 0 if agree else 1


def _lines(found: _Differences, tolerance: float, *, agree: bool) -> Iterator[str]:
    """What was found, for people."""
    others = f"{len(found.other_ids)} of {found.num_rows} rows"
    yield f"other ids: {others}" + (f", first {found.other_ids[0]}" if found.other_ids else "")
    for name, value in found.largest.items():
        yield f"{name}: largest difference {value:.3g}"
    if not found.largest:
        yield "outputs: not compared, as no row has the same ids"
    yield f"{'agree' if agree else 'differ'} (tolerance {tolerance:g})"
