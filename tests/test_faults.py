"""Every writer: a killed process, a full disk or a read-only one leaves the old file or directory as it was."""

import contextlib
import errno
import io
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile

import h5py
import numpy as np
import pytest

if os.name == "nt":
    pytest.skip("Windows has no fork, no SIGKILL and no limit on the size of files", allow_module_level=True)

# The children only write, or are ended: Python warns of locks that threads of this process may hold.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
SECONDS = 60  # after them a child that hangs is ended
KILLS = 20
SHARD = 4e-6  # GB; the weights of the small model then need several shards
# Python's calls that open or change a file, by their audit events; `ctypes.dlsym` comes before two directories swap.
CALLS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "ctypes.dlsym"}


def save(layout, model="task"):
    def write(models, path):
        from keras_bert_layers import checkpoints

        getattr(checkpoints, f"save_{layout}")(models[model], path)

    return write


def convert(layout):
    """`keras-bert-layers convert --force`, with a model that is loaded already."""

    def write(models, path):
        from keras_bert_layers.cli.commands import convert as command
        from keras_bert_layers.cli.models import LoadedModel
        from keras_bert_layers.cli.parser import make_parser

        loaded = LoadedModel(models["task"], models["task"].preprocessor, "classifier")
        arguments = make_parser().parse_args(["convert", "source", str(path), "--to", layout, "--force"])
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
            patch.setattr(command, "load_model", lambda *_, **__: loaded)
            command.run(arguments)

    return write


# Name of the file or directory: how it is written, and what errors begin with.
WRITERS = {
    "task.keras": (lambda models, path: models["task"].save(path), "`BertClassifier`: `filepath`"),
    "backbone.keras": (lambda models, path: models["task"].backbone.save(path), "`BertBackbone`: `filepath`"),
    "one.weights.h5": (lambda models, path: models["task"].save_weights(path), "`BertClassifier`: `filepath`"),
    "some.weights.json": (
        lambda models, path: models["task"].save_weights(path, max_shard_size=SHARD),
        "`BertClassifier`: `filepath`",
    ),
    "exported": (lambda models, path: models["task"].export(path, warm_up=False), "`export`: `path`"),
    "huggingface": (save("huggingface"), "`save_huggingface`: `directory`"),
    "sentence_transformers": (save("huggingface", "encoder"), "`save_huggingface`: `directory`"),
    "google": (save("google"), "`save_google`: `directory`"),
    "kerashub": (save("kerashub"), "`save_kerashub`: `directory`"),
    "converted": (convert("huggingface"), "`convert`: `DEST`"),
    "converted.keras": (convert("keras"), "`convert`: `DEST`"),
}
# These write to a path that is free only; the others replace what is there.
NEW = ("huggingface", "sentence_transformers", "google", "kerashub")
QUICK = ("some.weights.json", "google", "converted")
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in WRITERS if name not in QUICK]


@pytest.fixture(scope="module")
def models():
    """Models whose weights are all 1, and models whose weights are all 2."""
    from keras_bert_layers import (
        BertBackbone,
        BertClassifier,
        BertConfig,
        BertPreprocessor,
        BertSentenceEncoder,
        BertTokenizer,
    )

    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad"]
    preprocessor = BertPreprocessor(BertTokenizer(tokens), max_length=9)
    sizes = {"hidden_dim": 16, "num_layers": 2, "num_heads": 2, "intermediate_dim": 24, "max_sequence_length": 13}
    config = BertConfig(vocabulary_size=len(tokens), **sizes)

    def make(scale):
        task = BertClassifier(BertBackbone(config, name="bert"), 2, preprocessor=preprocessor, name="task")
        encoder = BertSentenceEncoder(BertBackbone(config, name="bert"), preprocessor=preprocessor, name="encoder")
        for model in (task, encoder):
            model.set_weights([np.full(weight.shape, scale, "float32") for weight in model.get_weights()])
        return {"task": task, "encoder": encoder}

    return [make(1), make(2)]


@pytest.fixture(scope="module")
def written(request, models, tmp_path_factory):
    """The name of a writer, and two folders with what it wrote of the two models; the first is empty for a new path."""
    name = request.param
    folders = [tmp_path_factory.mktemp("old"), tmp_path_factory.mktemp("new")]
    for pair, folder in zip(models, folders, strict=True):
        with warnings.catch_warnings(action="ignore"):
            WRITERS[name][0](pair, folder / name)
    if name in NEW:
        shutil.rmtree(folders[0] / name)
    assert content(folders[0] / name) != content(folders[1] / name)
    return name, *folders


