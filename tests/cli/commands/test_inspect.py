"""`inspect`: the facts of every layout, and of damaged checkpoints."""

import json
import shutil

import pytest


def test_checkpoint_with_a_task(run, classifier, capsys):
    assert run("inspect", classifier, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["layout"], facts["parameters"], facts["problems"]) == ("huggingface", 2695, {})
    assert facts["tasks"][0]["name"] == "classifier"
    assert facts["tasks"][0]["options"]["class_names"] == ["bad", "fair", "good"]
    assert facts["tokenizer"] == {
        "vocabulary_size": 18,
        "lowercase": True,
        "strip_accents": None,
        "split_chinese": True,
        "num_pair_separators": 1,
        "reference": "huggingface",
        "special_tokens": None,
        "added_tokens": [],
        "max_length": 17,
    }
    assert len(facts["weights"]) == 25
    assert {
        "ours": "encoder_block_0/attention/query_key_value/kernel",
        "part": "key",
        "stored": "bert.encoder.layer.0.attention.self.key.weight",
        "dtype": "F32",
        "shape": [15, 15],
    } in facts["weights"]


def test_text_for_people(run, encoder, capsys):
    assert run("inspect", encoder) == 0
    shown = capsys.readouterr().out
    assert "task        none stated: an encoder\nparameters  2,647\n" in shown
    assert "  hidden_dim           15\n" in shown
    assert "pooler/dense/kernel " in shown
    assert " pooler.dense.weight " in shown


def test_what_others_read_differently(run, encoder, tmp_path, capsys):
    folder = shutil.copytree(encoder, tmp_path / "half")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert run("inspect", folder, "--json") == 0
    assert json.loads(capsys.readouterr().out)["read_differently"] == []
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "float16"}), encoding="utf-8")
    assert run("inspect", folder) == 0
    assert "They compute in float16, as config.json states" in capsys.readouterr().out


@pytest.mark.parametrize("layout", ["google", "kerashub"])
def test_other_layouts(run, encoder, tmp_path, capsys, layout):
    assert run("convert", encoder, tmp_path / "b", "--to", layout) == 0
    capsys.readouterr()
    assert run("inspect", tmp_path / "b", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["layout"], facts["parameters"], facts["problems"]) == (layout, 2647, {})
    assert facts["tokenizer"]["vocabulary_size"] == 18
    assert len(facts["weights"]) == 23


def test_keras_file(run, keras_file, capsys):
    assert run("inspect", keras_file, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["layout"], facts["parameters"]) == ("keras", 2695)
    assert facts["tasks"][0]["name"] == "BertClassifier"
    assert facts["config"]["hidden_dim"] == 15
    assert facts["tokenizer"]["vocabulary_size"] == 18


def test_reports_what_is_wrong(run, huggingface, tmp_path, capsys):
    tensors = huggingface.random_tensors()
    tensors["extra.weight"] = tensors["encoder.extra"] = tensors.pop("encoder.layer.0.output.dense.bias")
    source = huggingface.write(tmp_path / "b", tensors=tensors, vocabulary=None)
    assert run("inspect", source) == 0
    shown = capsys.readouterr().out
    assert "encoder_block_0/feed_forward/output/bias" in shown
    assert " missing " in shown
    assert "encoder.extra  F32    15     not part of the model: loading fails" in shown
    assert "extra.weight   F32    15     unknown: loading warns" in shown
    assert "must hold a vocab.txt or a tokenizer.json" in shown


def test_missing_weights(run, encoder, huggingface, tmp_path, capsys):
    source = huggingface.write(tmp_path / "b")
    (source / "model.safetensors").unlink()
    assert run("inspect", source) == 0
    assert "parameters  `inspect`: " in capsys.readouterr().out


def test_refuses(run, error_line, tmp_path):
    (tmp_path / "x.keras").write_bytes(b"no zip")
    assert run("inspect", tmp_path / "x.keras") == 2
    assert "is not a complete .keras file" in error_line()
    assert run("inspect", tmp_path / "y.keras") == 2
    assert "no such file" in error_line()
