"""Makes the pictures of the documentation's pages, and keeps them beside the pages.

    python3 docs/pictures/make_page_pictures.py            # of the pages whose blocks changed
    python3 docs/pictures/make_page_pictures.py PAGE ...   # and of these pages

The Python blocks of a page run in order in one namespace, in an empty folder, as in the tests of the documentation.
Needs the extras `docs` and `quickstart`.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

DOCS = Path(__file__).parents[1]

STYLE = re.compile(r"<style>.*?</style>\n", re.DOTALL)

_spec = importlib.util.spec_from_file_location("pictures", DOCS / "hooks" / "pictures.py")
hook = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(hook)


def pages() -> list[Path]:
    """The pages with pictures."""
    return [path for path in sorted(DOCS.rglob("*.md")) if path.read_text("utf-8").startswith("---\npictures: true\n")]


def is_current(page: Path) -> bool:
    """Whether a page's pictures were made from its present blocks."""
    _, pictures = hook.read_pictures(page)
    return list(pictures) == [block for block, _ in hook.blocks(page.read_text("utf-8"))]


def run(source: str, namespace: dict[str, Any], path: str = "<block>", line: int = 0) -> Any:
    """Runs a block, and returns the value of its last line if that is an expression; else None.

    Args:
        source: the block.
        namespace: the variables of the page.
        path: the page, for tracebacks.
        line: the lines of the page before the block.
    """
    program = ast.parse("\n" * line + source, path)
    last = program.body.pop() if isinstance(program.body[-1], ast.Expr) else None
    exec(compile(program, path, "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), path, "eval"), namespace)


def picture_of(value: Any) -> str:
    """The HTML of a block's value, without the style that all pictures share; empty if it is not a picture."""
    return STYLE.sub("", value._repr_html_()).strip() if hasattr(value, "_repr_html_") else ""


def style() -> str:
    """The style of all pictures."""
    from keras_bert_layers.visualization._html import style_sheet

    return f"<style>{' '.join(line.strip() for line in style_sheet().splitlines())}</style>\n"


def make(page: Path) -> dict[str, str]:
    """Runs a page, and returns its pictures by the hash of their block."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        return {block: picture_of(run(source, namespace)) for block, source in hook.blocks(page.read_text("utf-8"))}


if __name__ == "__main__":
    asked = [Path(name).resolve() for name in sys.argv[1:]]
    for page in pages():
        kept = page not in asked and is_current(page)
        # The style is written anew for all.
        hook.write_pictures(page, style(), hook.read_pictures(page)[1] if kept else make(page))
        print(f"{hook.pictures_of(page)}: {'as it was' if kept else 'made'}", flush=True)
