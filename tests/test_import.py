"""What importing the package costs and what it promises."""

import os
import subprocess
import sys

import pytest

import keras_bert_layers as kbl


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


def test_import_brings_no_framework():
    heavy = "('keras', 'tensorflow', 'tensorflow_text', 'keras_nlp', 'keras_hub', 'torch', 'jax')"
    assert run(f"import sys, keras_bert_layers; print([m for m in {heavy} if m in sys.modules])") == "[]\n"


@pytest.mark.parametrize("order", ["import keras, keras_bert_layers", "import keras_bert_layers, keras"])
def test_import_registers_classes_in_either_order(order):
    names = [
        f"keras_bert_layers>{name}" for name in ("BertBackbone", "BertClassifier", "BertPreprocessor", "BertTokenizer")
    ]
    code = f"{order}\nprint(all(keras.saving.get_registered_object(name) is not None for name in {names}))"
    assert run(code) == "True\n"


@pytest.mark.parametrize(
    "module",
    [
        "tasks",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in "backbone checkpoints export layers preprocessing".split()
        ),
    ],
)
def test_each_module_can_be_the_first_import(module):
    assert run(f"import keras_bert_layers.{module}, keras; print(keras.__name__)") == "keras\n"


def test_stand_ins_name_every_registered_class():
    code = (
        "import keras, keras_bert_layers as k; objects = keras.saving.get_custom_objects();"
        "ours = lambda: {n: c for n, c in objects.items() if n.startswith('keras_bert_layers>')};"
        "before = ours(); [getattr(k, name) for name in k.__all__]; after = ours();"
        "print(set(before) == set(after), any(before[n] is after[n] for n in before), len(before) > 9)"
    )
    assert run(code) == "True False True\n"


def test_a_saved_model_loads_where_nothing_but_the_package_was_imported(tmp_path, backbone):
    backbone.save(tmp_path / "backbone.keras")
    code = "import keras_bert_layers, keras; print(type(keras.models.load_model({path!r})).__module__)"
    code = code.format(path=str(tmp_path / "backbone.keras"))
    assert run(code) == "keras_bert_layers.backbone\n"


def test_to_ask_for_keras_is_not_to_import_it():
    code = (
        "import keras_bert_layers, importlib.util; importlib.util.find_spec('keras'); import keras;"
        "print(keras.saving.get_registered_object('keras_bert_layers>BertBackbone') is not None)"
    )
    assert run(code) == "True\n"


def test_import_hook_leaves_keras_as_it_is():
    code = "import keras_bert_layers, keras.layers; print(keras.__spec__.name, keras.layers.Dense(3).units)"
    assert run(code) == "keras 3\n"


def test_registering_imports_no_tensorflow_on_another_backend(tmp_path):
    # A stand-in backend is not possible; JAX or torch show it where they are installed.
    for backend in ("jax", "torch"):
        code = f"import importlib.util as u; print(u.find_spec({backend!r}) is not None)"
        if run(code) == "True\n":
            code = "import sys, keras, keras_bert_layers as k; k.BertBackbone; print('tensorflow' in sys.modules)"
            assert run(code, KERAS_BACKEND=backend) == "False\n"
            return
    pytest.skip("needs JAX or torch beside TensorFlow")


def test_every_public_name_resolves():
    for name in kbl.__all__:
        assert getattr(kbl, name) is not None
    assert set(kbl.__all__) <= set(dir(kbl))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'BertSomething'"):
        kbl.BertSomething  # noqa: B018


def test_version_is_the_installed_one():
    assert kbl.__version__[0].isdigit()
