"""Importing the package: no framework is imported, classes are registered, public names resolve."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import keras_bert_layers as kbl
from keras_bert_layers._internal.other_libraries import NAMES

HEAVY = ("keras", "tensorflow", "tensorflow_text", "keras_nlp", "keras_hub", "torch", "jax")
REGISTERED = [f"keras_bert_layers>Bert{name}" for name in ("Backbone", "Classifier", "Preprocessor", "Tokenizer")]


def run(code: str, **environment: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:keras_bert_layers", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


@pytest.fixture(scope="module")
def first_import(tmp_path_factory):
    """The findings of one new process, step by step, as each process takes seconds to import Keras."""
    from keras_bert_layers import BertBackbone, BertConfig

    path = tmp_path_factory.mktemp("saved") / "backbone.keras"
    sizes = {"hidden_dim": 4, "num_layers": 1, "num_heads": 2, "intermediate_dim": 4, "max_sequence_length": 5}
    BertBackbone(BertConfig(vocabulary_size=7, **sizes)).save(path)
    code = f"""
import importlib, importlib.util, json, sys
import keras_bert_layers as k
found = {{"loaded": [name for name in {HEAVY} if name in sys.modules]}}
importlib.util.find_spec("keras")
found["loaded after a look for Keras"] = "keras" in sys.modules
import keras.layers
found["hooked"] = [keras.__spec__.name, keras.layers.Dense(3).units]
found["registered"] = [keras.saving.get_registered_object(name) is not None for name in {REGISTERED}]
objects = keras.saving.get_custom_objects()
ours = lambda: {{name: value for name, value in objects.items() if name.startswith("keras_bert_layers>")}}
before = ours()
found["class of the saved model"] = type(keras.models.load_model({str(path)!r})).__module__
found["tasks imported"] = "keras_bert_layers.tasks" in sys.modules
found["class in a module by its dots"] = k.tasks.inputs.Inputs.__name__
for name, stand_in in before.items():
    getattr(importlib.import_module(stand_in.__module__), name.split(">")[1])
for public in [getattr(k, name) for name in k.__all__]:
    [getattr(public, name) for name in getattr(public, "__all__", [])]
after = ours()
found["same names"] = set(before) == set(after)
found["stand-ins left"] = [name for name in before if before[name] is after[name]]
found["number of names"] = len(before)
print(json.dumps(found))
"""
    return json.loads(run(code))


def test_import_brings_no_framework(first_import):
    assert first_import["loaded"] == []


def test_to_ask_for_keras_is_not_to_import_it(first_import):
    assert not first_import["loaded after a look for Keras"]


def test_import_hook_leaves_keras_as_it_is(first_import):
    assert first_import["hooked"] == ["keras", 3]


def test_import_registers_classes_before_keras_is_imported(first_import):
    assert first_import["registered"] == [True] * len(REGISTERED)


def test_a_saved_model_loads_where_nothing_but_the_package_was_imported(first_import):
    assert first_import["class of the saved model"] == "keras_bert_layers.backbone"


def test_modules_are_attributes_of_their_package(first_import):
    assert not first_import["tasks imported"]
    assert first_import["class in a module by its dots"] == "Inputs"


def test_stand_ins_name_every_registered_class(first_import):
    assert first_import["same names"]
    assert first_import["stand-ins left"] == []
    assert first_import["number of names"] > 9


@pytest.mark.parametrize(
    ("hidden", "cure"),
    [
        (["jax"], "Set KERAS_BACKEND=tensorflow"),
        (["jax", "tensorflow", "torch"], "Install one, such as `pip install jax`"),
    ],
    ids=["another is there", "none is there"],
)
def test_keras_without_its_backend(hidden, cure):
    code = f"""
import sys
sys.modules.update(dict.fromkeys({hidden}))
import keras_bert_layers
try:
    keras_bert_layers.BertClassifier
except ModuleNotFoundError as error:
    print(error.name, error)
"""
    found = run(code, KERAS_BACKEND="jax")
    assert found.startswith("jax `keras_bert_layers`: Keras needs TensorFlow, JAX or torch, and 'jax' is not installed")
    assert f"KERAS_BACKEND='jax'. {cure}" in found


# Runs each program in a copy of a process that has TensorFlow, which takes seconds to import, but not Keras, which a
# TensorFlow may have imported itself.
COPIES = """
import gc, os, sys, tensorflow
gc.freeze()  # else each copy looks through all of it as it ends
for name in [name for name in sys.modules if name.partition(".")[0] == "keras"]:
    del sys.modules[name]
for code in {programs}:
    sys.stdout.flush()
    child = os.fork()
    if not child:
        exec(code)
        sys.exit()
    if os.waitpid(child, 0)[1]:
        print("failed:", code)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no fork")
def test_each_module_can_be_the_first_import_and_keras_too():
    modules = "backbone checkpoints export layers preprocessing tasks".split()
    registered = f"print(all(keras.saving.get_registered_object(name) is not None for name in {REGISTERED}))"
    programs = [f"import keras_bert_layers.{module}, keras; print('{module}', keras.__name__)" for module in modules]
    programs = ["assert not {'keras', 'keras_bert_layers'} & set(sys.modules)\n" + program for program in programs]
    programs.append(f"import keras, keras_bert_layers\n{registered}")
    expected = [*(f"{module} keras" for module in modules), "True"]
    assert run(COPIES.format(programs=programs)).splitlines() == expected


@pytest.mark.slow
def test_registering_imports_no_tensorflow_on_another_backend(tmp_path):
    # A stand-in backend is not possible; JAX or torch show it where they are installed.
    for backend in ("jax", "torch"):
        if importlib.util.find_spec(backend) is not None:
            code = "import sys, keras, keras_bert_layers as k; k.BertBackbone; print('tensorflow' in sys.modules)"
            assert run(code, KERAS_BACKEND=backend) == "False\n"
            return
    pytest.skip("needs JAX or torch beside TensorFlow")


def test_every_public_name_resolves():
    for name in kbl.__all__:
        assert getattr(kbl, name) is not None
    assert set(kbl.__all__) <= set(dir(kbl))


def test_the_package_can_be_imported_from_a_zip(tmp_path):
    source = Path(kbl.__file__).parent
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", source.parent, source.name)
    code = (
        f"import sys; sys.path.insert(0, {archive!r}); import keras_bert_layers as k; k.BertConfig; print(k.__file__)"
    )
    assert run(code).split() == [f"{archive}/keras_bert_layers/__init__.py"]


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'BertSomething'"):
        kbl.BertSomething  # noqa: B018


@pytest.mark.parametrize(
    ("package", "name", "near"),
    [(kbl, "BertClasifier", "BertClassifier"), (kbl, "load_taks", "load_task"), (kbl.layers, "Poler", "Pooler")]
    + [(kbl, *names) for names in NAMES.items()],
)
def test_a_misspelled_name_names_the_right_one(package, name, near):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'. Did you mean `{near}`\\?") as error:
        getattr(package, name)
    assert "Did you mean: " not in "".join(traceback.format_exception(error.value))  # by Python, a second time


def test_names_of_relatives_are_names_of_the_same_classes():
    assert kbl.RobertaClassifier is kbl.tasks.ModernBertClassifier is kbl.BertClassifier
    with pytest.raises(AttributeError, match=r"'RobertaForSequenceClassification'. Did you mean `BertClassifier`\?"):
        kbl.RobertaForSequenceClassification  # noqa: B018


def test_version_is_the_installed_one():
    assert kbl.__version__[0].isdigit()
