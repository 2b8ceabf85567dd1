"""`write_shards`: the rows of `TextCorpus` from files of every format, and continuing after a killed call."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from keras_bert_layers import preprocessing
from keras_bert_layers.data import DocumentFiles, TextCorpus, TokenShards, write_shards

RULES = ["DocumentRows", "NextSentence", "SentenceOrder", "FullSentences", "DocumentSentences", "PackedTexts"]


@pytest.fixture
def files(blank_lines, json_lines, tmp_path):
    """Several files in several units, one of several blocks."""
    paths = [blank_lines(), blank_lines("more.txt", compress=True), json_lines(), json_lines(compress=True)]
    return DocumentFiles(paths, separated_by="blank_lines", block_bytes=60)


@pytest.fixture
def corpus(files, tokenizer, rule):
    return TextCorpus(files, tokenizer, rule=rule, max_length=9, seed=3)


def contents(directory):
    return {path.name: path.read_bytes() for path in Path(directory).iterdir()}


@pytest.mark.parametrize("name", RULES)
def test_same_rows_as_the_plain_path(files, tokenizer, rule, rows_of, tmp_path, name):
    kind = rule if name == "DocumentRows" else getattr(preprocessing, name)()
    corpus = TextCorpus(files, tokenizer, rule=kind, max_length=9, seed=3)
    shards = write_shards(corpus, tmp_path / "shards", num_duplicates=2)
    datasets = [corpus.dataset(epoch) for epoch in range(2)]
    epochs = [rows_of(dataset) for dataset in datasets]
    assert epochs[0] != epochs[1]
    for epoch in range(3):
        assert rows_of(shards.dataset(epoch)) == epochs[epoch % 2]
    assert shards.num_rows == tuple(map(len, epochs))
    assert rows_of(tf.data.Dataset.range(1, 4).flat_map(shards.dataset)) == epochs[1] + epochs[0] + epochs[1]
    assert datasets[0].element_spec == shards.dataset(0).element_spec


def test_parquet(parquet, tokenizer, rule, rows_of, tmp_path):
    files = DocumentFiles(parquet(["a good film\nbad night", "night", "a bad film"] * 7), block_bytes=50)
    corpus = TextCorpus(files, tokenizer, rule=rule, max_length=9)
    assert len(list(files.blocks(0))) > 2
    assert rows_of(write_shards(corpus, tmp_path / "shards").dataset(0)) == rows_of(corpus.dataset(0))


@pytest.mark.parametrize("options", [[], ["--runner=DirectRunner"]])
def test_beam_writes_the_same_bytes(corpus, tmp_path, options):
    pytest.importorskip("apache_beam", reason="needs Apache Beam, from the extra `beam`")
    write_shards(corpus, tmp_path / "threads", num_duplicates=2)
    write_shards(corpus, tmp_path / "beam", num_duplicates=2, beam_options=options)
    assert contents(tmp_path / "beam") == contents(tmp_path / "threads")


def test_without_beam(corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(ModuleNotFoundError, match=r"keras-bert-layers\[beam\]"):
        write_shards(corpus, tmp_path / "shards", beam_options=[])


def test_gzip(corpus, rows_of, tmp_path):
    shards = write_shards(corpus, tmp_path / "zipped", compression="gzip")
    assert rows_of(shards.dataset(0)) == rows_of(corpus.dataset(0))
    assert {path.suffixes[-1] for path in (tmp_path / "zipped").glob("0*")} == {".gz", ".json"}
    write_shards(corpus, tmp_path / "again", compression="gzip")
    assert contents(tmp_path / "again") == contents(tmp_path / "zipped")


def test_manifest(corpus, tokenizer, documents, tmp_path, rows_of):
    manifest = write_shards(corpus, tmp_path / "shards").manifest
    assert json.loads((tmp_path / "shards" / "manifest.json").read_text()) == manifest
    rows = rows_of(corpus.dataset(0))
    num_tokens = sum(len(row["token_ids"]) for row in rows)
    assert (manifest["documents"], manifest["sentences"], manifest["rows"]) == (4 * 5, 4 * 9, len(rows))
    assert (
        manifest["tokens"] == 4 * tokenizer.tokenize([line for part in documents for line in part]).flat_values.shape[0]
    )
    assert manifest["row_tokens"] == num_tokens
    assert manifest["padding_share"] == pytest.approx(1 - num_tokens / (9 * len(rows)), abs=1e-6)  # six digits
    for shard in manifest["shards"]:
        content = (tmp_path / "shards" / shard["file"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (shard["bytes"], shard["sha256"])
    example = next(iter(tf.data.TFRecordDataset(str(tmp_path / "shards" / manifest["shards"][0]["file"]))))
    features = tf.train.Example.FromString(example.numpy()).features.feature
    assert sorted(features) == ["label", "padding_mask", "row", "segment_ids", "token_ids"]


def test_bad_lines(write, tokenizer, rule, tmp_path):
    bad = write(b'{"text": "a film"}\n{\n{"text": null}\n{"text": "a night"}\n', "b.jsonl", compress=True)
    worse = write(b"good\nb\xffd\n" * 30, "a.txt")
    files = DocumentFiles([bad, worse], separated_by="lines", block_bytes=50, on_error="skip")
    manifest = write_shards(TextCorpus(files, tokenizer, rule=rule), tmp_path / "shards").manifest
    assert (manifest["documents"], manifest["num_bad_lines"]) == (32, 32)
    assert manifest["bad_lines"][0] == f"{worse}, line 2: byte 0xff is not UTF-8. Save the file as UTF-8."
    assert [line.split(": ")[0] for line in manifest["bad_lines"][1:30]] == [
        f"{worse}, line {number}" for number in range(4, 61, 2)
    ]
    assert [line.split(": ")[0] for line in manifest["bad_lines"][30:]] == [f"{bad}, line 2", f"{bad}, line 3"]


KILLED = """
import os, pickle, signal, sys
from keras_bert_layers.data import write_shards
from keras_bert_layers.data.pretraining import _shard_files
from keras_bert_layers.data.pretraining import shard_writer

