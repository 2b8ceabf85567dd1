"""Errors of `TokenShards`."""

import json
import re

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
