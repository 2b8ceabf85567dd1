"""Renders docstring sections that mkdocstrings does not support, or splits at every colon, as plain Markdown."""

import inspect
import re
from typing import Any

import griffe

# A title on a line of its own, and the indented lines after it.
SECTION = re.compile(
    r"^(?P<title>Call arguments|Returns|References):\n(?P<body>(?:(?:    [^\n]*)?(?:\n|\Z))+)", re.MULTILINE
)
ARGUMENT = re.compile(r"^(\w+): ", re.MULTILINE)


class DocstringSections(griffe.Extension):
    """Rewrites each docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = SECTION.sub(as_markdown, inspect.cleandoc(obj.docstring.value) + "\n")


def as_markdown(section: re.Match[str]) -> str:
    """The section as a bold title and a paragraph, or a list of arguments."""
    body = inspect.cleandoc(section["body"])
    if section["title"] == "Call arguments":
        body = ARGUMENT.sub(r"- `\1`: ", body)
    return f'<span class="doc-section-title">{section["title"]}:</span>\n\n{body}\n\n'
