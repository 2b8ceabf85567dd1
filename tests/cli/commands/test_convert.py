"""`convert`: layouts, destinations, and no files left after an error."""

import json
import subprocess
import sys

import numpy as np
import pytest

from keras_bert_layers._internal.files.wire_format import field


@pytest.mark.parametrize("layout", ["huggingface", "google", "kerashub"])
def test_layout_keeps_head_and_tokenizer(run, classifier, tmp_path, capsys, layout):
    import keras_bert_layers as kbl

    assert run("convert", classifier, tmp_path / "new" / layout, "--to", layout) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path / 'new' / layout}: BertClassifier, 2,695 parameters\n"
    one, other = (kbl.load_task(path) for path in (classifier, tmp_path / "new" / layout))
    assert all(np.array_equal(a, b) for a, b in zip(one.get_weights(), other.get_weights(), strict=True))
    assert one.class_names == other.class_names
    assert other.preprocessor.get_config()["max_length"] == 17


def test_encoder(run, error_line, encoder, tmp_path):
    assert run("convert", encoder, tmp_path / "b.keras", "--to", "keras") == 0
    assert "warning: the .keras file of an encoder has no tokenizer" in error_line()
    assert run("convert", tmp_path / "b.keras", tmp_path / "b", "--to", "google") == 0
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == [
        "bert_config.json",
        "bert_model.ckpt.data-00000-of-00001",
        "bert_model.ckpt.index",
    ]


def test_encoder_of_a_task(run, classifier, tmp_path, capsys):
    assert run("convert", classifier, tmp_path / "b", "--to", "huggingface", "--task", "encoder") == 0
    assert "BertBackbone" in capsys.readouterr().out
    assert json.loads((tmp_path / "b" / "config.json").read_text())["architectures"] == ["BertModel"]


def test_missing_vocabulary(run, error_line, huggingface, tmp_path):
    source = huggingface.write(tmp_path / "source", vocabulary=None)
    assert run("convert", source, tmp_path / "b", "--to", "huggingface") == 2
    assert "must hold a vocab.txt or a tokenizer.json" in error_line()
    assert not (tmp_path / "b").exists()
    assert run("convert", source, tmp_path / "b", "--to", "huggingface", "--no-tokenizer") == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "saved-model"], "a SavedModel needs a task and a tokenizer"),
        (["--to", "huggingface", "--task", "classifier"], "--task must be one that the checkpoint was trained for"),
        (["--to", "keras"], "DEST must end in .keras"),
        (["--to", "onnx"], "DEST must end in .onnx"),
        (
            ["--to", "saved-model", "--dtype", "int8"],
            "`--dtype` must be one of ['float32', 'bfloat16'] for --to s",
        ),
        (["--to", "google", "--dtype", "int8"], "`--dtype` must be left out for --to google"),
    ],
)
def test_refuses(run, error_line, encoder, tmp_path, words, message):
    assert run("convert", encoder, tmp_path / "new", *words) == 2
    assert f"keras-bert-layers: error: `convert`: {message}" in error_line()
    assert list(tmp_path.iterdir()) == []


def test_an_onnx_file(run, classifier, tmp_path):
    pytest.importorskip("onnx")
    assert run("convert", classifier, tmp_path / "classifier.onnx", "--to", "onnx") == 0
    assert [path.name for path in tmp_path.iterdir()] == ["classifier.onnx"]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.usefixtures("traces_nothing")
def test_an_onnx_file_is_run_and_inspected(
    run, answers, classifier, keras_file, without_tensorflow, tmp_path, capsys, dtype
):
    path, texts = tmp_path / "classifier.onnx", ["a good film", "bad, bad night", ""]
    assert run("convert", classifier, path, "--to", "onnx", "--dtype", dtype) == 0
    if dtype == "float32":  # as a user runs it
        command = [sys.executable, "-m", "keras_bert_layers", "predict", path, *texts]
        finished = subprocess.run(command, capture_output=True, text=True, check=True)
        lines, error = finished.stdout.splitlines(), finished.stderr
    else:
        code, shown, error = without_tensorflow("run", "predict", path, *texts)
        lines = shown.splitlines()
        assert code == 0
    assert error == ""
    capsys.readouterr()
    assert run("predict", keras_file, *texts) == 0
    for answer, expected in zip(map(json.loads, lines), answers(), strict=True):
        assert answer.keys() == expected.keys()
        tolerance = 0.02 if dtype == "int8" else 1e-5  # rounded weights, or sums in another order
        assert answer["probabilities"] == pytest.approx(expected["probabilities"], abs=tolerance)
    assert run("inspect", path, "--json") == 0
    (facts,) = answers()
    assert (facts["layout"], facts["tasks"][0]["name"], facts["config"]["hidden_dim"]) == ("onnx", "BertClassifier", 15)
    assert (facts["tokenizer"]["vocabulary_size"], facts["parameters"]) == (18, 2695)
    assert run("inspect", path) == 0
    assert "task        BertClassifier (" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["choices", "answers"])
