"""Texts and labels from the files of the GLUE benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers.data._row_collector import RowCollector
from keras_bert_layers.data._text_file import not_utf8, numbered_lines
from keras_bert_layers.data.columns import Columns


@dataclass(frozen=True)
class GlueTask:
    """Where one of the tasks keeps its texts and labels.

    Args:
        texts: the names of the columns that hold texts, one or two.
        label: the name of the column that holds the label.
        classes: the labels that there are; none where a label is a number on a scale.
        scale: the smallest and the largest label of such a task.
        header: the names of the columns where a file does not name them.
    """

    texts: tuple[str, ...]
    label: str
    classes: tuple[str, ...] = ()
    scale: tuple[float, float] = (0.0, 0.0)
    header: tuple[str, ...] = ()


YES_NO = ("0", "1")
ENTAILMENT = ("entailment", "not_entailment")
TASKS = {
    "CoLA": GlueTask(("sentence",), "label", YES_NO, header=("source", "label", "mark", "sentence")),
    "MNLI": GlueTask(("sentence1", "sentence2"), "gold_label", ("entailment", "neutral", "contradiction")),
    "MRPC": GlueTask(("#1 String", "#2 String"), "Quality", YES_NO),
    "QNLI": GlueTask(("question", "sentence"), "label", ENTAILMENT),
    "QQP": GlueTask(("question1", "question2"), "is_duplicate", YES_NO),
    "RTE": GlueTask(("sentence1", "sentence2"), "label", ENTAILMENT),
    "SST-2": GlueTask(("sentence",), "label", YES_NO),
    "STS-B": GlueTask(("sentence1", "sentence2"), "score", scale=(0.0, 5.0)),
    "WNLI": GlueTask(("sentence1", "sentence2"), "label", YES_NO),
}


def read_glue(path: str | PathLike[str], task: str, *, labels: bool = True, on_error: str = "raise") -> Columns:
    r"""Reads the texts and labels of one task, from its training, development or test file.

    The files are tab-separated and have no quoting: a quotation mark is part of the text. Only CoLA's have no header.

    Args:
        path: a `.tsv` file, UTF-8, plain or gzip, a byte order mark allowed.
        task: `"CoLA"`, `"MNLI"`, `"MRPC"`, `"QNLI"`, `"QQP"`, `"RTE"`, `"SST-2"`, `"STS-B"` or `"WNLI"`.
        labels: whether to read labels too; say False for a test file, which has none.
        on_error: what to do with a row that has too few or too many cells, an empty text, a label that the task does
            not have, or bytes that are not UTF-8. `"raise"`, or `"skip"`: leave it out, count it, and warn once.

    Returns:
        One row a row, in the columns `first`, `second` for a task of pairs, and `labels` if they are read. Texts are as
        in the file. Labels are integers for CoLA, MRPC, QQP, SST-2 and WNLI, names as in the file for MNLI, QNLI and
        RTE, and floats from 0 to 5 for STS-B.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: an unknown task; a column that the file does not have; a row that cannot be used, under `"raise"`;
            no rows at all.

    Examples:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.tsv"
        >>> _ = path.write_text("sentence\tlabel\na charming journey\t1\n")
        >>> first, labels = read_glue(path, "SST-2")
        >>> first, labels
        (['a charming journey'], [1])

    References:
        Wang et al. 2018, arXiv:1804.07461.
    """
    path = Path(path)
    layout = TASKS[checks.one_of("read_glue", "task", task, TASKS)]
    checks.boolean("read_glue", "labels", labels)
    names = ("first", "second")[: len(layout.texts)] + (("labels",) if labels else ())
    collector = RowCollector("read_glue", path, names, on_error=on_error)
    wanted = [*layout.texts, *([layout.label] if labels else [])]
    read_label = _label_reader(layout)
    for line, header, text in _rows(path, layout, wanted):
        cells = text.split("\t")
        row = dict(zip(header, cells, strict=False))
        problem = not_utf8(text) or _problem(header, cells) or _empty(row, wanted)
        values: list[Any] = [row.get(name) for name in layout.texts]
        if labels and not problem:
            label, problem = read_label(row[layout.label].strip())
            values.append(label)
        if problem:
            collector.leave_out(f"line {line}", problem)
        else:
            collector.keep(*values)
    return collector.columns("no row to read.")


def _rows(path: Path, layout: GlueTask, wanted: list[str]) -> Iterator[tuple[int, list[str], str]]:
    """Yields line, names of the columns, and the row as it stands; blank lines are none."""
    header: list[str] = []
    for line, text in numbered_lines(path):
        if not text.strip():
            continue
        if not header:
            header = text.split("\t")
            has_names = layout.texts[0] in header
            header = list(layout.header) if layout.header and not has_names else header
            _check_columns(path, line, header, wanted)
            if has_names:
                continue
        yield line, header, text


def _check_columns(path: Path, line: int, header: list[str], wanted: list[str]) -> None:
    for name in wanted:
        if name not in header:
            cure = "For a test file, which has no labels, say labels=False; else see that `task` is right."
            raise ValueError(f"{path}, line {line}: no column named {name!r}. The columns are {header}. {cure}")


def _problem(header: list[str], cells: list[str]) -> str:
    if len(cells) == len(header):
        return ""
    return f"{len(cells)} cells where there are {len(header)} columns. Tabs separate cells, and nothing else does."


def _empty(row: dict[str, str], wanted: list[str]) -> str:
    return next((f"column {name!r} is empty. Fill or remove the row." for name in wanted if not row[name].strip()), "")


def _label_reader(layout: GlueTask) -> Callable[[str], tuple[int | float | str | None, str]]:
    """A function that reads one label, and says what is wrong with it, or `""`."""

    def read_class(label: str) -> tuple[int | str | None, str]:
        if label not in layout.classes:
            return None, f"the label must be one of {list(layout.classes)}. Received: {label!r}."
        return (int(label) if layout.classes == YES_NO else label), ""

    def read_number(label: str) -> tuple[float | None, str]:
        lowest, highest = layout.scale
        try:
            number = float(label)
        except ValueError:
            number = float("nan")
        if not lowest <= number <= highest:
            return None, f"the label must be a number from {lowest:g} to {highest:g}. Received: {label!r}."
        return number, ""

    return read_class if layout.classes else read_number
