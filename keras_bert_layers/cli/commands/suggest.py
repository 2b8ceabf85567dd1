"""Say what to train on a file, what is in it, and what simple models reach.

Reads FILE as `train` does, and prints the task and the columns that it sees; the rows and classes; the lengths in
tokens beside what the model reads; repeated texts, and rows of --validation that are in FILE too; labels that are
probably wrong; the scores of simple models; how long fine-tuning takes here; and the command and the Python to go on.

The columns are --text and --label, or what the cells look like. Simple models are the most frequent class, a linear
model of TF-IDF, and one of the frozen vectors of MODEL, in a cross-validation of at most --rows rows. It needs
scikit-learn. For files without a table, only what is seen and the command are printed.

--page writes the same as one HTML file, with the labels, lengths and scores drawn, and more of the repeated and the
doubtful rows.

Examples:
  keras-bert-layers suggest reviews.csv --model all-MiniLM-L6-v2
  keras-bert-layers suggest reviews.csv --text review --label stars --validation dev.csv --model all-MiniLM-L6-v2
  keras-bert-layers suggest reviews.csv --model all-MiniLM-L6-v2 --page facts.html
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.hints import check_scikit_learn
from keras_bert_layers.cli import encoded_rows
from keras_bert_layers.cli.columns import CATEGORIES
from keras_bert_layers.cli.models import LoadedModel
from keras_bert_layers.cli.row_facts import Chosen, baselines, choose_columns, doubtful, in_both, repeated
from keras_bert_layers.cli.terminal import counted, progress
from keras_bert_layers.cli.text_rows import JSON_SUFFIXES, check_file, suffix_of
from keras_bert_layers.cli.training_rows import (
    TABLES,
    cells_of,
    csv_format,
    read_rows,
    read_table,
    table_rows,
    task_of_file,
)
from keras_bert_layers.visualization.facts_picture import Fact, FactsPicture

OWNER = "suggest"
_SHOWN, _EPOCHS, _SHARE, _BATCH, _STEPS, _SEED = 5, 3, 0.9, 32, 4, 0  # of `train` by default, but for the first


class Rows(NamedTuple):
    """Texts with their labels, empty if there are none, and the number of each row in the file, from 1."""

    texts: list[str]
    labels: list[str]
    numbers: Sequence[int]

    def at(self, places: Iterable[int]) -> Rows:
        """Some of the rows."""
        places = list(places)
        labels = [self.labels[place] for place in places]
        return Rows([self.texts[place] for place in places], labels, [self.numbers[place] for place in places])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    add = parser.add_argument
    add("file", metavar="FILE", type=Path, help="the rows to train on, UTF-8, plain or gzip")
    add("--model", required=True, metavar="MODEL", help="a sentence encoder or a BERT checkpoint, to train later")
    add("--text", metavar="COLUMN", help="the column of texts (default: the one with the longest cells)")
    add("--label", metavar="COLUMN", help="the column of labels (default: one of few values)")
    add("--validation", type=Path, metavar="FILE", help="rows to validate on later, of the same columns")
    add("--rows", type=int, default=2000, metavar="N", help="rows for the simple models, at most (default: 2000)")
    add("--batch-size", type=int, default=32, metavar="N", help="rows per step of the encoder (default: 32)")
    add("--page", type=Path, metavar="OUT.html", help="the page to write")


def run(arguments: argparse.Namespace) -> int:
    """Prints each fact when it is found, draws all of them, and returns 0."""
    check_file(arguments.file, owner=OWNER)
    checks.integer(OWNER, "--rows", arguments.rows, smallest=10)
    encoded_rows.check_output(arguments.page, "--page", ".html", arguments, owner=OWNER)
    facts = []
    for fact in _facts(arguments):
        facts.append(fact)
        sys.stdout.writelines(f"{line}\n" for line in _lines(fact))
        sys.stdout.flush()  # what follows may take minutes
    if arguments.page is not None:
        FactsPicture(facts, title=f"What is in {arguments.file.name}").save(arguments.page)
    return 0


def _facts(arguments: argparse.Namespace) -> Iterator[Fact]:
    """What there is to say, in order."""
    task, reason = task_of_file(arguments.file)
    yield Fact(f"task: {task}, because {reason}")
    if suffix_of(arguments.file.name) not in TABLES:
        yield Fact(f"rows: {read_rows(arguments.file, task, arguments, owner=OWNER).num_rows:,}")
        yield from _next_steps(arguments, task, None, [])
        return
    check_scikit_learn("keras-bert-layers", OWNER)
    chosen, rows = _read(arguments)
    yield from _about_columns(chosen, rows.labels)
    yield from _about_repeats(arguments, chosen, rows)
    num_rows = len(rows.texts)
    rows = rows.at(np.sort(np.random.default_rng(_SEED).permutation(num_rows)[: arguments.rows]).tolist())
    encoder = encoded_rows.load_sentence_encoder(arguments.model, owner=OWNER)
    options, fact = _lengths(encoder.preprocessor, rows.texts)
    yield fact
    if len(set(rows.labels)) > 1:
        yield from _simple_models(encoder.model, rows, chosen.kind, arguments.batch_size)
        yield from _minutes(encoder, rows, chosen.kind, num_rows)
    yield from _next_steps(arguments, task, chosen, options)


def _lines(fact: Fact) -> Iterator[str]:
    """What is printed of a fact."""
    yield (" " if len(fact.code) == 1 else "\n  ").join([fact.line, *fact.code])
    for number, label, *_, text in fact.rows[: min(fact.num_printed, _SHOWN)]:
        yield f"  row {number} ({label}): {' '.join(text.split())[:80]}"


def _read(arguments: argparse.Namespace) -> tuple[Chosen, Rows]:
    """The chosen columns, and their rows."""
    lines = list(table_rows(arguments.file, OWNER))
    table = [row for _, row in lines]
    if not table:
        raise ValueError(f"`{OWNER}`: {arguments.file} must have a header and at least one row.")
    names = list(table[0])
    for option in ("text", "label"):
        name = getattr(arguments, option)
        if name is not None:
            checks.one_of(OWNER, f"--{option}", name, names)
    chosen = choose_columns({name: [row.get(name) for row in table] for name in names}, arguments.text, arguments.label)
    read = [name for name in (chosen.text, chosen.label) if name]
    texts, *labels = zip(*cells_of(lines, arguments.file, read, owner=OWNER), strict=True)
    found = [str(cell).strip() for cell in labels[0]] if labels else [""] * len(texts)
    return chosen, Rows([str(cell) for cell in texts], found, range(1, len(texts) + 1))


def _about_columns(chosen: Chosen, labels: list[str]) -> Iterator[Fact]:
    """The columns, and the labels."""
    others, beside = (", ".join(map(shlex.quote, names)) for names in (chosen.others, chosen.beside))
    others, beside = others and f"; not read: {others}", beside and f"; beside them: {beside}"
    yield Fact(f"columns: texts in {chosen.text!r}, labels in {chosen.label!r}{beside}{others}")
    if chosen.label is None:
        yield Fact("labels: none found; name their column by --label")
    elif chosen.kind == "number":
        numbers = np.array(labels, np.float64)
        line = f"labels: numbers from {numbers.min():g} to {numbers.max():g}, {numbers.mean():.3g} on average"
        yield Fact(line, ("label", "rows"), values=numbers)
    else:
        found = Counter(labels).most_common()
        shares = {name: f"{100 * count / len(labels):.1f} %" for name, count in found}
        shown = ", ".join(f"{name} {shares[name]}" for name, _ in found[:_SHOWN])
        rest = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        bars = {name: (count, f"{count:,} ({shares[name]})") for name, count in found}
        yield Fact(f"labels: of {len(found)} kinds: {shown}{rest}", ("label", "rows"), bars)


def _about_repeats(arguments: argparse.Namespace, chosen: Chosen, rows: Rows) -> Iterator[Fact]:
    """Repeated texts, also of the rows to validate on."""
    first = repeated(rows.texts)
    contradicted = [row for row, other in first.items() if rows.labels[row] != rows.labels[other]]
    places = dict.fromkeys([*contradicted, *first])  # those with another label first
    again, earlier = rows.at(places), rows.at(first[row] for row in places)
    table = list(zip(again.numbers, again.labels, earlier.numbers, earlier.labels, again.texts, strict=True))
    of_these = f", {len(contradicted):,} of them with another label" if chosen.label else ""
    line = f"rows: {len(rows.texts):,}; {len(first):,} repeat the text of an earlier row{of_these}"
    yield Fact(line, ("row", "label", "repeats row", "its label", "text"), rows=table, num_printed=len(contradicted))
    if arguments.validation is not None:
        check_file(arguments.validation, owner=OWNER)
        (other,) = read_table(arguments.validation, [chosen.text], owner=OWNER)
        shared = in_both(rows.texts, [str(cell) for cell in other])
        yield Fact(f"validation: {counted(len(other), 'row')}, {shared:,} of them with a text of {arguments.file}")


def _lengths(preprocessor: Any, texts: list[str]) -> tuple[list[str], Fact]:
    """The options of `train` for the lengths of the texts, and the fact about them."""
    lengths = np.array([len(row) for row in preprocessor.tokenizer.tokenize(texts)]) + 2  # both ends
    limit, most = preprocessor.max_length, int(np.percentile(lengths, 99))
    cut = counted(int((lengths > limit).sum()), "text")
    counts = f"{int(np.median(lengths))} in the median, at most {most} in 99 % of the texts, {lengths.max()} at most"
    fitting = max(16, 1 << (most - 1).bit_length())
    options = ["--long-texts", "windows"] if most > limit else ["--max-length", str(fitting)] if fitting < limit else []
    line = f"tokens: {counts}; the model reads {limit}, and {cut} would be cut"
    return options, Fact(line, ("tokens", "texts"), values=lengths, limit=limit)


def _simple_models(encoder: Any, rows: Rows, kind: str, batch_size: int) -> Iterator[Fact]:
    """The scores, and the rows whose labels are doubtful."""
    counts = Counter(rows.labels)
    rows = rows.at([place for place, label in enumerate(rows.labels) if kind == "number" or counts[label] > 1])
    if len(set(rows.labels)) < 2:
        yield Fact("simple models: none, as no two classes have two rows")
        return
    vectors = encoded_rows.vectors_of(encoder, rows.texts, batch_size, owner=OWNER)
    with progress("Cross-validating", 2, unit="models") as advance:
        scores, probabilities = baselines(rows.texts, vectors, rows.labels, kind, advance)
    what = "mean absolute error" if kind == "number" else "accuracy in %"
    bars = {name: (score, f"{score:.3g}") for name, score in scores.items()}
    found = ", ".join(f"{name} {written}" for name, (_, written) in bars.items())
    line = f"simple models, {what}, on {counted(len(rows.texts), 'row')}: {found}"
    yield Fact(line, ("model", what), bars)
    if probabilities is not None:
        others = doubtful(probabilities, rows.labels)
        texts, labels, numbers = rows.at(others)
        table = list(zip(numbers, labels, others.values(), texts, strict=True))
        line = f"doubtful labels, by the frozen vectors: {counted(len(table), 'row')}"
        yield Fact(line, ("row", "label", "by the vectors", "text"), rows=table, num_printed=len(table))


def _minutes(encoder: LoadedModel, rows: Rows, kind: str, num_rows: int) -> Iterator[Fact]:
    """How long `train` takes with its defaults, by a few steps on this machine. The encoder's weights change."""
    import keras_bert_layers as kbl

    if not hasattr(encoder.model, "backbone"):
        return
    is_number = kind == "number"
    options: dict[str, Any] = {"problem_type": "regression"} if is_number else {"class_names": sorted({*rows.labels})}
    model = kbl.BertClassifier(encoder.model.backbone, preprocessor=encoder.preprocessor, **options)
    model.compile(kbl.optimizers.adamw(5e-5))
    rows = rows.at(np.random.default_rng(_SEED).permutation(len(rows.texts))[: _BATCH * _STEPS].tolist())
    labels = [float(label) for label in rows.labels] if is_number else rows.labels
    with progress("Timing", 2, unit="epochs") as advance:
        for _ in range(2):  # the first traces the functions
            start = time.perf_counter()
            model.fit(rows.texts, labels, _BATCH, verbose=0)
            seconds = time.perf_counter() - start
            advance(1)
    minutes = seconds / len(labels) * num_rows * _SHARE * _EPOCHS / 60
    yield Fact(f"fine-tuning: about {minutes:.2g} minutes here for {_EPOCHS} epochs of nine tenths of the rows")


