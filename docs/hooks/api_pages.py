"""Gives each public name a page of its own in the API: `reference/layers/Pooler.html`.

The source is the hand-written page of the subpackage, such as `reference/layers.md`. There, each `::: NAME` block
becomes a link with the first sentence of the docstring, and the block itself moves to the page of the name. In the
navigation, the pages stand below that of the subpackage. Without this hook, the site has one long page for each
subpackage.
"""

import re
from typing import Any

from mkdocs.structure.files import File

BLOCK = re.compile(r"^::: (?P<name>[\w.]+)\n(?P<options>(?:    .*\n)*)", re.MULTILINE)
HEADING_LEVEL = re.compile(r" +heading_level: \d\n")
SOURCE = re.compile(r"reference/[\w-]+\.md")


def on_files(files: Any, *, config: Any) -> Any:
    """Called by mkdocs when it knows all files: adds the pages of names, and puts them into the navigation."""
    pages = {}
    for file in list(files):
        if SOURCE.fullmatch(file.src_uri) and (made := name_pages(file.src_uri, file.content_string)):
            pages[file.src_uri] = list(made)
            for path, content in made.items():
                files.append(File.generated(config, path, content=content))
    config["nav"] = [with_names(entry, pages) for entry in config["nav"]]
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, **kwargs: Any) -> str:
    """Called by mkdocs for each page, before it becomes HTML: replaces the blocks of a subpackage by links."""
    if not SOURCE.fullmatch(page.file.src_uri):
        return markdown
    handler = config["plugins"]["mkdocstrings"].get_handler("python")

    def link(block: re.Match[str]) -> str:
        name = block["name"]
        docstring = handler.collect(name, handler.get_options({})).docstring
        first = f": {docstring.value.splitlines()[0]}" if docstring else ""
        return f"- [`{name.rpartition('.')[2]}`][{name}]{first}\n"

    return BLOCK.sub(link, markdown)


def name_pages(source: str, markdown: str) -> dict[str, str]:
    """The path and the content of the page of each name.

    Args:
        source: the page of a subpackage.
        markdown: its content.
    """
    pages = {}
    for block in BLOCK.finditer(markdown):
        name = block["name"].rpartition(".")[2]
        options = HEADING_LEVEL.sub("", block["options"]).removeprefix("    options:\n")
        content = f"---\ntitle: {name}\n---\n\n::: {block['name']}\n    options:\n      heading_level: 1\n{options}"
        pages[f"{source.removesuffix('.md')}/{name}.md"] = content
    return pages


def with_names(entry: Any, pages: dict[str, list[str]]) -> Any:
    """An entry of the navigation, in which the page of a subpackage is followed by those of its names."""
    if isinstance(entry, str):
        return entry
    ((title, below),) = entry.items()
    if isinstance(below, list):
        return {title: [with_names(part, pages) for part in below]}
    return {title: [{"Overview": below}, *pages[below]]} if below in pages else entry
