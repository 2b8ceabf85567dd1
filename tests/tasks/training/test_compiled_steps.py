"""Training and inference steps that XLA compiles on TensorFlow and on JAX, and their export for other accelerators."""

import functools
import json
from pathlib import Path

import pytest

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


def printed(run, program, *arguments):
    """What a program prints."""
    (code,), (text,) = run([(FOLDER / program, *arguments)], [{}])
    assert code == 0
    return json.loads(text.splitlines()[-1])


@pytest.fixture(scope="module", params=["tensorflow", "jax"])
def backend(request):
    return request.param


@pytest.fixture(scope="module")
def compiled(backend, request):
    """A function that returns what the steps of these kinds are, compiled once for all tests."""
    run = request.getfixturevalue(f"on_{backend}")
    return functools.cache(lambda kinds: printed(run, "compiled_steps.py", *kinds))


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in IN_CI else [pytest.mark.exhaustive]) for kind in KINDS]
)
def test_steps_compile_and_stay_on_the_device(kind, backend, compiled):
    kinds = IN_CI if kind in IN_CI else tuple(kind for kind in KINDS if kind not in IN_CI)
    found = compiled(kinds)[kind]
    for name in ("inference", "training"):
        step = found[name]
        assert {"dot", "dot_general"} & set(step["operations"])  # operations are found at all
        assert not OF_HOST & set(step["operations"])
        assert step.get("strings", []) == []
        assert bool(step["sizes"]) == (name == "training" and (backend, kind) in HAS_SIZES)
    assert found["finite"]
    assert found["moved"]
    assert found.get("written", True)  # JAX writes new weights and moments over the old ones


def test_an_encoder_and_a_training_step_are_exported_for_other_accelerators(on_jax):
    for found in printed(on_jax, "exported_steps.py").values():
        assert found["platforms"] == ["cpu", "tpu", "cuda"]
        assert found["bytes"] > 0
        assert found["difference"] < CLOSE


def test_steps_follow_frozen_weights(on_jax):
    found = printed(on_jax, "frozen_steps.py")
    everything = ["classification_head", "embedding", "encoder_block_0", "pooler"]
    assert found == {"changed": [everything, everything[:1], everything], "steps": 3}
