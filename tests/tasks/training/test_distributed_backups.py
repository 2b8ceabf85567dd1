"""`distribution.Backup`: trainings that were interrupted end as those that were not, with any number of processes."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.tasks.training.processes import ENVIRONMENT, devices, environments

pytestmark = pytest.mark.slow
if importlib.util.find_spec("orbax") is None:  # importing it would bring JAX into this process
    pytest.skip("the extra `jax` brings Orbax", allow_module_level=True)
PROGRAM = Path(__file__).with_name("distributed_backups.py")
# On TensorFlow: what a backup holds, saved and exported.
LOADING = """
import json, sys
import numpy as np
import keras_bert_layers as kbl
backup, folder = sys.argv[1:]
task = kbl.distribution.load_backup(backup)
task.export(folder + "/saved_model", warm_up=False)
task.save(folder + "/masked_lm.keras")
tasks = task, kbl.load_task(folder + "/masked_lm.keras")
try:
    kbl.distribution.load_backup(folder)
except FileNotFoundError as missing:
    error = str(missing)
weights = [float(np.mean(np.square(variable))) for variable in map(np.asarray, task.trainable_variables)]
tokens = [model.answer("word1 [MASK]")["token"].tolist() for model in tasks]
print(json.dumps({"weights": weights, "steps": int(task.optimizer.iterations), "tokens": tokens, "error": error}))
"""
# 56 rows in batches of 7: 24 steps in 3 epochs.
NUM_STEPS = 24


@pytest.fixture(scope="module")
def trained(on_jax):
    """A function that returns the exit codes of the processes, and what each prints.

    `event` happens in the last process.
    """

    def trained(folder, *, processes=1, mesh=(1, 1), event=()):
        commands = [(PROGRAM, folder, *mesh, *(event if index == processes - 1 else ())) for index in range(processes)]
        variables = [devices(mesh[0] * mesh[1]) | more for more in environments(processes)]
        return on_jax(commands, variables, errors=True)

    return trained


@pytest.fixture(scope="module")
def result(trained):
    """A function that returns what the first process has found."""

    def result(folder, **options):
        codes, texts = trained(folder, **options)
        assert set(codes) == {0}, texts
        return json.loads(texts[0].splitlines()[-1])

    return result


def check_resumed(found, undisturbed, *, tolerance=1e-5):
    """As the undisturbed training: its last epochs' metrics, and its weights; sums over devices round differently."""
    assert found["steps"] == undisturbed["steps"] == NUM_STEPS
    np.testing.assert_allclose(found["weights"], undisturbed["weights"], rtol=tolerance, atol=tolerance)
    for name, values in found["history"].items():
        np.testing.assert_allclose(values, undisturbed["history"][name][-len(values) :], rtol=tolerance, err_msg=name)


@pytest.fixture(scope="module")
def undisturbed(result):
    return result("-")


def test_sigterm_saves_first(tmp_path, undisturbed, trained, result):
    codes, texts = trained(tmp_path / "backup", event=("SIGTERM", 13))
    assert codes == [128 + signal.SIGTERM], texts
    assert [path.name for path in (tmp_path / "backup").iterdir()] == ["14"]
    check_resumed(result(tmp_path / "backup"), undisturbed, tolerance=0)


def test_sigterm_of_one_of_two_processes_and_a_restart_of_one(tmp_path, undisturbed, trained, result):
    codes, texts = trained(tmp_path / "backup", processes=2, event=("SIGTERM", 9))
    assert codes == [128 + signal.SIGTERM] * 2, texts
    (saved,) = (tmp_path / "backup").iterdir()
    assert 10 <= int(saved.name) < NUM_STEPS  # in all processes after the same step
    check_resumed(result(tmp_path / "backup"), undisturbed)
    # In a process of its own: JAX warns of every fork afterwards.
    command = [sys.executable, "-W", "ignore", "-c", LOADING, str(tmp_path / "backup"), str(tmp_path)]
    done = subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    loaded = json.loads(done.stdout.splitlines()[-1])
    np.testing.assert_allclose(loaded["weights"], undisturbed["weights"], rtol=1e-5, atol=1e-5)
    assert loaded["steps"] == NUM_STEPS
    assert loaded["tokens"][0] == loaded["tokens"][1]
    assert "must hold a complete backup" in loaded["error"]
    assert (tmp_path / "saved_model" / "saved_model.pb").is_file()