@pytest.mark.usefixtures("traces_nothing")
def test_onnx_files_of_several_texts(run, answers, huggingface, without_tensorflow, name, tmp_path, capsys):
    import keras_bert_layers as kbl

    source = huggingface.write(tmp_path / "source")
    make = {"choices": kbl.BertMultipleChoice, "answers": kbl.BertQuestionAnswerer}[name]
    task = make(kbl.load_backbone(source), preprocessor=kbl.load_preprocessor(source, max_length=12))
    rows = [{"prompt": "a film", "choices": ["good", "bad night", "!"]}, {"prompt": "", "choices": ["unhappy", "a"]}]
    if name == "answers":
        rows = [{"question": "what ?", "context": "a good film, unhappy night " * 9}, {"question": "", "context": ""}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task.save(tmp_path / "task.keras")
    path = task.export(tmp_path / "task.onnx", format="onnx")
    code, found, error = without_tensorflow("run", "predict", path, "--file", tmp_path / "rows.jsonl")
    assert code == 0, error
    capsys.readouterr()
    assert run("predict", tmp_path / "task.keras", "--file", tmp_path / "rows.jsonl") == 0
    for answer, expected in zip(map(json.loads, found.splitlines()), answers(), strict=True):
        assert answer.keys() == expected.keys()
        for key, value in expected.items():
            assert answer[key] == (pytest.approx(value, abs=1e-5) if isinstance(value, float | list) else value)
    body = {"inputs": {key: [row[key] for row in rows] for key in rows[0]}}
    if name == "choices":
        body["inputs"]["choices"][1] += [""]
    ((status, answered),), _, error = without_tensorflow("serve", path, 2048, ["POST", ":predict", json.dumps(body)])
    key = "choice" if name == "choices" else "answer"
    expected = [json.loads(line)[key] for line in found.splitlines()]
    assert (status, answered["outputs"][key]) == (200, expected), error


def test_damaged_onnx_files(run, error_line, tmp_path):
    path = tmp_path / "a.onnx"
    for command in ("inspect", "predict"):
        assert run(command, path, *["text"] * (command == "predict")) == 2
        assert f"`{command}`: no such file: {path}" in error_line()
    for content in (b"", b"\xff" * 9, b"\x38\x01", b"\x72\x04\x0a\x00\x12\x00"):
        path.write_bytes(content)
        assert run("inspect", path) == 2
        assert f"`inspect`: {path} is not a complete ONNX file of this package" in error_line()
    card = b"{" + b"a" * 100_000 + b"\xff"
    path.write_bytes(field(14, field(1, b"model_card") + field(2, card)))
    assert run("inspect", path) == 2
    assert "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff" in (shown := error_line())
    assert len(shown) < 500
    assert run("predict", path, "text", "--task", "classifier") == 2
    assert "--task is for checkpoints; an ONNX file has one task" in error_line()


def test_without_onnx_runtime(run, error_line, tmp_path, monkeypatch):
    (tmp_path / "a.onnx").touch()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert run("predict", tmp_path / "a.onnx", "text") == 2
    assert "needs onnxruntime and onnxruntime-extensions. Install both: `python -m pip install" in error_line()


def test_no_source(run, error_line, tmp_path):
    assert run("convert", tmp_path / "absent", tmp_path / "new" / "b", "--to", "google") == 2
    assert "`source` must be an existing directory" in error_line()
    assert list(tmp_path.iterdir()) == []


def test_other_machine(run, error_line, encoder):
    assert run("convert", encoder, "gs://bucket/b", "--to", "google") == 2
    assert "`DEST` must be a local path" in error_line()


def test_destination_is_replaced_only_when_asked(run, error_line, encoder, tmp_path):
    path = tmp_path / "b"
    path.mkdir()
    (path / "config.json").write_text("{}")
    assert run("convert", encoder, path, "--to", "huggingface") == 2
    assert "DEST must be new" in error_line()
    assert (path / "config.json").read_text() == "{}"
    assert run("convert", encoder, path, "--to", "huggingface", "--force") == 0
    assert (path / "model.safetensors").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_only_models_are_replaced(run, error_line, encoder, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("x")
    assert run("convert", encoder, tmp_path / "thesis", "--to", "huggingface", "--force") == 2
    assert "--force replaces models only" in error_line()
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "x"


@pytest.mark.parametrize("old", [False, True])
def test_interrupted(run, error_line, encoder, tmp_path, monkeypatch, old):
    def interrupted(path, tensors, **options):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    import keras_bert_layers.checkpoints.huggingface.writer  # noqa: F401

    module = sys.modules["keras_bert_layers.checkpoints.huggingface.writer"]
    monkeypatch.setattr(module, "write_safetensors", interrupted)
    if old:
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "config.json").write_text("old")
    assert run("convert", encoder, tmp_path / "b", "--to", "huggingface", "--force") == 130
    assert error_line() == "keras-bert-layers: interrupted: nothing half-written is left.\n"
    assert [path.name for path in tmp_path.rglob("*")] == (["b", "config.json"] if old else [])


def test_error_that_nobody_expected_shows_its_traceback(run, encoder, tmp_path, capsys, monkeypatch):
    import keras_bert_layers.checkpoints.huggingface.writer  # noqa: F401

    module = sys.modules["keras_bert_layers.checkpoints.huggingface.writer"]
    monkeypatch.setattr(module, "write_safetensors", lambda *words, **options: {}["absent"])
    assert run("convert", encoder, tmp_path / "b", "--to", "huggingface") == 2
    assert "Traceback" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_progress_on_a_terminal_only(run, encoder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run("convert", encoder, tmp_path / "b", "--to", "huggingface") == 0
    shown = capsys.readouterr().err
    assert "Reading" in shown
    assert "Writing" in shown
