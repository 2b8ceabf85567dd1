import os

import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.json_file import (
    MAX_JSON_BYTES,
    MAX_JSON_DEPTH,
    MAX_JSON_PARTS,
    optional_json,
    read_file,
    read_json,
    read_json_object,
    write_json,
)


def test_reads_with_and_without_a_byte_order_mark(tmp_path):
    for content in ('{"é": [1, null]}'.encode(), '{"é": [1, null]}'.encode("utf-8-sig")):
        (tmp_path / "x.json").write_bytes(content)
        assert read_json_object(tmp_path / "x.json") == {"é": [1, None]}


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\xfd", b"[" * 100_000])
def test_not_json(tmp_path, content):
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"x\.json: must be valid JSON\. Received: "):
        read_json(tmp_path / "x.json")


def test_deep(tmp_path):
    (tmp_path / "x.json").write_text("[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH)
    read_json(tmp_path / "x.json")
    (tmp_path / "x.json").write_text('{"a":' * 65 + "0" + "}" * 65)
    with pytest.raises(CheckpointError, match=r"x\.json: must be valid JSON of at most 64 levels"):
        read_json(tmp_path / "x.json")


def test_not_an_object(tmp_path):
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(CheckpointError, match=r"x\.json: must hold a JSON object\. Received: a list"):
        read_json_object(tmp_path / "x.json")


def test_too_large(tmp_path):
    with (tmp_path / "x.json").open("wb") as file:
        file.truncate(MAX_JSON_BYTES + 1)  # a sparse file: takes no room
    with pytest.raises(CheckpointError, match=rf"must take at most {MAX_JSON_BYTES} bytes"):
        read_json(tmp_path / "x.json")


def test_many_empty_parts(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(b"[" + b"{}," * MAX_JSON_PARTS + b"{}]")
    with pytest.raises(CheckpointError, match="must hold at most 1,000,000 objects and lists"):
        read_json(path)


def test_absent(tmp_path):
    with pytest.raises(CheckpointError, match=r"x\.json: the file is missing"):
        read_json(tmp_path / "x.json")


def test_written_as_transformers_writes(tmp_path):
    write_json(tmp_path / "x.json", {"é": [1, None]})
    assert (tmp_path / "x.json").read_bytes() == '{\n  "é": [\n    1,\n    null\n  ]\n}\n'.encode()
    assert read_json_object(tmp_path / "x.json") == {"é": [1, None]}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("kind", ["pipe", "device", "endless", "broken"])
def test_other_kinds_of_files(tmp_path, kind):
    path, target = tmp_path / "x.json", {"device": "/dev/zero", "endless": "/proc/self/maps", "broken": "absent"}
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(target[kind])
    if kind == "endless" and not path.exists():
        pytest.skip("needs the files of processes")
    with pytest.raises(
        CheckpointError, match=r"x\.json: (must be a regular file|must take at most|the file is missing)"
    ):
        read_file(path)
    if kind != "endless":
        with pytest.raises(CheckpointError, match=r"x\.json: must be a regular file"):
            optional_json(path)


def test_a_link_to_a_file(tmp_path):
    (tmp_path / "y").write_text("{}")
    (tmp_path / "x.json").symlink_to("y")
    assert optional_json(tmp_path / "x.json") == optional_json(tmp_path / "absent.json") == {}
