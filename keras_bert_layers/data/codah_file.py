"""Sentences with several ways to go on, from files in CODAH's format."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from keras_bert_layers.data._row_collector import RowCollector
from keras_bert_layers.data._text_file import not_utf8, numbered_lines
from keras_bert_layers.data.columns import Columns


def read_codah(path: str | PathLike[str], *, on_error: str = "raise") -> Columns:
    r"""Reads prompts, their choices and the right one from a tab-separated file without header and without quoting.

    A line holds the category of the question (not read, may be empty), the prompt, two or more choices, and the number
    of the right choice. Rows may have different numbers of choices; cells that are empty behind the last choice, as a
    spreadsheet writes them, are none.

    Args:
        path: a UTF-8 file, plain or gzip, a byte order mark allowed. Blank lines are skipped.
        on_error: what to do with a line with fewer than two choices, an empty text, a number that is none of its
            choices, or bytes that are not UTF-8. `"raise"`, or `"skip"`: leave it out, count it, and warn once.

    Returns:
        One row a line, in the columns `prompts` (strings), `choices` (lists of strings) and `labels` (integers, the
        right choice of the row, counted from 0).

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line that cannot be used, under `"raise"`; no lines at all.

    Examples:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "codah.tsv"
        >>> _ = path.write_text("o\tThe cat is tired. It\tsleeps.\tdrives home.\t0\n")
        >>> read_codah(path)
        Columns(prompts=['The cat is tired. It'], choices=[['sleeps.', 'drives home.']], labels=[0])

    References:
        Chen et al. 2019, arXiv:1904.04365.
    """
    path = Path(path)
    collector = RowCollector("read_codah", path, ("prompts", "choices", "labels"), on_error=on_error)
    for line, text in numbered_lines(path):
        if not text.strip():
            continue
        _, *texts, label = text.split("\t") if "\t" in text else ("", text, "")
        while len(texts) > 1 and not texts[-1].strip():
            texts.pop()
        problem = not_utf8(text) or _problem(texts, label)
        if problem:
            collector.leave_out(f"line {line}", problem)
        else:
            collector.keep(texts[0], texts[1:], int(label))
    return collector.columns("no line to read.")


def _problem(texts: list[str], label: str) -> str:
    """Why a line cannot be used, or `""`."""
    if len(texts) < 3:
        return (
            f"{max(len(texts) - 1, 0)} choices. A line must hold a category, a prompt, two or more choices and the "
            "number of the right one, with tabs between them."
        )
    for number, text in enumerate(texts):
        if not text.strip():
            return f"{f'choice {number - 1}' if number else 'the prompt'} is empty. Fill or remove the line."
    return label_problem(label, len(texts) - 1)


def label_problem(label: object, num_choices: int) -> str:
    """Why `label`, a number or its digits, names none of the choices, or `""`."""
    digits = str(label).strip()
    if not isinstance(label, bool) and digits.isascii() and digits.isdigit() and int(digits) < num_choices:
        return ""
    return f"the answer must be the number of a choice, 0 to {num_choices - 1}. Received: {label!r}."
