"""`compare`: weights, tokenizers and tasks that differ."""

import json

import pytest

pytestmark = pytest.mark.usefixtures("loaded_once")

TEXTS = ["a good film", "bad, bad night", "good", "中 É x"]


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return tmp_path / "texts.txt"


def test_the_same(run, classifier, keras_file, texts, capsys):
    assert run("compare", classifier, keras_file, "--texts", texts, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["rows_with_other_ids"], found["agree"]) == (4, 0, True)
    assert found["largest_differences"] == {"logits": 0.0}


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_other_weights(run, encoder, huggingface, texts, tmp_path, capsys):
    tensors = huggingface.random_tensors()
    tensors["pooler.dense.bias"][3] += 0.5
    other = huggingface.write(tmp_path / "b", tensors=tensors)
    assert run("compare", encoder, other, "--texts", texts, "--batch-size", "3") == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["other ids: 0 of 4 rows", "sequence_output: largest difference 0"]
    assert shown[-1] == "differ (tolerance 1e-05)"
    assert run("compare", encoder, other, "--texts", texts, "--tolerance", "0.6") == 0


@pytest.mark.usefixtures("traces_nothing")
def test_other_tokenizer(run, encoder, huggingface, texts, tmp_path, capsys):
    other = huggingface.write(tmp_path / "b")
    huggingface.write_json(other / "tokenizer_config.json", {"do_lower_case": False})
    assert run("compare", encoder, other, "--texts", texts) == 1
    assert f"other ids: 1 of 4 rows, first line 4 of {texts}\n" in capsys.readouterr().out


@pytest.mark.usefixtures("traces_nothing")
def test_encoders_where_one_states_no_task(run, classifier, encoder, texts, capsys):
    assert run("compare", classifier, encoder, "--texts", texts, "--json") == 0
    assert set(json.loads(capsys.readouterr().out)["largest_differences"]) == {"sequence_output", "pooled_output"}


def test_refuses(run, error_line, encoder, huggingface, texts, tmp_path):
    assert run("compare", encoder, encoder, "--texts", tmp_path / "absent") == 2
    assert "no such file" in error_line()
    assert run("compare", encoder, encoder, "--texts", texts, "--tolerance", "-1") == 2
    assert "`--tolerance` must be at least 0" in error_line()
    texts.write_text("")
    assert run("compare", encoder, encoder, "--texts", texts) == 2
    assert "must hold at least one line" in error_line()
    (tmp_path / "texts.jsonl").write_text("{}\n")
    assert run("compare", encoder, encoder, "--texts", tmp_path / "texts.jsonl") == 2
    assert "`compare`: line 1 of" in error_line()
