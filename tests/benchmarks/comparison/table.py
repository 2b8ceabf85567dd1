"""Tables as text for a terminal, and as Markdown for the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from comparison.report import Table
from tabulate import tabulate


def as_text(tables: Sequence[Table]) -> str:
    """All tables below each other, with their notes."""
    return "\n".join(_render(table, "simple", title=table.title.upper(), note="  ") for table in tables)


def as_markdown(tables: Sequence[Table]) -> str:
    """The same as Markdown, each with a heading."""
    return "\n".join(_render(table, "github", title=f"## {table.title}", note="- ") for table in tables)


def _render(table: Table, form: str, *, title: str, note: str) -> str:
    align = ["left", *["right"] * (len(table.headings) - 1)] if table.title != "Goals" else ["left"] * 5
    printed = tabulate(
        table.rows, table.headings, tablefmt=form, disable_numparse=True, colalign=align if table.rows else None
    )
    notes = "".join(f"{note}{line}\n" for line in table.notes)
    return f"{title}\n\n{printed}\n\n{notes}"
