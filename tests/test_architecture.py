"""Architecture of the package: allowed imports between modules, and house rules that a program can check.

A rule is one test over all files, which lists everything that breaks it, as `file:line: what`.
"""

import ast
import functools
import inspect
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import keras_bert_layers as kbl

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "keras_bert_layers"


@functools.cache
def parsed_sources():
    """Path -> syntax tree, for each file of the package."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def nodes():
    """Each node of each file: its place, as `file:line`, and the node."""
    for path, tree in parsed_sources().items():
        for node in ast.walk(tree):
            yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", node


def test_imports_only_go_down():
    # A process of its own: import-linter's logging set-up switches off every logger that exists already.
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as lint; lint()", "--no-cache"]
    result = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


MOST_FILES_WITHOUT_ORDER = 12


def test_large_folders_have_a_contract_of_their_own():
    """A folder whose files may import each other as they like ends as one circle."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    ordered = set()
    for contract in settings["contracts"]:
        if contract["type"] == "layers" and contract.get("exhaustive"):
            ordered |= set(contract["containers"])
    folders = Counter(folder for path in parsed_sources() for folder in path.parents if folder.is_relative_to(PACKAGE))
    large = {folder for folder, files in folders.items() if files > MOST_FILES_WITHOUT_ORDER}
    without = {".".join(folder.relative_to(ROOT).parts) for folder in large} - ordered
    assert not without, f"no exhaustive contract of layers: {sorted(without)}"


def test_no_assert_print_or_bare_except():
    def offence(node):
        if isinstance(node, ast.Assert):
            return "assert"
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            return "bare except"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            return "print"
        return None

    found = [f"{place}: {what}" for place, node in nodes() if (what := offence(node))]
    assert not found, "\n".join(found)


def test_no_top_level_import_of_tensorflow():
    found = []
    for path, tree in parsed_sources().items():
        for node in tree.body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0].startswith(("tensorflow", "torch", "jax")) for name in names):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {', '.join(names)}")
    assert not found, "\n".join(found)


# Small classes of one kind share a file, which has another name: file -> its classes.
SHARED_HOMES = {
    "calibration": {"Calibration"},
    "callbacks": {"AdversarialTraining", "GradualUnfreezing", "RDrop"},
    "class_metrics": {"F1Score", "MatthewsCorrelation"},
    "classification_head": {"FlattenChoices", "MultipleChoiceHead", "TokenClassificationHead"},
    "classification_report": {"ClassificationError"},
    "correlations": {"PearsonCorrelation", "SpearmanCorrelation"},
    "curves": {"LearningRateCurve", "ProbeCurve", "TrainingCurves"},
    "entities": {"EntityF1"},
    "encoder_parts": {"LocalAttention"},
    "feed_forward": {"GatedFeedForward"},
    "full_sentences": {"DocumentSentences"},
    "pooler": {"HeadTransform", "NextSentenceHead"},
    "long_texts": {"HeadTail", "Windows"},
    "positions": {"RelativePositionBias", "RotaryPositions", "SinusoidalPositions"},
    "ranking": {"LambdaRank", "ListNet", "RankNet", "RankingLoss"},
    "vectors": {
        *("AnglE", "CoSENT", "DistillKLDiv", "MarginMSE", "Matryoshka", "MultipleNegativesRanking", "Triplet"),
        "VectorLoss",
    },
    # The function `load_report` stands beside its class, and a module of the same name would hide it.
    "reports": {"LoadReport"},
    "schedules": {"GoogleWarmupLinearDecay", "Warmup", "WarmupLinearDecay", "WarmupStableDecay"},
    "segment_pairs": {"NextSentence", "SentenceOrder", "SentencePairs"},
    "handlers": {"OnnxHandler", "SavedModelHandler"},
    "token_ids": {"AddedToken"},
    "token_metrics": {"MaskedAccuracy", "Perplexity"},
    "token_rows": {"RowRule"},
}


def public_classes():
    folders = [value for name in kbl.__all__ if inspect.ismodule(value := getattr(kbl, name))]
    assert len(folders) > 5
    for module in (kbl, *folders):
        for public in getattr(module, "__all__", ()):
            if inspect.isclass(value := getattr(module, public)):
                yield value


