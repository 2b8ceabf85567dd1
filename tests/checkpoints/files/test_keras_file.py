"""Hostile `.keras` files: one clear error, nothing run, nothing written, no other file read, no memory filled."""

import io
import json
import os
import pickle
import tracemalloc
import zipfile

import h5py
import keras
import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig, BertTokenizer, load_task
from keras_bert_layers.checkpoints import CheckpointError

GAMMA = "layers/bert_backbone/layers/bert_embedding/layer_norm/vars/0"

# A bomb of hundreds of megabytes is refused before any of it is unpacked.
BOMB_BYTES = 300_000_000
ALLOWED_BYTES = 60_000_000

LAMBDA = {
    "module": "keras.layers",
    "class_name": "Lambda",
    "config": {
        "name": "harm",
        "function": {"class_name": "__lambda__", "config": {"code": "4wAAAAA=", "defaults": None, "closure": None}},
    },
    "registered_name": None,
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory, vocabulary, preprocessor):
    """The parts of a good `.keras` file, by name."""
    path = tmp_path_factory.mktemp("saved") / "good.keras"
    sizes = {"hidden_dim": 15, "num_layers": 2, "num_heads": 3, "intermediate_dim": 21, "max_sequence_length": 13}
    backbone = BertBackbone(BertConfig(vocabulary_size=len(vocabulary), **sizes))
    BertClassifier(backbone, num_classes=3, preprocessor=preprocessor).save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, entries, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


def with_config(parts, change):
    config = json.loads(parts["config.json"])
    config = change(config) or config
    return {**parts, "config.json": json.dumps(config).encode()}


def with_weights(parts, change):
    file = io.BytesIO(parts["model.weights.h5"])
    with h5py.File(file, "r+") as weights:
        change(weights)
    return {**parts, "model.weights.h5": file.getvalue()}


def refused(path, message):
    with pytest.raises(CheckpointError, match=message) as caught:
        load_task(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_good_file_loads(tmp_path, saved):
    assert isinstance(load_task(write(tmp_path / "x.keras", saved.items())), BertClassifier)


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [("backbone", "vocabulary_size", 50_000_000), ("backbone", "num_layers", 20_000), ("task", "num_classes", 10**9)],
)
def test_weights_that_are_not_there(tmp_path, saved, files_stay, part, key, value):
    def change(config):
        place = config["config"]
        (place["backbone"]["config"]["config"] if part == "backbone" else place)[key] = value

    path = write(tmp_path / "x.keras", with_config(saved, change).items())
    tracemalloc.start()
    try:
        refused(path, "config.json must describe the weights in the file")
        assert tracemalloc.get_traced_memory()[1] < ALLOWED_BYTES
    finally:
        tracemalloc.stop()


def test_more_blocks_than_the_file_has_arrays_for(tmp_path, saved, files_stay):
    """Blocks so small that their numbers would fit into the file; Keras would need minutes to make them."""

    def change(config):
        config["config"]["backbone"]["config"]["config"] |= {
            "num_layers": 20_000,
            "hidden_dim": 2,
            "num_heads": 1,
            "intermediate_dim": 1,
        }

    parts = with_config({**saved, "model.weights.h5": saved["model.weights.h5"] + os.urandom(2_000_000)}, change)
    refused(write(tmp_path / "x.keras", parts.items()), "a model that takes at least 82,")


@pytest.mark.parametrize("unsafe", [False, True], ids=["as it is", "with unsafe deserialization on"])
@pytest.mark.parametrize("place", ["model", "backbone"])
def test_a_lambda(tmp_path, saved, files_stay, place, unsafe):
    def change(config):
        if place == "model":
            return LAMBDA
        config["config"]["backbone"] = LAMBDA
        return None

    path = write(tmp_path / "x.keras", with_config(saved, change).items())
    if unsafe:
        keras.config.enable_unsafe_deserialization()
    try:
        refused(path, "config.json must not hold a program. Received: '__lambda__'. Do not trust this file.")
    finally:
        keras.src.backend.common.global_state.set_global_attribute("safe_mode_saving", None)


def test_a_pickled_module(tmp_path, saved, files_stay):
    hostile = {**LAMBDA, "class_name": "TorchModuleWrapper", "config": {"module": "gASVAAAA"}}
    path = write(tmp_path / "x.keras", with_config(saved, lambda config: hostile).items())
    refused(path, "config.json must not hold a program. Received: 'TorchModuleWrapper'")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "mkdir"),
        ("builtins", "eval"),
        ("subprocess", "Popen"),
        ("keras.src.utils.file_utils", "get_file"),
        ("keras_bert_layers.checkpoints", "save_huggingface"),
    ],
)
def test_a_function_in_the_place_of_a_class(tmp_path, saved, files_stay, module, name):
    hostile = {"module": module, "class_name": name, "config": {"name": "escaped"}, "registered_name": None}
    path = write(tmp_path / "x.keras", with_config(saved, lambda config: hostile).items())
    refused(path, "Keras refuses this file: (TypeError: Could not|ValueError: Could not deserialize)")


