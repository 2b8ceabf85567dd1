"""The shape of the package: who may import whom, and the house rules that a program can check."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keras_bert_layers as kbl

PACKAGE = Path(__file__).parents[1] / "keras_bert_layers"
SOURCES = sorted(PACKAGE.rglob("*.py"))


def test_imports_only_go_down():
    # A process of its own: import-linter's logging set-up switches off every logger that exists already.
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as lint; lint()", "--no-cache"]
    result = subprocess.run(command, check=False, cwd=PACKAGE.parent, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_assert_print_or_bare_except(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        assert not isinstance(node, ast.Assert), f"assert in line {node.lineno}"
        assert not (isinstance(node, ast.ExceptHandler) and node.type is None), f"bare except in line {node.lineno}"
        is_print = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        assert not is_print, f"print in line {node.lineno}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_top_level_import_of_tensorflow(path):
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name.split(".")[0].startswith(("tensorflow", "torch", "jax")) for name in names)


# The function `load_report` stands beside its class, and a module of the same name would hide it.
OTHER_HOMES = {"LoadReport": "reports"}


def public_classes():
    for name in ("", *kbl._SUBPACKAGES):
        module = importlib.import_module(f"keras_bert_layers.{name}".rstrip("."))
        for public in getattr(module, "__all__", ()):
            if inspect.isclass(value := getattr(module, public)):
                yield value


def test_public_classes_live_alone_in_a_file_of_their_name():
    homes = {}
    for value in public_classes():
        snake_case = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", value.__name__).lower()
        stem = value.__module__.split(".")[-1]
        expected = OTHER_HOMES.get(value.__name__, snake_case)
        assert stem in (expected, expected.removeprefix("bert_")), value
        assert homes.setdefault(value.__module__, value) is value


def test_only_the_layers_that_the_docstring_names_call_tensorflow():
    named = {f"{name}.py" for name in re.findall(r"`(_\w+)`", kbl.layers.__doc__)}
    assert named
    for path in [*(PACKAGE / "layers").glob("*.py"), PACKAGE / "backbone.py", PACKAGE / "config.py"]:
        assert ("_internal.lazy" in path.read_text(encoding="utf-8")) == (path.name in named), path.name