def values(path):
    """The numbers in an HDF5 file."""
    found = {}

    def add(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = item[()].tobytes()

    with h5py.File(path) as file:
        file.visititems(add)
    return found


def content(path):
    """The content of a file or directory without times; None if it is not there."""
    if path.is_dir():
        files = {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}
        return {**files, **{name: b"" for name in files if name == "fingerprint.pb"}}  # a random number
    if not path.exists():
        return None
    if path.suffix == ".h5":
        return values(path)
    if path.suffix == ".json":
        assert path.with_name("some_00000.weights.h5").exists(), "Keras opens it whatever the index names"
        shards = {shard for shards in json.loads(path.read_bytes())["weight_map"].values() for shard in shards}
        return {name: value for shard in shards for name, value in values(path.with_name(shard)).items()}
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
        weights = values(archive.extract("model.weights.h5", folder))
        return {**weights, "config.json": archive.read("config.json")}


def in_child(work, seconds=None):
    """Does `work` in a copy of this process, which is killed after some seconds, if they are given.

    Returns:
        The result; for an exception its class and text; or the signal that ended the copy.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        warnings.simplefilter("ignore")
        try:
            result = work()
        except BaseException as error:
            result = type(error), str(error)
        os.write(writing, pickle.dumps(result))
        os._exit(0)
    os.close(writing)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as file:
        result = file.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(result) if result else signal.Signals(os.WTERMSIG(status))


def write(name, folder, models, *, stop=None, seconds=None):
    """Writes the second model in a child; returns the number of `CALLS`.

    Or SIGKILL, if it comes before a call, or after a time: for what libraries in C do between these calls.
    """
    calls = []

    def watch(event, arguments):
        if event in CALLS and (not os.path.isabs(str(arguments[0])) or str(arguments[0]).startswith(str(folder))):
            if len(calls) == stop:
                os.kill(os.getpid(), signal.SIGKILL)
            calls.append(event)

    def work():
        sys.addaudithook(watch)
        WRITERS[name][0](models[1], folder / name)
        return len(calls)

    return in_child(work, seconds)


def copied(new):
    """Instead of TensorFlow's work on an exported model: its result."""
    return lambda folder, signatures: shutil.copytree(new / "exported", folder)


@pytest.mark.parametrize(
    ("written", "kills"),
    [*((name, 4) for name in QUICK), *(pytest.param(name, KILLS, marks=pytest.mark.slow) for name in WRITERS)],
    indirect=["written"],
)
def test_killed(written, kills, models, tmp_path, monkeypatch):
    name, old, new = written
    monkeypatch.setattr("keras_bert_layers.export.saved_model.save_functions", copied(new))
    before, after = content(old / name), content(new / name)
    start = time.monotonic()
    calls = write(name, shutil.copytree(old, tmp_path / "not_killed"), models)
    seconds = time.monotonic() - start
    stops = sorted({round(stop) for stop in np.linspace(0, calls - 1, kills)})
    moments = [(stop, None) for stop in stops]
    moments += [(None, wait) for wait in np.random.default_rng(0).uniform(0, seconds, kills - len(stops))]
    found = []
    for number, (stop, wait) in enumerate(moments):
        folder = shutil.copytree(old, tmp_path / str(number))
        ended = write(name, folder, models, stop=stop, seconds=wait)
        assert ended == signal.SIGKILL or (wait is not None and ended == calls)
        found.append(content(folder / name))
        assert found[-1] in (before, after), f"incomplete: killed before call {stop} of {calls}, or after {wait} s"
        if number % 8 == 1:
            if name in NEW:
                shutil.rmtree(folder / name, ignore_errors=True)
            write(name, folder, models)
            assert content(folder / name) == after
            assert len(os.listdir(folder)) == len(os.listdir(tmp_path / "not_killed")), "the next success sweeps"
    assert before in found
    assert after in found


@pytest.mark.slow
@pytest.mark.parametrize("written", ["exported"], indirect=True)
def test_killed_in_tensorflow(written, models, tmp_path):
    name, old, _ = written
    for number, seconds in enumerate(np.random.default_rng(0).uniform(0.3, 1.2, 3)):
        folder = shutil.copytree(old, tmp_path / str(number))
        if write(name, folder, models, seconds=seconds) == signal.SIGKILL:
            assert content(folder / name) == content(old / name)


def limit_of_files(limit):
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def check_refused(written, folder, models, rule, number, prepare=lambda: None):
    """The one error, and what was there is unchanged."""
    name, old, _ = written

    def work():
        prepare()
        WRITERS[name][0](models[1], folder / name)

    kind, text = in_child(work)
    owner = WRITERS[name][1]
    assert issubclass(kind, ValueError if name in NEW else OSError)
    assert text.startswith(f"{owner} must {rule}. Received: {owner.split('`')[3]}='{folder / name}'. ")
    assert f"{os.strerror(number)}. What was there is unchanged. " in text
    assert content(folder / name) == content(old / name)
    assert sorted(os.listdir(folder)) == sorted(os.listdir(old))


FULL = "be on a disk with room for it"


@pytest.mark.parametrize("written", [*QUICK, *SLOW], indirect=True)
def test_limit_on_the_size_of_files(written, models, tmp_path):
    folder = shutil.copytree(written[1], tmp_path / "folder")
    for limit in (0, 5000):
        check_refused(written, folder, models, FULL, errno.EFBIG, lambda limit=limit: limit_of_files(limit))


@pytest.fixture
def disk(tmp_path):
    """A file system of 2 MB in memory."""
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a file system")
    yield path
    subprocess.run(["umount", str(path)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("written", WRITERS, indirect=True)
def test_full_and_read_only_disk(written, models, disk):
    folder = shutil.copytree(written[1], disk / "folder")
    for free in (0, 12288):
        (disk / "filler").unlink(missing_ok=True)
        (disk / "filler").write_bytes(bytes(shutil.disk_usage(disk).free - free))
        check_refused(written, folder, models, FULL, errno.ENOSPC)
    (disk / "filler").unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    check_refused(written, folder, models, "be a path that can be written to", errno.EROFS)
