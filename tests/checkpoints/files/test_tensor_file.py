import pytest

from keras_bert_layers import load_backbone, load_tokenizer
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.tensor_file import check_not_pointer

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 437951328\n"
MESSAGE = r"{}: must be the file itself\. Found: a git-lfs pointer to it\. Run `git lfs install && git lfs pull`"


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "tf_model.h5", "config.json"])
def test_in_place_of_a_file(checkpoint, name):
    (checkpoint / name).write_text(POINTER)
    if name not in ("config.json", "model.safetensors"):
        (checkpoint / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=MESSAGE.format(name)):
        load_backbone(checkpoint)


@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer.json"])
def test_in_place_of_a_vocabulary(checkpoint, name):
    (checkpoint / name).write_text(POINTER)
    with pytest.raises(CheckpointError, match=MESSAGE.format(name)):
        load_tokenizer(checkpoint)


@pytest.mark.parametrize("name", ["bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"])
def test_in_place_of_a_tensorflow_checkpoint(google, tmp_path, name):
    directory, _ = google.write(tmp_path / "google")
    (directory / name).write_text(POINTER)
    with pytest.raises(CheckpointError, match=MESSAGE.format(name)):
        load_backbone(directory)


def test_other_files_pass(checkpoint):
    check_not_pointer(checkpoint / "absent")
    check_not_pointer(checkpoint / "vocab.txt")
