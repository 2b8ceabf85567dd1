import importlib.util
import logging
import re
import sys
from pathlib import Path

import pytest
from huggingface_hub import constants, file_download, utils

from keras_bert_layers.checkpoints import CheckpointError, load_task
from keras_bert_layers.checkpoints.hub import REPOSITORIES, resolve
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory
from keras_bert_layers.checkpoints.huggingface.hub_snapshot import blob_hash
from keras_bert_layers.presets import PRESETS

ROOT = Path(__file__).parents[2]
TINY = "bert_uncased_L-2_H-128_A-2"
NAME = "someone/tiny-bert"
OTHERS = {"README.md": b"#", "pytorch_model.bin": b"no pickle", "tf_model.h5": b"h5", "onnx/model.onnx": b"onnx"}


@pytest.fixture(scope="session")
def hub_server():
    spec = importlib.util.spec_from_file_location("hub_server", Path(__file__).parent / "hub_server.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hub(hub_server, tmp_path, monkeypatch):
    """A hub on this machine with an empty cache beside it; huggingface_hub knows no other."""
    server = hub_server.Hub()
    monkeypatch.setattr(constants, "ENDPOINT", server.endpoint)
    template = server.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    for module in (constants, file_download):  # before release 1.0, the second has a name of its own for it
        monkeypatch.setattr(module, "HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True, raising=False)  # since 0.30
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    new_sessions()
    yield server
    server.close()
    new_sessions()


def new_sessions():
    """Before release 1.0, a session keeps the settings that it began with."""
    getattr(utils, "reset_sessions", lambda: None)()


@pytest.fixture
def no_network(hub, monkeypatch):
    """Call it to shut the hub down, or to switch on offline mode."""

    def shut(offline=False):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        new_sessions()
        hub.close()

    monkeypatch.setattr(hub, "close", _once(hub.close))
    return shut


def _once(function):
    calls = []
    return lambda: calls.append(None) if calls else (calls.append(None), function())


@pytest.fixture
def files(checkpoint):
    return {path.name: path.read_bytes() for path in checkpoint.iterdir()}


@pytest.fixture
def repository(hub, files):
    return hub.add(NAME, {**files, **OTHERS}, large=("model.safetensors", "pytorch_model.bin"))


def load(name=f"hf://{NAME}", **options):
    return resolve(name, owner="load_backbone", **options)


def snapshots(tmp_path):
    return [path for path in (tmp_path / "cache").rglob("snapshots/*/*") if path.exists()]


def test_a_checkpoint_by_name(repository, hub, files):
    folder = load()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    assert hub.downloads() == sorted(files), "nothing of other frameworks, no second copy of the weights"
    directory = HuggingFaceDirectory(folder, owner="load_backbone")
    assert directory.config.hidden_dim == 15
    assert len(directory.open_weights().infos) == 39


def test_the_line_of_the_readme(hub, minilm):
    """With the files of the real repository, which this machine has as a package."""
    (line,) = re.findall(r"`kbl\.load_task\(\"hf://(.+?)\"\)`", (ROOT / "README.md").read_text(encoding="utf-8"))
    files = {str(path.relative_to(minilm)): path.read_bytes() for path in minilm.rglob("*") if path.is_file()}
    hub.add(line, files, large=("model.safetensors",))
    encoder = load_task(f"hf://{line}")
    assert type(encoder).__name__ == "BertSentenceEncoder"
    assert encoder.preprocessor.max_length == 256


def test_the_commit_is_logged_and_in_the_path(repository, hub_server, caplog):
    with caplog.at_level(logging.INFO, logger="keras_bert_layers.checkpoints"):
        folder = load()
    assert folder.name == hub_server.MAIN
    assert caplog.messages == [f"hf://{NAME} is at commit {hub_server.MAIN}: {folder}"]


@pytest.mark.parametrize("revision", ["v1", "OLD"])
def test_a_revision(repository, hub_server, revision):
    revision = getattr(hub_server, revision, revision)
    assert load(f"hf://{NAME}@{revision}").name == hub_server.OLD


def test_a_revision_with_slashes(hub, hub_server, files):
    hub.add(NAME, files, revisions={"refs/pr/1": hub_server.OLD, hub_server.OLD: hub_server.OLD})
    assert load(f"hf://{NAME}@refs/pr/1").name == hub_server.OLD


def test_the_second_load_downloads_nothing(repository, hub):
    first = load()
    hub.requests.clear()
    assert load() == first
    assert hub.downloads() == []


def test_without_weights_only_the_small_files(repository, hub, files):
    load(weights=False)
    assert hub.downloads() == ["config.json", "vocab.txt"]
    load()
    assert hub.downloads() == sorted(files)


@pytest.mark.parametrize("offline", [True, False], ids=["offline mode", "no network"])
def test_from_the_cache(repository, no_network, caplog, offline):
    folder = load()
    pinned = load(f"hf://{NAME}@{folder.name}")
    no_network(offline)
    with caplog.at_level(logging.INFO, logger="keras_bert_layers.checkpoints"):
        assert load() == load(f"hf://{NAME}@{folder.name}") == pinned == folder
    assert f"hf://{NAME} is taken from the cache, at commit {folder.name}: {folder}" in caplog.text
    assert {record.levelno for record in caplog.records} == {logging.INFO if offline else logging.WARNING}


def test_offline_mode_without_the_checkpoint(repository, no_network):
    no_network(offline=True)
    with pytest.raises(
        CheckpointError,
        match=rf"`load_backbone`: `source` must be in huggingface_hub's cache .*source='hf://{NAME}'\. "
        r"OfflineModeIsEnabled: .*HF_HUB_OFFLINE.*Load it once while there is a network, or give a local directory",
    ):
        load()


def test_no_network_and_only_the_small_files_cached(repository, no_network):
    load(weights=False)
    no_network()
    load(weights=False)
    with pytest.raises(
        CheckpointError, match=r"must be in huggingface_hub's cache .*refused.*while there is a network"
    ):
        load()


@pytest.mark.parametrize("file", ["model.safetensors", "vocab.txt"])
def test_a_damaged_download(repository, hub, files, tmp_path, file):
    damaged = bytes([files[file][0] ^ 1]) + files[file][1:]
    repository["broken"][file] = damaged
    kind = "SHA-256" if file == "model.safetensors" else "git hash"
    digest = hub_digest(hub, file)
    with pytest.raises(
        CheckpointError,
        match=rf"{file}: must have the {kind} that the hub states, {digest}\. Received: [0-9a-f]+\. .*"
        "It was removed from the cache. Load again",
    ):
        load()
    assert file not in [path.name for path in snapshots(tmp_path)]
    assert not any(path.read_bytes() == damaged for path in (tmp_path / "cache").rglob("*") if path.is_file())
    repository["broken"].clear()
    assert (load() / file).read_bytes() == files[file]


def hub_digest(hub, file):
    entry = sys.modules["hub_server"]._Handler._entry(None, hub.repositories[NAME], file)
    return entry["lfs"]["sha256"] if "lfs" in entry else entry["oid"]


def test_a_cache_that_was_changed(repository, no_network):
    path = load() / "model.safetensors"
    with path.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"!")
    no_network()
    with pytest.raises(CheckpointError, match=r"model\.safetensors: must have the SHA-256.*Remove it from the cache"):
        load()
    assert path.exists(), "without a network nothing could replace it"


def test_a_damaged_file_that_cannot_be_removed(repository, monkeypatch):
    path = load() / "vocab.txt"
    path.write_bytes(b"?")

    def refuse(self, missing_ok=False):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(CheckpointError, match=r"vocab\.txt: .*Remove it from the cache, and load again"):
        load()


def test_a_cache_without_links_is_not_checked_and_warns(repository, no_network, caplog):
    path = load() / "vocab.txt"
    assert len(blob_hash(path)) == 40
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    assert blob_hash(path) is None
    no_network(offline=True)
    with caplog.at_level(logging.INFO, logger="keras_bert_layers.checkpoints"):
        load()
    assert f"{path} is not checked" in caplog.text


def test_no_such_repository(hub):
    with pytest.raises(
        CheckpointError, match=r"must name a repository of the hub\. .*someone/tiny-bert does not exist, or"
    ):
        load()


def test_no_such_revision(repository):
    with pytest.raises(CheckpointError, match=r"must name a revision .*tiny-bert has no branch, tag or commit 'v2'"):
        load(f"hf://{NAME}@v2")


def test_a_gated_repository(hub, files):
    hub.add(NAME, files, gated=True)
    with pytest.raises(CheckpointError, match=rf"it is gated\. .*Ask for access at {hub.endpoint}/{NAME}, then log in"):
        load()


def test_a_name_that_the_hub_does_not_allow(hub):
    with pytest.raises(
        CheckpointError, match=r"must name a repository as the hub allows it\. .*Cannot have -- or \.\."
    ):
        load("hf://someone/tiny--bert")


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, "nothing"),
        ({"config.json": b"{}", "flax_model.msgpack": b""}, r"config\.json, flax_model\.msgpack"),
        ({f"model-{letter}.gguf": b"" for letter in "abcdefghijklmn"}, r"model-a\.gguf, .*model-l\.gguf and 2 more"),
    ],
)
def test_nothing_that_is_read_here(hub, files, found):
    hub.add(NAME, files)
    with pytest.raises(CheckpointError, match=rf"with a checkpoint that this package reads\. .*Found: {found}\."):
        load()
    assert hub.downloads() == []


