import gzip
import json
import logging

import pytest

from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.google.casing import lowercases

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[unused1]"]
CASED, UNCASED, WITHOUT = [*SPECIAL, "The", "the", "##s"], [*SPECIAL, "the", "é", "##s"], [*SPECIAL, "中", "1", "É"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Google's releases: the README of google-research/bert
        ("uncased_L-12_H-768_A-12", True),
        ("uncased_L-24_H-1024_A-16", True),
        ("wwm_uncased_L-24_H-1024_A-16", True),
        ("multilingual_L-12_H-768_A-12", True),
        ("chinese_L-12_H-768_A-12", True),
        ("cased_L-12_H-768_A-12", False),
        ("cased_L-24_H-1024_A-16", False),
        ("wwm_cased_L-24_H-1024_A-16", False),
        ("multi_cased_L-12_H-768_A-12", False),
        # other people's
        ("bert_base_multilingual_cased", False),
        ("BERT-Base-Uncased", True),
        ("chinese_simbert_L-4_H-312_A-12", True),
    ],
)
@pytest.mark.parametrize("vocabulary", [CASED, UNCASED])
def test_names(tmp_path, name, expected, vocabulary):
    assert lowercases(tmp_path / name, {}, vocabulary) is expected


@pytest.mark.parametrize("name", ["mrpc_output", "purchased", "uncasedness"])
@pytest.mark.parametrize(("vocabulary", "expected"), [(CASED, False), (UNCASED, True)])
def test_names_that_do_not_state_the_casing(tmp_path, name, vocabulary, expected, caplog):
    with caplog.at_level(logging.INFO, logger="keras_bert_layers.checkpoints"):
        assert lowercases(tmp_path / name, {}, vocabulary) is expected
    assert caplog.messages[0].startswith(f"{tmp_path / name}: text is {'' if expected else 'not '}lower-cased, as ")


def test_stated(tmp_path):
    directory = tmp_path / "cased"
    directory.mkdir()
    (directory / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}), encoding="utf-8")
    assert lowercases(directory, {}, CASED) is True
    assert lowercases(directory, {"do_lower_case": False}, UNCASED) is False


def test_stated_wrongly(tmp_path):
    with pytest.raises(
        CheckpointError, match=r"bert_config\.json: `do_lower_case` must be true or false\. Received: 'n"
    ):
        lowercases(tmp_path, {"do_lower_case": "no"}, CASED)


def test_nothing_states_the_casing(tmp_path):
    directory = tmp_path / "mine"
    with pytest.warns(
        UserWarning, match=r"mine: nothing states whether its text is lower-cased: .*`\"do_lower_case\": true`"
    ):
        assert lowercases(directory, {}, WITHOUT) is True


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("bert-base-uncased.txt", True),
        ("bert-base-cased.txt", False),
        ("bert-base-multilingual-cased.txt.gz", False),
    ],
)
def test_real_vocabularies(tmp_path, file, expected, shared_data):
    data = (shared_data / "vocab" / file).read_bytes()
    text = (gzip.decompress(data) if file.endswith(".gz") else data).decode()
    assert lowercases(tmp_path / "mine", {}, text.split("\n")) is expected
