import builtins
import shutil
from pathlib import Path

import pytest
import requests
from kagglehub.exceptions import KaggleApiHTTPError

from keras_bert_layers.checkpoints import CheckpointError, load_backbone
from keras_bert_layers.checkpoints.hub import resolve
from keras_bert_layers.checkpoints.kerashub.preset import download_preset

TINY = "kerashub://bert_tiny_en_uncased"
HANDLE = "keras/bert/keras/bert_tiny_en_uncased/3"


def kaggles_answer(status, text):
    response = requests.Response()
    response.status_code = status
    return KaggleApiHTTPError(f"{status} Client Error.\n\n{text}", response=response)


NO_SUCH_FILE = {
    "by its answer": lambda: kaggles_answer(404, "Resource not found"),
    "in a notebook": lambda: ValueError("'task.json' is not present in the model files. You can access the others"),
}


@pytest.fixture(params=NO_SUCH_FILE)
def no_such_file(request):
    """What makes kagglehub's error for a file that a model does not have."""
    return NO_SUCH_FILE[request.param]


@pytest.fixture
def published(kerashub, tmp_path, monkeypatch, no_such_file):
    """Makes kagglehub find the files of a small preset; gives what was asked for, in order."""
    preset = kerashub.save(kerashub.backbone(), tmp_path / "published")
    asked = []

    def model_download(handle, file):
        asked.append((handle, file))
        cached = tmp_path / "cache" / file
        if not (preset / file).is_file():
            raise no_such_file()
        cached.parent.mkdir(parents=True, exist_ok=True)
        return str(shutil.copy(preset / file, cached))

    monkeypatch.setattr("kagglehub.model_download", model_download)
    return asked


@pytest.fixture
def no_network(monkeypatch):
    def model_download(handle, file):
        raise ConnectionError("Failed to resolve 'api.kaggle.com'")

    monkeypatch.setattr("kagglehub.model_download", model_download)


def test_by_name(published, kerashub):
    directory = download_preset(TINY, owner="load_backbone")
    assert load_backbone(directory).config.num_layers == kerashub.SIZES["num_layers"]
    assert published[0] == (HANDLE, "config.json")
    assert (HANDLE, "task.weights.h5") in published


def test_small_files_only(published):
    directory = download_preset(TINY, owner="load_tokenizer", weights=False)
    assert not [file for _, file in published if file.endswith(".h5")]
    assert sorted(path.name for path in directory.iterdir()) == [
        *("assets", "config.json", "metadata.json", "tokenizer.json")
    ]


def test_by_kaggle_handle(published):
    assert isinstance(resolve("kaggle://keras/bert/keras/bert_tiny_en_uncased/3", owner="load_backbone"), Path)
    assert published[0][0] == HANDLE


@pytest.mark.parametrize(
    ("source", "cure"),
    [
        ("kerashub://bert_tiny_en_uncase", r"Did you mean 'kerashub://bert_tiny_en_uncased'\?"),
        ("kerashub://qqqqqq", r"There are .*bert_base_multi"),
    ],
)
def test_unknown_names(source, cure, no_network):
    with pytest.raises(CheckpointError, match=rf"`load_task`: `source` must name a BERT preset of KerasHub\. .*{cure}"):
        download_preset(source, owner="load_task")


def test_no_network(no_network):
    match = (
        r"`load_backbone`: `source` must be a preset that can be downloaded\. Received: source='kerashub://bert_tiny_en_"
        r"uncased'\. ConnectionError: Failed to resolve .* Without a network, download it elsewhere and give the dir"
    )
    with pytest.raises(CheckpointError, match=match):
        download_preset(TINY, owner="load_backbone")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (kaggles_answer(403, "The answer to 404 Client Error"), "KaggleApiHTTPError: 403 Client Error"),
        (ValueError("Invalid model handle: me"), "ValueError: Invalid model handle: me"),
    ],
)
def test_other_errors_are_not_missing_files(monkeypatch, error, reason):
    def model_download(handle, file):
        raise error

    monkeypatch.setattr("kagglehub.model_download", model_download)
    with pytest.raises(CheckpointError, match=rf"must be a preset that can be downloaded\. .* {reason}"):
        download_preset("kaggle://me/bert/keras/mine", owner="load_backbone")


def test_no_preset_behind_a_handle(published, tmp_path):
    (tmp_path / "published" / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"must be a preset that can be downloaded\. .* it has no config\.json\."):
        download_preset("kaggle://me/bert/keras/mine", owner="load_backbone")


def test_without_keras_hub(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("keras_hub"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        CheckpointError, match=r"must be a local directory here\. .*needs keras_hub .*pip install keras-nlp"
    ):
        download_preset(TINY, owner="load_backbone")