shard_writer.num_threads = lambda: 2
write = _shard_files.write_records
written = []

def write_then_die(path, *arguments, **options):
    write(path, *arguments, **options)
    written.append(path)
    if len(written) == 5:
        os.kill(os.getpid(), signal.SIGKILL)

_shard_files.write_records = write_then_die
write_shards(pickle.load(open(sys.argv[1], "rb")), sys.argv[2], num_duplicates=2)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_killed_and_started_again(files, tokenizer, tmp_path):
    import pickle

    corpus = TextCorpus(files, tokenizer, rule=preprocessing.NextSentence(), max_length=9, seed=3)
    (tmp_path / "corpus.pickle").write_bytes(pickle.dumps(corpus))
    directory = tmp_path / "killed"
    command = [sys.executable, "-c", KILLED, tmp_path / "corpus.pickle", directory]
    root = Path(__file__).parents[3]
    assert subprocess.run(command, cwd=root, check=False, capture_output=True).returncode == -signal.SIGKILL
    # The facts are written after the rows: of the two threads, one was killed after its rows, the other anywhere.
    complete = [path.with_suffix("") for path in directory.glob("*.tfrecord.json")]
    assert 2 < len(complete) < 5
    before = {path.name: path.stat().st_mtime_ns for path in complete}
    assert any(path.name.startswith(".") for path in directory.iterdir()), "the killed process left a part"
    with pytest.raises(FileNotFoundError, match="Call `write_shards` again"):
        TokenShards(directory, tokenizer)
    write_shards(corpus, directory, num_duplicates=2)
    write_shards(corpus, tmp_path / "whole", num_duplicates=2)
    assert contents(directory) == contents(tmp_path / "whole")
    assert {name: (directory / name).stat().st_mtime_ns for name in before} == before, "complete shards are kept"


def test_lost_and_cut_shards_are_written_again(corpus, tmp_path):
    write_shards(corpus, tmp_path / "shards")
    before = contents(tmp_path / "shards")
    first, second, *_ = sorted((tmp_path / "shards").glob("*.tfrecord"))
    first.unlink()
    second.write_bytes(b"half")
    write_shards(corpus, tmp_path / "shards")
    assert contents(tmp_path / "shards") == before


def test_other_settings(corpus, files, tokenizer, rule, tmp_path):
    write_shards(corpus, tmp_path / "shards")
    other = TextCorpus(files, tokenizer, rule=rule, max_length=9, seed=4)
    with pytest.raises(ValueError, match="has other values of num_duplicates, seed'?.*another directory"):
        write_shards(other, tmp_path / "shards", num_duplicates=2)


def test_errors(corpus, tmp_path):
    with pytest.raises(TypeError, match="`corpus` must be a TextCorpus"):
        write_shards("corpus.txt", tmp_path)
    with pytest.raises(ValueError, match="`num_duplicates` must be at least 1"):
        write_shards(corpus, tmp_path, num_duplicates=0)
    with pytest.raises(ValueError, match="`compression` must be one of"):
        write_shards(corpus, tmp_path, compression="zip")


def test_disk_fault(corpus, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="`write_shards`: `directory` must be"):
        write_shards(corpus, tmp_path / "file" / "shards")
