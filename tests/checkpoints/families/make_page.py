"""Writes `docs/reference/checkpoint-families.md`: the table of families, for readers."""

from collections.abc import Iterable
from pathlib import Path

from family_table import FAMILIES, GROUPS, Family

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "checkpoint-families.md"
_HEADER = """# Supported checkpoints

Checkpoints of the HuggingFace hub, and the models that `load_task` or `load_backbone` loads from them. Every row is a
test: a small directory with random weights, and with the keys of `config.json`, the files of the tokenizer and the
names of tensors that are public, is loaded here and in transformers. Token ids are equal, and outputs within 2e-5.
What cannot be equal is refused. The tests hold no real weights, and a checkpoint may change on the hub.

[Load a checkpoint](../guides/load-a-checkpoint.md) shows how; a checkpoint that is not in the table loads by the same
rules. Where the files do not state the task, give it as `task=...`; its stored head is read.

The table is made from `tests/checkpoints/families/family_table` by `make_page.py` beside it.
"""
_TEXT = "The weights load, and the model takes token ids. The tokenizer is refused; the error states the reason."
_REFUSED = "The error names what differs."


def page() -> str:
    """The content of the page."""
    parts = [_HEADER]
    for title, families in GROUPS.items():
        whole = [family for family in families if not family.refused and not family.refused_text]
        parts.append(_section(title, "", ("Name on the hub", "Task", "Note"), map(_row, whole)))
    ids = [family for family in FAMILIES if family.refused_text]
    parts.append(_section("Token ids only", _TEXT, ("Name on the hub", "Note"), map(_short_row, ids)))
    refused = [family for family in FAMILIES if family.refused]
    parts.append(_section("Refused", _REFUSED, ("Name on the hub", "Why"), map(_short_row, refused)))
    return "\n".join(parts)


def _section(title: str, text: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (columns, ["---"] * len(columns), *sorted(rows))]
    return "\n".join([f"## {title}", "", *([text, ""] if text else []), *lines, ""])


def _row(family: Family) -> tuple[str, ...]:
    asked = f'`task="{family.task}"`'
    task = "encoder" if family.task is None else asked if family.asks else f"`{family.task}`"
    return f"`{family.name}`", task, family.note


def _short_row(family: Family) -> tuple[str, ...]:
    return f"`{family.name}`", family.note


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
