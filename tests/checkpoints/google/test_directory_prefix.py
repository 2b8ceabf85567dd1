import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.google.directory import checkpoint_prefix, has_checkpoint


@pytest.fixture
def directory(tmp_path):
    for step in (0, 1000, 20000):
        (tmp_path / f"model.ckpt-{step}.index").touch()
        (tmp_path / f"model.ckpt-{step}.data-00000-of-00001").touch()
    return tmp_path


def state(path):
    return f'model_checkpoint_path: "{path}"\nall_model_checkpoint_paths: "model.ckpt-0"\n'


@pytest.mark.parametrize(
    "path", ["model.ckpt-1000", "/home/me/out/model.ckpt-1000", "gs://b/model.ckpt-1000", "a\\\\model.ckpt-1000"]
)
def test_named(directory, path):
    (directory / "checkpoint").write_text(state(path), encoding="utf-8")
    assert checkpoint_prefix(directory, owner="f") == directory / "model.ckpt-1000"


def test_only_one(tmp_path):
    (tmp_path / "bert_model.ckpt.index").touch()
    (tmp_path / "checkpoint").write_text(state("model.ckpt-7"), encoding="utf-8")
    assert checkpoint_prefix(tmp_path, owner="f") == tmp_path / "bert_model.ckpt"


@pytest.mark.parametrize(
    "content", [None, b"", b"\xff\xfe", state("model.ckpt-7").encode(), b'model_checkpoint_path: "']
)
def test_several(directory, content):
    if content is not None:
        (directory / "checkpoint").write_bytes(content)
    message = (
        r"`f`: .* must hold one TensorFlow checkpoint, or a file `checkpoint` that names one of several\. "
        r"Found: model\.ckpt-0, model\.ckpt-1000, model\.ckpt-20000\. Remove all but one, or write"
    )
    with pytest.raises(CheckpointError, match=message):
        checkpoint_prefix(directory, owner="f")


def test_none(tmp_path):
    assert not has_checkpoint(tmp_path)
    (tmp_path / "model.ckpt").touch()
    with pytest.raises(
        CheckpointError, match=r"`f`: .* must hold a TensorFlow checkpoint: .* Found: model\.ckpt\. Copy"
    ):
        checkpoint_prefix(tmp_path, owner="f")