def test_public_classes_live_in_a_file_of_their_name_or_with_their_kind():
    homes, found = {}, []
    for value in public_classes():
        name, stem = value.__name__, value.__module__.split(".")[-1]
        if name in SHARED_HOMES.get(stem, ()):
            continue
        snake_case = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
        if stem not in (snake_case, snake_case.removeprefix("bert_")):
            found.append(f"{value.__module__}: {name} belongs into {snake_case}.py")
        if homes.setdefault(value.__module__, value) is not value:
            found.append(f"{value.__module__}: holds {homes[value.__module__].__name__} and {name}")
    assert homes
    assert not found, "\n".join(found)


def test_only_the_layers_that_the_docstring_names_call_tensorflow():
    calling = set()
    for path in [*(PACKAGE / "layers").rglob("*.py"), PACKAGE / "backbone.py", PACKAGE / "config.py"]:
        for node in ast.walk(parsed_sources()[path]):
            if isinstance(node, ast.ImportFrom) and node.module == "keras_bert_layers._internal.lazy":
                calling |= {path.stem for alias in node.names if alias.name != "make_lazy"}
    named = set(re.findall(r"`(\w+)`", kbl.layers.__doc__)) - {"keras"}
    assert named
    assert calling == named


def module_of(path):
    """The dotted name of a file of the package."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def goes_down(importer, imported):
    """Whether the layers of pyproject.toml let a module import another one."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    for contract in settings["contracts"]:
        for container in contract.get("containers", ()):
            levels = {
                f"{container}.{name.strip()}": level
                for level, names in enumerate(contract["layers"])
                for name in re.split("[|:]", names)
            }
            above, below = (
                next((name for name in levels if f"{module}.".startswith(f"{name}.")), None)
                for module in (importer, imported)
            )
            # Other contracts decide of what is in no layer of this one.
            if above and below and above != below and levels[above] >= levels[below]:
                return False
    return imported != "keras_bert_layers"


# They import what a table names: the stub beside a package, and the classes that the top level registers.
IMPORT_FROM_TABLES = {"keras_bert_layers._internal.lazy", "keras_bert_layers._internal.registration"}
# It imports parts of tensorflow-text, whose names stand in the calls of one function.
IMPORT_OTHER_PACKAGES = {"keras_bert_layers.preprocessing.engines.tensorflow_text_internals"}
IMPORTING = {"import_module", "__import__", "resolve_name", "run_module", "LazyModule"}