@pytest.mark.exhaustive
def test_a_killed_process_ends_the_others(tmp_path, undisturbed, trained, result):
    """JAX misses its heartbeat for 100 seconds."""
    start = time.monotonic()
    codes, texts = trained(tmp_path / "backup", processes=2, event=("SIGKILL", 13))
    assert time.monotonic() - start < 200
    assert codes[1] == -signal.SIGKILL
    assert codes[0] != 0
    assert "heartbeat timeout" in texts[0]
    shutil.copytree(tmp_path / "backup", tmp_path / "copy")
    check_resumed(result(tmp_path / "backup", processes=2), undisturbed)
    check_resumed(result(tmp_path / "copy", mesh=(2, 2)), undisturbed)  # onto divided weights


@pytest.mark.exhaustive
def test_divided_weights_resume_in_one_process_and_in_four(tmp_path, undisturbed, trained, result):
    trained(tmp_path / "backup", mesh=(2, 2), event=("SIGKILL", 13))
    shutil.copytree(tmp_path / "backup", tmp_path / "copy")
    check_resumed(result(tmp_path / "backup"), undisturbed)
    check_resumed(result(tmp_path / "copy", processes=4), undisturbed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("processes", [1, 2])
def test_a_full_disk_keeps_the_last_backup(tmp_path, undisturbed, trained, result, processes):
    mount = ["mount", "-t", "tmpfs", "-o", "size=1200k", "tmpfs", str(tmp_path)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        codes, texts = trained(tmp_path / "backup", processes=processes, event=("full", 10))
        assert 0 not in codes
        assert "No space left on device" in "".join(texts)
        assert (tmp_path / "backup" / "9").is_dir()
        os.remove(tmp_path / "filler")
        check_resumed(result(tmp_path / "backup", processes=processes), undisturbed)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


# On TensorFlow: what hostile and damaged backups give.
HOSTILE = """
import json, sys
from pathlib import Path
import keras_bert_layers as kbl
folder = Path(sys.argv[1])
(step,) = folder.iterdir()
file, found = step / "task" / "metadata", {}
good = file.read_text()
program = {"class_name": "Lambda", "config": {"function": {"class_name": "__lambda__", "config": {"code": "x"}}}}
changes = {
    "wide": good.replace('"hidden_dim": ', '"hidden_dim": 100'), "program": json.dumps(program), "half": good[:99],
    "deep": "[" * 100_000, "empty": "{}", "no config": json.dumps({**json.loads(good), "config": None}),
}
def load(name):
    try:
        found[name] = type(kbl.distribution.load_backup(folder)).__name__
    except kbl.checkpoints.CheckpointError as error:
        found[name] = str(error)
for name, text in changes.items():
    file.write_text(text)
    load(name)
file.write_text(good)
load("good")
(step / "place" / "_METADATA").write_text("{")
load("place")
print(json.dumps(found))
"""


def test_a_second_training_and_hostile_backups(tmp_path, result):
    folder = tmp_path / "backup"
    rule = "nothing was trained: `directory` holds the backup of a training that is finished"
    assert [any(rule in text for text in result(folder)["warnings"]) for _ in range(2)] == [False, True]
    command = [sys.executable, "-W", "ignore", "-c", HOSTILE, str(folder)]
    done = subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("good") == "BertMaskedLM"
    assert "must describe the weights in the file" in found["wide"]
    assert "must not hold a program" in found["program"]
    assert all(str(folder) in text and "\n" not in text for text in found.values()), found
