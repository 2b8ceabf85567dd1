"""Training and inference steps that XLA compiles on TensorFlow and on JAX, and their export for other accelerators."""

import functools
import importlib.util
import json
from pathlib import Path

import pytest

from tests.tasks.training.processes import devices, run
from tests.tasks.training.step_kinds import KINDS

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parent
IN_CI = ("classes", "answers")
# What moves data between the device and the host, or calls a program that is not XLA's.
OF_HOST = {"custom-call", "custom_call", "infeed", "outfeed", "send", "recv"}
# TensorFlow's gradient of the sum over rows of tags; XLA knows how many values there can be.
HAS_SIZES = [("tensorflow", "tags by a field")]
# Sums are rounded in another order.
CLOSE = 1e-5


def printed(program, *arguments, backends):
    """What a program prints on each of the backends, at the same time."""
    variables = [devices(1) | {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"} for backend in backends]
    codes, texts = run([(FOLDER / program, *arguments)] * len(backends), variables)
    assert codes == [0] * len(backends)
    return {backend: json.loads(text.splitlines()[-1]) for backend, text in zip(backends, texts, strict=True)}


@functools.cache
def compiled(kinds):
    backends = ("tensorflow", "jax") if importlib.util.find_spec("jax") else ("tensorflow",)
    return printed("compiled_steps.py", *kinds, backends=backends)


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in IN_CI else [pytest.mark.exhaustive]) for kind in KINDS]
)
def test_steps_compile_and_stay_on_the_device(kind, backend):
    kinds = IN_CI if kind in IN_CI else tuple(kind for kind in KINDS if kind not in IN_CI)
    if backend not in (on_backends := compiled(kinds)):
        pytest.skip("needs the extra `jax`")
    found = on_backends[backend][kind]
    for name in ("inference", "training"):
        step = found[name]
        assert {"dot", "dot_general"} & set(step["operations"])  # operations are found at all
        assert not OF_HOST & set(step["operations"])
        assert step.get("strings", []) == []
        assert bool(step["sizes"]) == (name == "training" and (backend, kind) in HAS_SIZES)
    assert found["finite"]
    assert found["moved"]
    assert found.get("written", True)  # JAX writes new weights and moments over the old ones


def test_an_encoder_and_a_training_step_are_exported_for_other_accelerators():
    pytest.importorskip("jax")
    for found in printed("exported_steps.py", backends=("jax",))["jax"].values():
        assert found["platforms"] == ["cpu", "tpu", "cuda"]
        assert found["bytes"] > 0
        assert found["difference"] < CLOSE