def imports_by_name(tree):
    """Line and name of each module that a call imports, which the import linter does not see; None if it is made."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", None))
            if called in IMPORTING:
                name = node.args[0]
                yield node.lineno, name.value if isinstance(name, ast.Constant) else None


def test_imports_by_name_only_go_down():
    found = []
    for path, tree in parsed_sources().items():
        importer = module_of(path)
        if importer in IMPORT_FROM_TABLES | IMPORT_OTHER_PACKAGES:
            continue
        for line, imported in imports_by_name(tree):
            if imported is None or imported.startswith("."):
                found.append(f"{path.relative_to(ROOT)}:{line}: imports a module whose name is made when it runs")
            elif imported.split(".")[0] == "keras_bert_layers" and not goes_down(importer, imported):
                found.append(f"{path.relative_to(ROOT)}:{line}: imports {imported} by its name")
    assert not found, "\n".join(found)


def test_lazy_packages_name_only_modules_below_them():
    found, stubs = [], sorted(PACKAGE.rglob("__init__.pyi"))
    assert len(stubs) > 5
    for stub in stubs:
        package = ".".join(stub.relative_to(ROOT).parts[:-1])
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ImportFrom) or f"{node.module}.".startswith(f"{package}."):
                continue
            if not goes_down(package, node.module):
                found.append(f"{stub.relative_to(ROOT)}:{node.lineno}: names {node.module}")
    assert not found, "\n".join(found)


def test_only_the_command_line_imports_public_names_of_the_top_level():
    """The linter takes the top level, which imports all below it when a name is used, for no layer at all."""
    folders = {path.stem for path in PACKAGE.iterdir()}
    found = [
        f"{place}: {alias.name}"
        for place, node in nodes()
        if isinstance(node, ast.ImportFrom) and node.module == "keras_bert_layers"
        for alias in node.names
        if alias.name not in folders and not place.startswith(("keras_bert_layers/cli/", "keras_bert_layers/__main__"))
    ]
    assert not found, "\n".join(found)


def test_the_rule_finds_what_it_forbids():
    source = (
        'importlib.import_module("keras_bert_layers.tasks")\n'
        'import_module(f"keras_bert_layers.{name}")\n'
        '__import__("json")\n'
    )
    assert list(imports_by_name(ast.parse(source))) == [(1, "keras_bert_layers.tasks"), (2, None), (3, "json")]
    top = "keras_bert_layers"
    assert goes_down(f"{top}.checkpoints.task_table", f"{top}.tasks")
    assert goes_down(f"{top}.tasks.task", f"{top}.tasks.prediction")
    assert goes_down(f"{top}.cli.commands.train", f"{top}.checkpoints.google.writer")
    assert goes_down(f"{top}.checkpoints.loaders", f"{top}.checkpoints.google.writer")
    assert not goes_down(f"{top}.config", f"{top}.checkpoints.google.config_keys")
    assert not goes_down(f"{top}.checkpoints.google.writer", f"{top}.checkpoints.loaders")
    assert not goes_down(f"{top}.checkpoints.google.writer", f"{top}.checkpoints.hub")
    assert not goes_down(f"{top}.data.rows", top)


MAX_LINES, MAX_FUNCTION_LINES, MAX_ARGUMENTS, MAX_METHODS = 450, 45, 10, 20
# More than the bounds, and why: a puzzle would be worse.
WIDE_CONSTRUCTORS = {
    "BertEmbedding": "sizes and rates, each a key of a config",
    "BytePairTokenizer": "options of tokenizer.json, each of which changes ids",
    "SentencePieceTokenizer": "options of tokenizer.json, each of which changes ids, and the rule of words",
    "BertClassifier": "a backbone, the kind of labels, and how vectors are made of texts",
    "BertDualEncoder": "two backbones and two preprocessors, and how vectors are made of texts",
    "BertSentenceEncoder": "a backbone and each option that sentence-transformers stores",
    "BertSparseEncoder": "the same, the options of a masked language model's head, and the penalty",
}
LARGE_CLASSES = {
    "Task": "the methods of keras.Model that it replaces",
    "Inputs": "the hooks of a kind of data; each has a default, and a kind replaces few",
}


def length_without_docstring(function):
    first = function.body[0]
    docstring = first if ast.get_docstring(function, clean=False) is not None else None
    return function.end_lineno - function.lineno + 1 - (docstring.end_lineno - docstring.lineno + 1 if docstring else 0)


def test_what_is_read_at_once_is_short():
    found = []
    for path, tree in parsed_sources().items():
        if (lines := path.read_text(encoding="utf-8").count("\n")) > MAX_LINES:
            found.append(f"{path.relative_to(ROOT)}: {lines} lines")
        for node in ast.walk(tree):
            place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {getattr(node, 'name', '')}"
            if isinstance(node, ast.FunctionDef) and (lines := length_without_docstring(node)) > MAX_FUNCTION_LINES:
                found.append(f"{place}: {lines} lines")
            if not isinstance(node, ast.ClassDef):
                continue
            methods = {method.name: method for method in node.body if isinstance(method, ast.FunctionDef)}
            if "__init__" in methods and node.name not in WIDE_CONSTRUCTORS:
                arguments = methods["__init__"].args
                number = len(arguments.args) - 1 + len(arguments.kwonlyargs)
                found += [f"{place}: {number} arguments"] if number > MAX_ARGUMENTS else []
            public = [name for name in methods if not name.startswith("_")]
            if len(public) > MAX_METHODS and node.name not in LARGE_CLASSES:
                found.append(f"{place}: {len(public)} public methods")
    assert not found, "\n".join(found)


def names_a_function(value, functions):
    """Whether an expression is one of these functions, or a function of one of these modules."""
    if not isinstance(value, ast.Name | ast.Attribute):
        return False
    first, *attributes = ast.unparse(value).split(".")
    return first in functions and not first[:1].isupper() and (not attributes or attributes[-1].islower())


def test_methods_are_written_out():
    """What is bound by assignment is in no documentation, and no type checker sees it."""
    found = []
    for path, tree in parsed_sources().items():
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        functions |= {alias.asname or alias.name for node in imports for alias in node.names}
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        for statement in (each for node in classes for each in node.body if isinstance(each, ast.Assign)):
            values = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
            if any(names_a_function(value, functions) for value in values):
                found.append(f"{path.relative_to(ROOT)}:{statement.lineno}: {ast.unparse(statement)}")
    assert not found, "\n".join(found)


# Private to others by their names, but not by their documentation, or without a public way.
NAMED_TUPLES_OWN = {"_replace", "_asdict", "_exit", "_repr_html_"}
KERAS_OWN = {
    "_flatten_layers", "_run_through_graph", "_kernel", "_loss_tracker", "_initial_epoch", "_registry",
    "_get_variable_index", "_momentums", "_velocities", "_variables", "_trainable_variables",
    "_trainable_variables_indices", "_iterations", "_untrack_variable", "_tracker", "_nodes_by_depth", "_keras_history",
}  # fmt: skip
TORCHS_OWN = {"_linear_pointwise"}


def test_no_object_reads_the_private_attributes_of_another():
    found = []
    for path, tree in parsed_sources().items():
        own = {
            node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
                is_own = ast.unparse(node.value).split("(")[0] in ("self", "cls", "super") or node.attr in own
                if not is_own and node.attr not in NAMED_TUPLES_OWN | KERAS_OWN | TORCHS_OWN:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    assert not found, "\n".join(found)


MOST_ANYTHING = 0.1


def test_parameters_have_types_that_say_something():
    untyped, number = [], 0
    for place, node in nodes():
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
            arguments = [argument for argument in arguments if argument and argument.arg not in ("self", "cls")]
            number += len(arguments)
            for argument in arguments:
                if argument.annotation and ast.unparse(argument.annotation) in ("Any", "Any | None"):
                    untyped.append(f"{place}: {node.name}: {argument.arg}")
    assert len(untyped) < MOST_ANYTHING * number, f"{len(untyped)} of {number}:\n" + "\n".join(untyped)


def test_private_names_are_imported_only_from_their_own_folder():
    found = []
    for path, tree in parsed_sources().items():
        folder = ".".join(path.parent.relative_to(ROOT).parts)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name.startswith("keras_bert_layers.") and is_private_elsewhere(name, folder):
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {name}")
    assert not found, "\n".join(found)


def is_private_elsewhere(name, folder):
    """Whether a part of a dotted name begins with an underscore, and `folder` is not the one that holds that part."""
    parts = name.split(".")
    for number, part in enumerate(parts):
        if part.startswith("_") and not part.endswith("__"):
            owner = ".".join(parts[:number])
            if not (ROOT / owner.replace(".", "/")).is_dir():  # a name of a module: private to the module's folder
                owner = ".".join(parts[: number - 1])
            is_folder = (ROOT / owner.replace(".", "/") / part).is_dir()  # of which all below its owner is free to use
            if folder != owner and not (is_folder and f"{folder}.".startswith(f"{owner}.")):
                return True
    return False


def test_the_rule_of_private_names():
    top = "keras_bert_layers"
    assert not is_private_elsewhere(f"{top}._internal.checks", f"{top}.tasks.training")
    assert not is_private_elsewhere(f"{top}.layers._dropout.Dropout", f"{top}.layers")
    assert is_private_elsewhere(f"{top}.layers._dropout.Dropout", f"{top}.tasks")
    assert is_private_elsewhere(f"{top}.layers._dropout.Dropout", top)
    assert is_private_elsewhere(f"{top}.layers.dense._helper", f"{top}.tasks")
    assert not is_private_elsewhere(f"{top}.layers.dense._helper", f"{top}.layers")
    assert not is_private_elsewhere(f"{top}.__version__", f"{top}.cli")
