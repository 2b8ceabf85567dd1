"""Errors of `TokenShards`."""

import json
import re
import socket

import keras
import pytest

from keras_bert_layers import BertTokenizer
from keras_bert_layers.data import DocumentFiles, TextCorpus, TokenShards, write_shards
from keras_bert_layers.preprocessing import NextSentence


@pytest.fixture
def directory(blank_lines, tokenizer, tmp_path):
    files = DocumentFiles(blank_lines(), separated_by="blank_lines")
    write_shards(TextCorpus(files, tokenizer, rule=NextSentence(), max_length=9, seed=1), tmp_path / "shards")
    return tmp_path / "shards"


def test_rule_of_the_manifest(directory, tokenizer):
    shards = TokenShards(str(directory), tokenizer)
    assert shards.rule == NextSentence()
    assert (shards.max_length, shards.seed, shards.num_duplicates) == (9, 1, 1)


def test_tokenizer(directory, tokenizer, vocabulary):
    with pytest.raises(ValueError, match="`tokenizer` must be the one that made the shards: they differ in lowercase"):
        TokenShards(directory, BertTokenizer(vocabulary, lowercase=False))
    with pytest.raises(ValueError, match="they differ in class or vocabulary"):
        TokenShards(directory, BertTokenizer([*vocabulary, "more"]))


def test_rule(directory, tokenizer, rule, blank_lines, tmp_path):
    with pytest.raises(ValueError, match="`rule` must be as in the manifest.*random_next_rate"):
        TokenShards(directory, tokenizer, rule=NextSentence(random_next_rate=0.25))
    files = DocumentFiles(blank_lines(), separated_by="blank_lines")
    write_shards(TextCorpus(files, tokenizer, rule=rule), tmp_path / "own")
    with pytest.raises(ValueError, match=r"`rule` must be a DocumentRows.*Pass the rule"):
        TokenShards(tmp_path / "own", tokenizer)


def test_files(directory, tokenizer):
    manifest = json.loads((directory / "manifest.json").read_text())
    file = directory / manifest["shards"][0]["file"]
    file.write_bytes(b"half")
    with pytest.raises(ValueError, match=re.escape(f"{file} has 4 bytes, not")):
        TokenShards(directory, tokenizer)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        TokenShards(directory, tokenizer)
    (directory / "manifest.json").write_text(json.dumps({**manifest, "format": 2}))
    with pytest.raises(ValueError, match="has format 2; this version reads 1"):
        TokenShards(directory, tokenizer)


def test_manifests_that_are_wrong(directory, tokenizer):
    path = directory / "manifest.json"
    content = path.read_text()
    manifest = json.loads(content)
    (shard, *_) = manifest["shards"]
    changed = [
        *({name: value} for name in ("tokenizer", "rule", "shards") for value in (None, [], {}, 3, "a")),
        *({name: value} for name in ("max_length", "num_duplicates") for value in (None, 0, -1, 1.0, True, "9")),
        *({"num_duplicates": value} for value in (2, 10**9, 10**30)),
        *({"seed": value} for value in (-1, 2**63, "1")),
        *({"compression": value} for value in (None, "ZLIB", [])),
        *({"shards": [value]} for value in (None, [], {}, 3)),
        *({"shards": [{**shard, "block": value}]} for value in (None, -1, 10**9, 10**30, 0.0)),
        *({"shards": [{**shard, "duplicate": value}]} for value in (None, -1, 1, 10**9)),
        *({"shards": [{**shard, "rows": value}]} for value in (None, -1, 0)),
        *({"shards": [{**shard, "bytes": None}]}, {"shards": [{**shard, "sha256": 3}]}),
        *({"rule": {"class": value, "settings": {}}} for value in (None, [], 3, "Unknown")),
        {"rule": {"class": "NextSentence", "settings": {"unknown": 3}}},
    ]
    contents = [json.dumps({**manifest, **change}) for change in changed]
    for wrong in [*contents, "", "[]", "3", "{", '{"format": ' + "[" * 100_000, content[:-9]]:
        path.write_text(wrong)
        with pytest.raises(
            (ValueError, FileNotFoundError), match="`TokenShards`|`RowRule`|`NextSentence`|No such file"
        ):
            TokenShards(directory, tokenizer)
    path.write_text(content)
    assert TokenShards(directory, tokenizer).num_rows == (shard["rows"],)


def test_a_damaged_shard_is_named(directory, tokenizer, monkeypatch):
    shards = TokenShards(directory, tokenizer)
    file = directory / shards.manifest["shards"][0]["file"]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(Exception, match=re.escape(f"`TokenShards`: {file} is damaged: its SHA-256 is not")):
        list(shards.dataset(0))
    jax = pytest.importorskip("jax")
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    monkeypatch.setattr(jax, "process_count", lambda: 3)
    monkeypatch.setattr(jax, "process_index", lambda: 2)
    where = f"in process 2 of 3, on {socket.gethostname()}"
    with pytest.raises(Exception, match=re.escape(f"`TokenShards`: {file} is damaged {where}: its SHA-256 is not")):
        list(shards.dataset(0))
    file.write_bytes(content[:-1])
    size = len(content)
    with pytest.raises(ValueError, match=re.escape(f"{file} has {size - 1} bytes {where}, not {size}. Remove it")):
        TokenShards(directory, tokenizer)
