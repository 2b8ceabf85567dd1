"""Training on JAX in several processes and on several devices: as one device does."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.tasks.training.processes import devices, environments

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).with_name("distributed_trainings.py")


@pytest.fixture(scope="module")
def outputs(on_jax):
    """A function that returns what the program prints in each process."""

    def outputs(*arguments: object, num_devices: int = 1, num_processes: int = 1) -> list[dict]:
        variables = [devices(num_devices) | more for more in environments(num_processes)]
        codes, texts = on_jax([(PROGRAM, *arguments)] * num_processes, variables)
        assert codes == [0] * num_processes
        return [json.loads(text.splitlines()[-1]) for text in texts]

    return outputs


@pytest.fixture(scope="module")
def alone(outputs) -> dict:
    return outputs("all", "devices", 1, 1)[0]


def check_equal(found: dict, expected: dict) -> None:
    """Losses, metrics, outputs and weights within 1e-5: sums over devices are rounded in another order."""
    for name in found.keys() - {"bytes"}:
        assert found[name].keys() == expected[name].keys()
        assert found[name]["steps"] == expected[name]["steps"] >= (50 if name == "classifier" else 1)
        np.testing.assert_allclose(found[name]["weights"], expected[name]["weights"], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(
            found[name].get("predictions", 0), expected[name].get("predictions", 0), rtol=1e-5, atol=1e-5
        )
        for values in ("history", "evaluation"):
            assert found[name][values].keys() == expected[name][values].keys()
            for metric, value in found[name][values].items():
                # The perplexity, exp(loss), is some 60 here, and relative differences grow with the loss's.
                np.testing.assert_allclose(value, expected[name][values][metric], rtol=1e-5, atol=1e-5, err_msg=metric)


def test_two_processes(alone, outputs):
    for found in outputs("all", "process", num_processes=2):
        assert found.keys() == alone.keys()
        check_equal(found, alone)


@pytest.mark.exhaustive
def test_four_processes(alone, outputs):
    for found in outputs("few", "process", num_processes=4):
        check_equal(found, alone)


@pytest.mark.exhaustive
def test_weights_divided_by_two_of_four_devices(alone, outputs):
    (found,) = outputs("few", "devices", 2, 2, num_devices=4)
    check_equal(found, alone)
    divided = [path for path, (of_device, of_all) in found["bytes"].items() if 2 * of_device == of_all]
    assert all(of_device == of_all for path, (of_device, of_all) in found["bytes"].items() if path not in divided)
    # Weights, and two moments of each: the table of tokens, three kernels and two biases of a block, the output's bias.
    assert len(divided) == 3 * (1 + 4 + 2 + 1)


def test_guide(on_jax, tmp_path):
    """The Python blocks of the guide, on 8 virtual devices, print what it shows."""
    page = Path(__file__).parents[3] / "docs" / "guides" / "several-machines.md"
    blocks = re.findall(r"^```(python|text)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    program = tmp_path / "guide.py"
    there = f"import os\nos.chdir({str(tmp_path)!r})\n"
    program.write_text(there + "\n".join(body for language, body in blocks if language == "python"), encoding="utf-8")
    codes, texts = on_jax([[program]], [devices(8)])
    assert codes == [0]
    assert texts == ["".join(body for language, body in blocks if language == "text")]
    assert (tmp_path / "classifier.keras").is_file()
