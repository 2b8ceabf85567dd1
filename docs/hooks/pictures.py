"""Shows, after the Python blocks of a page with `pictures: true`, the pictures that a notebook would show.

The build runs nothing. `docs/pictures/make_page_pictures.py` runs the blocks of a page and keeps their pictures beside
it, in `PAGE.pictures.html`: their style, then for each block a comment with the hash of the page's code up to its end,
and the picture, if the block has one. Code that changed has another hash; the build then warns, and `--strict` fails.
"""

import hashlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(?P<source>.*?)^```\n", re.MULTILINE | re.DOTALL)
CURE = "run `python3 docs/pictures/make_page_pictures.py`"

log = logging.getLogger(f"mkdocs.hooks.{__name__}")


def on_page_markdown(markdown: str, *, page: Any, **kwargs: Any) -> str:
    """Called by mkdocs for each page, before it becomes HTML."""
    if not page.meta.get("pictures"):
        return markdown
    path = Path(page.file.abs_src_path)
    style, pictures = read_pictures(path)
    hashes = [block for block, _ in blocks(markdown)]
    changed = [block for block in hashes if block not in pictures]
    if changed:
        log.warning("%s: %d blocks changed after their pictures were made: %s", path.name, len(changed), CURE)
    shown = (f"\n{pictures[block]}\n" if pictures.get(block) else "" for block in hashes)
    return f"{style}\n{BLOCK.sub(lambda block: block[0] + next(shown), markdown)}"


def blocks(markdown: str) -> Iterator[tuple[str, str]]:
    """Hash and source of each Python block."""
    before = hashlib.sha256()
    for block in BLOCK.finditer(markdown):
        before.update(block["source"].encode())
        yield before.hexdigest()[:16], block["source"]


def pictures_of(page: Path) -> Path:
    """The file with the pictures of a page."""
    return page.with_suffix(".pictures.html")


def read_pictures(page: Path) -> tuple[str, dict[str, str]]:
    """The style of a page's pictures, and the hash of each block with its picture, which may be empty."""
    path = pictures_of(page)
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    style, *parts = re.split(r"^<!-- (\w+) -->\n", text, flags=re.MULTILINE)
    return style, dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))


def write_pictures(page: Path, style: str, pictures: dict[str, str]) -> None:
    """Keeps the pictures of a page."""
    lines = (line for block, picture in pictures.items() for line in (f"<!-- {block} -->", picture) if line)
    pictures_of(page).write_text(style + "\n".join(lines) + "\n", encoding="utf-8")