def _next_steps(arguments: argparse.Namespace, task: str, chosen: Chosen | None, options: list[str]) -> Iterator[Fact]:
    """The command, and for a table the Python."""
    words = ["keras-bert-layers", "train", str(arguments.file)]
    if chosen is not None:
        words += ["--text", chosen.text, "--label", chosen.label or "COLUMN"]
        words += ["--labels", "number"] if chosen.kind == "number" else []
        if chosen.label and chosen.beside:
            words += ["--columns", *chosen.beside]
            options = ["head_tail" if option == "windows" else option for option in options]  # columns need one row
    words += ["--validation", str(arguments.validation)] if arguments.validation else []
    words += [*options, "--from", arguments.model, "--to", arguments.file.name.partition(".")[0]]
    yield Fact("next:", code=[shlex.join(words)])
    if chosen is not None and chosen.label:
        is_number = chosen.kind == "number"
        length = f", max_length={options[1]}" if options[:1] == ["--max-length"] else ""
        names = 'problem_type="regression"' if is_number else f"class_names=sorted(set(rows[{chosen.label!r}]))"
        modules = "keras, pandas" if chosen.beside else "pandas"
        lines = [f"import {modules}, keras_bert_layers as kbl", f"rows = pandas.{_reader(arguments.file, chosen)}"]
        x = f"rows[{chosen.text!r}]"
        if chosen.beside:
            lines.append(f"space = keras.utils.FeatureSpace({chosen.beside}, output_mode='concat')")
            length, x = f"{length}, columns=space", f"rows[{[*chosen.beside]}].assign(text={x})"
        lines.append(f"model = kbl.load_task({arguments.model!r}, {task!r}, {names}{length})")
        lines.append(f"model.fit({x}, rows[{chosen.label!r}], epochs={_EPOCHS})")
        yield Fact("or in Python:", code=lines)


def _reader(path: Path, chosen: Chosen) -> str:
    """The call of pandas that reads the rows as `train` does; names of classes and of categories are strings."""
    strings = [] if chosen.kind == "number" else [chosen.label]
    if suffix_of(path.name) in JSON_SUFFIXES:
        name, options = "json", ["lines=True"]
    else:
        separator, quoting = csv_format(path)
        name, options = "csv", [f"sep={separator!r}"] if separator != "," else []
        options += [f"quoting={quoting}"] if quoting else []
        strings += [column for column, kind in chosen.beside.items() if kind == CATEGORIES]
    options += [f"dtype={{{', '.join(f'{column!r}: str' for column in strings)}}}"] if strings else []
    return f"read_{name}({', '.join([repr(str(path)), *options])})"