def test_a_vocabulary_that_is_the_name_of_a_file(tmp_path, saved, files_stay, vocabulary):
    (tmp_path / "secret").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")

    def change(config):
        config["config"]["preprocessor"]["config"]["tokenizer"]["config"]["vocabulary"] = str(tmp_path / "secret")

    path = write(tmp_path / "x.keras", with_config(saved, change).items())
    refused(path, "Keras refuses this file: TypeError: .*`vocabulary` must be the tokens in a config.*reads files")
    with pytest.raises(TypeError, match="must be the tokens in a config"):
        BertTokenizer.from_config({"vocabulary": tmp_path / "secret"})


@pytest.mark.parametrize(
    "name", ["../escaped", "../../escaped", "/escaped", "a/../../escaped", "..\\escaped", "C:escaped"]
)
def test_entries_that_leave_the_archive(tmp_path, saved, files_stay, name):
    path = write(tmp_path / "x.keras", [*saved.items(), (name, b"harm")])
    refused(path, "must be inside the archive. Do not trust this file.")


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_entries_that_occur_twice(tmp_path, saved, files_stay):
    path = write(tmp_path / "x.keras", [*saved.items(), ("config.json", b"{}")])
    refused(path, "'config.json' must be in the archive once")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["config.json", "model.weights.h5", "more.bin"])
def test_zip_bombs(tmp_path, saved, files_stay, name):
    bomb = bytes(BOMB_BYTES) if name != "config.json" else b" " * BOMB_BYTES
    path = write(tmp_path / "x.keras", {**saved, name: bomb}.items())
    del bomb
    assert path.stat().st_size < 1_000_000
    tracemalloc.start()
    try:
        refused(path, f"'{name}' must take at most \\d+ bytes. Received: {BOMB_BYTES}")
        assert tracemalloc.get_traced_memory()[1] < ALLOWED_BYTES
    finally:
        tracemalloc.stop()


def overlapping(path, parts):
    """An archive whose directory names the same part of the file repeatedly."""
    write(path, parts.items(), zipfile.ZIP_STORED)
    with zipfile.ZipFile(path, "a") as archive:
        weights = archive.getinfo("model.weights.h5")
        for number in range(20):
            copy = zipfile.ZipInfo(f"copy_{number}")
            copy.header_offset, copy.CRC = weights.header_offset, weights.CRC
            copy.file_size, copy.compress_size = weights.file_size, weights.compress_size
            archive.filelist.append(copy)
            archive.NameToInfo[copy.filename] = copy
        archive._didModify = True


def test_entries_that_overlap(tmp_path, saved, files_stay):
    overlapping(tmp_path / "x.keras", saved)
    refused(tmp_path / "x.keras", "entries of the archive must not overlap")


@pytest.mark.filterwarnings("ignore:Skipping nested container:UserWarning")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda group, name: group.__setitem__(name, h5py.ExternalLink("/etc/hosts", "/x")), "ExternalLink"),
        (
            lambda group, name: group.create_dataset(name, (16,), "uint8", external=[("/etc/hosts", 0, 16)]),
            "external Dataset",
        ),
        (
            lambda group, name: group.create_dataset(name, (2**36,), "float32", chunks=(1024,)),
            "refusing to load a potential decompression/shape bomb",
        ),
    ],
    ids=["link", "numbers in another file", "256 GB without numbers"],
)
def test_weights_that_are_elsewhere_or_missing(tmp_path, saved, files_stay, change, message):
    def replace(weights):
        group, name = weights[GAMMA].parent, GAMMA.rpartition("/")[2]
        del group[name]
        change(group, name)

    path = write(tmp_path / "x.keras", with_weights(saved, replace).items(), zipfile.ZIP_STORED)
    refused(path, f"Keras refuses this file: ValueError: .*{message}")


@pytest.mark.parametrize("config", [b"", b"{", b"[" * 200_000, b"\xff", b"[1]", b"3", b'{"class_name": 3}'])
def test_configs_that_are_not_configs(tmp_path, saved, files_stay, config):
    message = "must hold a config.json that can be read: |Keras refuses this file: "
    refused(write(tmp_path / "x.keras", {**saved, "config.json": config}.items()), message)


def test_files_that_are_not_archives(tmp_path, saved, files_stay):
    path = write(tmp_path / "x.keras", saved.items())
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    for content in (b"", b"harm", whole[:-100], pickle.dumps({}), b"\x89HDF\r\n\x1a\n" + bytes(90)):
        path.write_bytes(content)
        refused(path, "is not a complete .keras file")
    path.write_bytes(damaged)
    refused(path, "Keras refuses this file: ")
    refused(
        write(path, [("metadata.json", b"{}")]), "must hold a config.json that can be read: .There is no item named"
    )


@pytest.mark.parametrize("name", ["config.json", "metadata.json"])
def test_more_objects_than_any_model_has(tmp_path, saved, files_stay, name):
    content = b"[" + b"{}," * 1_100_000 + b"{}]"
    path = write(tmp_path / "x.keras", {**saved, name: content}.items(), zipfile.ZIP_STORED)
    refused(path, rf"{name}: must hold at most 1,000,000 objects and lists")
