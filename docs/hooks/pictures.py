"""Runs the Python blocks of pages with `pictures: true`, and shows the picture that a notebook would show after each.

The blocks of a page run in order in one namespace, as in the tests of the documentation. If the last statement of a
block is an expression whose value has `_repr_html_`, the HTML is inserted after the block. Printed output is already on
the page, and the tests check it. An error stops the build.
"""

import ast
import contextlib
import functools
import io
import os
import re
import tempfile
from typing import Any

BLOCK = re.compile(r"^```python\n(?P<source>.*?)^```\n", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, *, page: Any, **kwargs: Any) -> str:
    """Called by mkdocs for each page, before it becomes HTML."""
    return with_pictures(markdown) if page.meta.get("pictures") else markdown


@functools.cache  # `mkdocs serve` runs only the pages that changed
def with_pictures(markdown: str) -> str:
    """The page, with a picture after each block that returns one."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    namespace: dict[str, Any] = {"__name__": "__main__"}

    def run_block(block: re.Match[str]) -> str:
        picture = run(block["source"], namespace)
        return block[0] if picture is None else f"{block[0]}\n{picture}\n"

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return BLOCK.sub(run_block, markdown)


def run(source: str, namespace: dict[str, Any]) -> str | None:
    """Runs one block, and returns the HTML of its last value, if it has any."""
    program = ast.parse(source)
    last = program.body.pop() if isinstance(program.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(program, "<block>", "exec"), namespace)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<block>", "eval"), namespace)
    return value._repr_html_() if hasattr(value, "_repr_html_") else None
