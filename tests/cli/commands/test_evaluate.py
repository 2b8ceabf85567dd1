"""The command `evaluate`."""

import json
import re

import pytest

ROWS = "review,label\na good film,no\nbad night,so\na film,no\n"


@pytest.fixture
def rows(tmp_path):
    def rows(content, name="a.csv"):
        (tmp_path / name).write_text(content, encoding="utf-8")
        return tmp_path / name

    return rows


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_a_classifier(run, capsys, keras_file, classifier, rows):
    import keras_bert_layers as kbl

    task = kbl.load_task(keras_file)
    first, second, *_ = task.class_names
    path = rows(ROWS.replace("no", first).replace("so", second))
    expected = task.evaluate(
        ["a good film", "bad night", "a film"], [first, second, first], verbose=0, return_dict=True
    )
    words = ("--text", "review", "--label", "label")
    for model in (keras_file, classifier):
        assert run("evaluate", model, path, *words, "--json") == 0
        assert json.loads(capsys.readouterr().out) == {
            "task": "classifier",
            "rows": 3,
            **{name: pytest.approx(value, abs=1e-5) for name, value in expected.items()},
        }
    assert run("evaluate", keras_file, path, *words) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"rows: 3\naccuracy: {expected['accuracy']:.4g}\nloss: ")
    assert "precision" in shown.out or "no report of each class" in shown.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "`evaluate`: --label must name the column of labels for --task classifier"),
        (["--label", "label"], "`evaluate`: .* must have a column 'text'. The columns are: review, label"),
        (["--text", "review", "--label", "label"], "every label must be one of .* Received: 'no' in row 0"),
        (["--batch-size", "0"], "`evaluate`: `--batch-size` must be at least 1"),
    ],
)
def test_refuses(run, capsys, keras_file, rows, words, message):
    assert run("evaluate", keras_file, rows(ROWS), *words) == 2
    assert re.search(message, capsys.readouterr().err)


def test_an_encoder(run, error_line, encoder, rows):
    assert run("evaluate", encoder, rows(ROWS)) == 2
    assert "`evaluate`: MODEL must have a task and a tokenizer" in error_line()


def test_an_onnx_file(run, error_line, rows):
    assert run("evaluate", "model.onnx", rows(ROWS)) == 2
    assert "MODEL must be a task. Received: model.onnx. An ONNX file has answers and no loss." in error_line()