def test_a_hub_that_states_no_hash(repository, monkeypatch, hub_server):
    entry = hub_server._Handler._entry
    monkeypatch.setattr(hub_server._Handler, "_entry", lambda *call: {**entry(*call), "oid": None})
    with pytest.raises(CheckpointError, match=r"states the hash of every file\. .*no hash of config\.json, vocab\.txt"):
        load()


def test_a_repository_that_changes_meanwhile(repository, monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *call, **options: tmp_path)
    with pytest.raises(CheckpointError, match=r"must stay as it is while it is loaded.*Load it again"):
        load()


def test_a_download_that_fails(repository, monkeypatch):
    def fail(*call, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
    with pytest.raises(
        CheckpointError, match=r"must be downloaded completely\. .*OSError: .*No space left on device\. Load"
    ):
        load()


def test_an_answer_that_is_not_from_a_hub(repository, monkeypatch, hub_server):
    monkeypatch.setattr(hub_server._Handler, "_api", lambda self, parts: self._send("<html>Please log in</html>"))
    with pytest.raises(CheckpointError, match=r"must be in huggingface_hub's cache .*JSONDecodeError"):
        load()


def test_a_preset(hub, files):
    hub.add(f"google/{TINY}", files)
    assert f"models--google--{TINY}" in load(TINY).parts


def test_a_directory_of_that_name_goes_before_the_preset(hub, tmp_path, monkeypatch):
    (tmp_path / TINY).mkdir()
    monkeypatch.chdir(tmp_path)
    assert load(TINY) == TINY
    assert hub.requests == []


def test_every_preset_has_a_repository():
    assert REPOSITORIES.keys() == PRESETS.keys()
    assert REPOSITORIES["bert_base_multilingual_cased"] == "google-bert/bert-base-multilingual-cased"
    assert REPOSITORIES["bert_uncased_L-12_H-768_A-12"] == "google/bert_uncased_L-12_H-768_A-12"


@pytest.mark.parametrize("source", [Path("a/directory"), Path(TINY), b"bytes", 3, None, str(Path(__file__).parent)])
def test_what_is_not_a_name_is_returned_unchanged(source):
    assert load(source) is source


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "bert-base-uncased",
            "be an existing directory. .*Did you mean the preset 'bert_base_uncased', which is hf://go",
        ),
        (
            "bert_uncased_L-2_H-128_A-3",
            "be an existing directory. .*Did you mean the preset 'bert_uncased_L-2_H-128_A-2'",
        ),
        (
            "someone/tiny-bert",
            "be an existing directory. .*repository of the HuggingFace hub, use 'hf://someone/tiny-bert",
        ),
        ("nothing like it", "be an existing directory. .*Give a local directory, a preset such as 'bert_uncased_L-2_"),
        ("hf://bert-base-uncased", "be hf://owner/name or hf://owner/name@REVISION. .*Did you mean the preset"),
        ("hf://someone/tiny-bert/folder", "be hf://owner/name or hf://owner/name@REVISION"),
        ("hf://someone/tiny-bert@", "be hf://owner/name or hf://owner/name@REVISION"),
        ("hf://", "be hf://owner/name or hf://owner/name@REVISION"),
        ("hf://someone/tiny-bert@../../x", "be hf://owner/name or hf://owner/name@REVISION"),
        ("hf://someone/tiny-bert@/x", "be hf://owner/name or hf://owner/name@REVISION"),
        ("", "name a checkpoint. .*Give a local directory, a preset such as 'bert_uncased_L-2_"),
        (" ", "name a checkpoint"),
    ],
)
def test_invalid_names(source, message):
    with pytest.raises(CheckpointError, match=rf"`load_backbone`: `source` must {message}"):
        load(source)
