"""Training on JAX in several processes and on several devices: as one device does."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow
pytest.importorskip("jax")
PROGRAM = Path(__file__).with_name("distributed_trainings.py")
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("KERAS_", "XLA_", "SLURM_"))}


def outputs(*calls: list[object]) -> list[dict]:
    """What the program prints, called so often at the same time."""
    commands = [[sys.executable, str(PROGRAM), *map(str, call)] for call in calls]
    running = [subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) for command in commands]
    try:
        texts = [process.communicate(timeout=540)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0] * len(running)
    return [json.loads(text.splitlines()[-1]) for text in texts]


def in_processes(amount: str, count: int) -> list[dict]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return outputs(*([amount, "process", index, count, port] for index in range(count)))


@pytest.fixture(scope="module")
def alone() -> dict:
    return outputs(["all", "devices", 1, 1])[0]


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


def test_two_processes(alone):
    for found in in_processes("all", 2):
        assert found.keys() == alone.keys() - {"bytes"}
        check_equal(found, alone)


def test_four_processes(alone):
    for found in in_processes("few", 4):
        check_equal(found, alone)


def test_weights_divided_by_two_of_four_devices(alone):
    (found,) = outputs(["few", "devices", 2, 2])
    check_equal(found, alone)
    by_device, all_together = found["bytes"]
    assert all_together == alone["bytes"][1] == alone["bytes"][0]
    assert by_device < 0.6 * all_together
