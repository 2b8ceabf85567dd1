"""Reads texts and labels from the files of the GLUE benchmark."""

import contextlib
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from keras_bert_layers._internal import checks
from keras_bert_layers.data.columns import Columns
from keras_bert_layers.data.text_file import RowCollector, RowError, check_utf8, numbered_lines


class GlueTask(NamedTuple):
    """The layout of one task's files.

    Args:
        texts: the names of the columns of texts, one or two.
        label: the name of the column of labels.
        classes: the possible labels; empty if a label is a number from 0 to `HIGHEST_SCORE`.
        header: the names of all columns, if the files do not name them.
    """

    texts: tuple[str, ...]
    label: str
    classes: tuple[str, ...] = ()
    header: tuple[str, ...] = ()


HIGHEST_SCORE = 5
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
    "STS-B": GlueTask(("sentence1", "sentence2"), "score"),
    "WNLI": GlueTask(("sentence1", "sentence2"), "label", YES_NO),
}


def read_glue(path: str | PathLike[str], task: str, *, labels: bool = True, on_error: str = "raise") -> Columns:
    r"""Reads the texts and labels of one GLUE task, from its training, development or test file.

    The files are tab-separated and have no quoting: a quotation mark is part of the text. Only CoLA's have no header.

    Args:
        path: a `.tsv` file, UTF-8, plain or gzip, with or without a byte order mark.
        task: `"CoLA"`, `"MNLI"`, `"MRPC"`, `"QNLI"`, `"QQP"`, `"RTE"`, `"SST-2"`, `"STS-B"` or `"WNLI"`.
        labels: whether to read labels too; set it to False for a test file, which has none.
        on_error: what to do with a row that has too few or too many cells, an empty text, a label that the task does
            not have, or bytes that are not UTF-8. `"raise"` an error, or `"skip"`: leave the row out, count it, and
            warn once.

    Returns:
        The columns `first`, `second` for a task on pairs, and `labels` if they are read. Texts are as in the file.
        Labels are integers for CoLA, MRPC, QQP, SST-2 and WNLI, names as in the file for MNLI, QNLI and RTE, and floats
        from 0 to 5 for STS-B.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the task is unknown, the file lacks a column, a row cannot be used (with `"raise"`), or the file has
            no rows.

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
    header: list[str] = []
    for line, text in numbered_lines(path):
        cells = text.split("\t")
        if not text.strip():
            continue
        if not header:
            has_names = layout.texts[0] in cells
            header = cells if has_names or not layout.header else [*layout.header]
            for name in wanted:
                if name not in header:
                    cure = "For a test file, which has no labels, set labels=False; otherwise check `task`."
                    raise ValueError(f"{path}, line {line}: no column named {name!r}. The columns are {header}. {cure}")
            if has_names:
                continue
        try:
            check_utf8(text)
            row = _row(header, cells, wanted)
            label = [_label(row[layout.label].strip(), layout)] if labels else []
        except RowError as error:
            collector.leave_out(f"line {line}", error)
        else:
            collector.keep(*(row[name] for name in layout.texts), *label)
    return collector.columns("no row to read.")


def _row(header: list[str], cells: list[str], wanted: list[str]) -> dict[str, str]:
    """A row by the names of its columns, none of the wanted ones empty."""
    if len(cells) != len(header):
        raise RowError(f"{len(cells)} cells where there are {len(header)} columns. Only tabs separate cells.")
    row = dict(zip(header, cells, strict=True))
    for name in wanted:
        if not row[name].strip():
            raise RowError(f"column {name!r} is empty. Fill or remove the row.")
    return row


def _label(text: str, layout: GlueTask) -> int | float | str:
    if layout.classes:
        if text not in layout.classes:
            raise RowError(f"the label must be one of {[*layout.classes]}. Received: {text!r}.")
        return int(text) if layout.classes == YES_NO else text
    with contextlib.suppress(ValueError):
        if 0 <= float(text) <= HIGHEST_SCORE:
            return float(text)
    raise RowError(f"the label must be a number from 0 to {HIGHEST_SCORE}. Received: {text!r}.")
