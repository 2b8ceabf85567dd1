import pickle
import sys
import types
import zipfile

import numpy as np
import pytest

from keras_bert_layers import load_backbone
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.torch_file import TorchFile, weights_entry


class Hostile:
    """An object whose pickle runs code when an ordinary unpickler reads it: it makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.fixture
def hostile(tmp_path):
    """A hostile file, and the file that it makes where it runs."""
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps({"x": Hostile(tmp_path / "harm")}, protocol=2))
    return tmp_path / "pytorch_model.bin", tmp_path / "harm"


def test_the_hostile_file_is_hostile(hostile):
    path, harm = hostile
    pickle.loads(path.read_bytes())["x"].close()
    assert harm.exists()


def test_without_torch_nothing_is_unpickled(hostile, monkeypatch):
    path, harm = hostile
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        CheckpointError, match=r"pytorch_model\.bin: this file is a pickle.*torch is not installed.*model\.safetensors"
    ):
        TorchFile(path)
    assert not harm.exists()


def test_the_error_shows_how_to_convert(checkpoint, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (checkpoint / "model.safetensors").rename(checkpoint / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r'CLASS\.from_pretrained\("DIRECTORY"\)\.save_pretrained'):
        load_backbone(checkpoint)


@pytest.mark.parametrize("version", ["1.13.1", "2.5.1+cpu"])
def test_torch_too_old_to_be_safe(hostile, monkeypatch, version):
    path, harm = hostile
    old = types.ModuleType("torch")
    old.__version__ = version
    monkeypatch.setitem(sys.modules, "torch", old)
    with pytest.raises(
        CheckpointError, match=f"older than 2.6 runs code from it.*Received: torch {version.partition('+')[0]}"
    ):
        TorchFile(path)
    assert not harm.exists()


@pytest.mark.peers
def test_a_hostile_file_runs_nothing(hostile):
    torch = pytest.importorskip("torch")
    path, harm = hostile
    zipped = path.with_name("zipped.bin")
    torch.save({"x": Hostile(harm)}, zipped)  # the format since torch 1.6; the other file is the one before it
    for file in (path, zipped):
        with pytest.raises(CheckpointError, match=r"weights_only=True\) refuses this file"):
            TorchFile(file)
    assert not harm.exists()


@pytest.mark.peers
@pytest.mark.parametrize("content", [b"not a pickle", b"PK\x03\x04 not a zip"])
def test_damaged(tmp_path, content):
    pytest.importorskip("torch")
    (tmp_path / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"weights_only=True\) refuses this file"):
        TorchFile(tmp_path / "pytorch_model.bin")


@pytest.mark.peers
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_reads_floats(tmp_path, dtype):
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype)) / 4
    torch.save({"x": tensor, "ids": torch.arange(3)}, tmp_path / "pytorch_model.bin")
    file = TorchFile(tmp_path / "pytorch_model.bin")
    assert file.infos["x"].shape == (2, 3)
    assert file.read("x").dtype == np.float32
    np.testing.assert_array_equal(file.read("x"), np.arange(6, dtype="float32").reshape(2, 3) / 4)
    with pytest.raises(CheckpointError, match=r"tensor 'ids' must hold floats, one of .*Received: I64"):
        file.read("ids")


@pytest.mark.peers
@pytest.mark.parametrize("content", [[1, 2], {"x": "a string"}])
def test_not_a_dictionary_of_tensors(tmp_path, content):
    torch = pytest.importorskip("torch")
    torch.save(content, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"must hold a dictionary of tensors\. (Received: list|Found: 'x')"):
        TorchFile(tmp_path / "pytorch_model.bin")


@pytest.mark.peers
def test_what_a_training_loop_saves(tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(2, 3)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    content = {"epoch": 3, "name": "best", "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(content, tmp_path / "best.pt")
    file = TorchFile(tmp_path / "best.pt")
    assert file.infos["weight"].shape == (3, 2)
    assert file.notes == [
        "the weights are the entry 'model' of best.pt",
        "not read beside the weights: epoch, name, optimizer",
    ]
    np.testing.assert_array_equal(file.read("bias"), model.bias.detach().numpy())


MODEL = {"bert.embeddings.word_embeddings.weight": np.ones((3, 2)), "bert.pooler.dense.bias": np.ones(2)}
OPTIMIZER = {"state": {0: {"step": np.ones(()), "exp_avg": np.ones(2)}}, "param_groups": [{"lr": 0.1, "params": [0]}]}


def found(content):
    return weights_entry("best.pt", content)


@pytest.mark.parametrize("name", ["model", "state_dict", "model_state_dict", "module", "net"])
def test_entries_of_training_loops(name):
    entry = found({"epoch": 3, "optimizer": OPTIMIZER, name: MODEL, "loss": np.ones(())})
    assert (entry.path, entry.tensors) == (name, MODEL)
    assert entry.others == ("epoch", "optimizer", "loss")


def test_plain_tensors_go_first():
    entry = found({**MODEL, "step": 7, "note": "best"})
    assert (entry.path, list(entry.tensors), entry.others) == ("", list(MODEL), ("step", "note"))


def test_nested_entries():
    entry = found({"checkpoint": {"model": {**MODEL, "version": 2}, "epoch": 1}, "args": {}})
    assert (entry.path, list(entry.tensors), entry.others) == (
        "checkpoint/model",
        list(MODEL),
        ("args", "epoch", "version"),
    )


def test_tensors_without_an_embedding():
    """A dense layer of sentence-transformers, or a head alone."""
    assert found({"linear.weight": np.ones((2, 2)), "linear.bias": np.ones(2)}).path == ""
    assert found({"model": {"linear.bias": np.ones(2)}, "epoch": 1}).path == "model"


def test_several_models():
    message = (
        r"must hold one model\. Found: the weights of 2, in the entries 'model', 'ema/shadow'\. .*\[\'model\'\], NEW"
    )
    with pytest.raises(CheckpointError, match=message):
        found({"model": MODEL, "ema": {"shadow": MODEL}})
    with pytest.raises(CheckpointError, match=r"in the entries '', 'ema'\. .*\['ema'\]"):
        found({**MODEL, "ema": MODEL})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], r"must hold a dictionary of tensors\. Received: list"),
        ({}, "Found: nothing"),
        ({"epoch": 3, "a": {"b": {}}}, "Found: 'epoch', 'a'"),
        ({"a": {"b": {"c": {"d": {"e": MODEL}}}}}, "Found: 'a'"),
        ({0: np.ones(2)}, "Found: 0"),
    ],
)
def test_no_tensors(content, message):
    with pytest.raises(CheckpointError, match=message):
        found(content)


@pytest.mark.peers
@pytest.mark.parametrize("is_zip", [False, True])
def test_a_pickle_of_a_million_marks(tmp_path, is_zip):
    """torch runs each in Python."""
    pytest.importorskip("torch")
    path, marks = tmp_path / "pytorch_model.bin", b"\x80\x02" + b"(" * 1_100_000
    if is_zip:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", marks)
    else:
        path.write_bytes(marks)
    with pytest.raises(CheckpointError, match=r"must have at most 1,000,000 operations"):
        TorchFile(path)


@pytest.mark.peers
def test_an_empty_file(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"the file is empty\. Download or copy"):
        TorchFile(tmp_path / "pytorch_model.bin")
