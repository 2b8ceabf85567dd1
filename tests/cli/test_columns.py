"""Columns beside a text in the commands: what they are read as, and a classifier with columns in each command."""

import json
import math
from argparse import Namespace

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers.cli.columns import column_kind, column_value
from keras_bert_layers.cli.commands.demo import DemoPage
from keras_bert_layers.cli.models import load_model
from keras_bert_layers.cli.rest_model import SavedModelRestModel, TaskRestModel
from keras_bert_layers.cli.row_facts import choose_columns
from keras_bert_layers.cli.training_rows import TrainingRows, read_rows

NUMBERS, CATEGORIES = "float_normalized", "string_categorical"
TABLE = """review,the country,age,label
a good film,us,31,yes
bad night,de,,no
"a film, good",us,7.5,yes
unhappy night,,40,no
a night,fr,12,yes
bad film,de,55,no
"""
NAMES = ["the country", "age"]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", " 2.5e3", "", "nan", None, -3], NUMBERS),
        (["1", "1,200", ""], CATEGORIES),
        (["us", "7", None], CATEGORIES),
        ([True, None], CATEGORIES),
        (["inf", "1"], CATEGORIES),
        ([str(row // 2) + "x" for row in range(400)], CATEGORIES),
    ],
)
def test_kinds(cells, kind):
    assert column_kind("a", cells, owner="train") == kind


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["", None, " "], "'a' has no value in any row"),
        ([f"x{row}" for row in range(101)], "'a' has 101 different values in 101 rows, too many for categories"),
        ([*map(str, range(200)), "n/a"], "'a' has 201 different values.* empty or correct cells such as 'n/a'"),
    ],
)
def test_kinds_that_are_refused(cells, message):
    with pytest.raises(ValueError, match=f"`train`: --columns: {message}"):
        column_kind("a", cells, owner="train")


def test_values():
    given = [("7", "float32"), (True, "string"), (" us", "string"), (None, "string"), ("", "int32"), ("3.0", "int64")]
    assert [column_value(cell, "a", dtype, owner="x") for cell, dtype in given] == [7, "True", "us", "", -1, 3]
    assert math.isnan(column_value(None, "a", "float32", owner="x"))
    for cell, dtype, kind in [
        ("old", "float32", "numbers"),
        ("-inf", "float32", "numbers"),
        ([1], "float32", "numbers"),
        ({}, "string", "strings"),
        ("1.5", "int32", "whole numbers"),
    ]:
        with pytest.raises(ValueError, match=f"`x`: column 'a' in line 3 must hold {kind}. Received: "):
            column_value(cell, "a", dtype, " in line 3", owner="x")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("columns") / "rows.csv"
    path.write_text(TABLE, encoding="utf-8")
    return path


def test_rows_have_cells_and_then_values(table, tmp_path):
    arguments = Namespace(text="review", pair=None, label="label", labels="one", separator=";")
    rows = read_rows(table, "classifier", arguments, columns=NAMES)
    assert rows.texts[1:] == (["us", "de", "us", "", "fr", "de"], ["31", "", "7.5", "40", "12", "55"])
    found = rows.with_values(NAMES, {"age": "float32", "the country": "string"})
    assert found.texts[2] == rows.texts[1]
    np.testing.assert_array_equal(found.texts[1], [31, np.nan, 7.5, 40, 12, 55])
    assert (found.texts[0], found.labels) == (rows.texts[0], rows.labels)
    with pytest.raises(ValueError, match="`train`: column 'age' must hold numbers. Received: 'x'"):
        TrainingRows((["a"], ["x"]), ()).with_values(["age"], {"age": "float32"})
    for columns, message in {
        ("age", "age"): "--columns must name columns beside review, label, each once",
        ("review",): "--columns must name columns beside review, label",
        ("price",): "must have a column 'price'. The columns are: review, the country, age, label",
    }.items():
        with pytest.raises(ValueError, match=message):
            read_rows(table, "classifier", arguments, columns=columns)
    lines = '{"review": "a", "label": "x", "age": 3}\n{"review": "b", "label": "y", "age": null}\n'
    (tmp_path / "a.jsonl").write_text(lines)
    assert read_rows(tmp_path / "a.jsonl", "classifier", arguments, columns=["age"]).texts[1] == [3, None]


def test_suggested_columns():
    table = {
        "id": [*range(6)],
        "code": [*"abcdef"],
        "text": ["a long text"] * 6,
        "label": [0, 1] * 3,
        "price": ["1.5", "", "3", "4", "5", "6"],
        "country": ["us", "de", "us", "us", "fr", None],
        "same": ["x"] * 6,
        "none": [""] * 6,
    }
    chosen = choose_columns(table, "text", "label")
    assert chosen.beside == {"price": NUMBERS, "country": CATEGORIES}
    assert chosen.others == ("id", "code", "same", "none")


@pytest.fixture(scope="module")
def model(encoder, tmp_path_factory):
    """A `.keras` file of a classifier with columns, adapted to the table."""
    space = keras.utils.FeatureSpace({"the country": CATEGORIES, "age": NUMBERS}, output_mode="concat")
    task = kbl.load_task(encoder, "classifier", class_names=["no", "yes"], columns=space)
    rows = (["a"] * 3, ["us", "de", "fr"], [31.0, np.nan, 7.5])
    with task.pipeline.fitting(task.pipeline.columns(rows)):
        path = tmp_path_factory.mktemp("model") / "model.keras"
        task.save(path)
    return path


@pytest.mark.usefixtures("traces_nothing", "loaded_once")
def test_predict_and_evaluate_read_columns_by_their_names(run, model, table, answers, error_line, tmp_path, capsys):
    task = kbl.load_task(model)
    texts = ["a good film", "bad night", "a film, good", "unhappy night", "a night", "bad film"]
    ages = [31, None, 7.5, 40, 12, 55]
    columns = {"text": texts, "the country": ["us", "de", "us", None, "fr", "de"], "age": ages}
    expected = task.answer(columns)["probabilities"]
    assert run("predict", model, "--file", table, "--text", "review", "--batch-size", 4) == 0
    np.testing.assert_allclose([answer["probabilities"] for answer in answers()], expected, atol=1e-6)
    rows = [dict(zip(["text", "the_country", "age"], row, strict=True)) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for words in ([], ["--format", "jsonl"]):
        assert run("predict", model, "--file", tmp_path / "a.jsonl", *words) == 0
        np.testing.assert_allclose([answer["probabilities"] for answer in answers()], expected, atol=1e-6)
    assert run("evaluate", model, table, "--text", "review", "--label", "label", "--json") == 0
    labels = [row.rpartition(",")[2] for row in TABLE.splitlines()[1:]]
    accuracy = np.mean(np.array(task.class_names)[expected.argmax(axis=1)] == labels)
    assert json.loads(capsys.readouterr().out)["accuracy"] == pytest.approx(accuracy)
    needs = "reads the columns the country, age beside a text, which plain texts do not have. Give --file a table"
    (tmp_path / "a.txt").write_text("a film\n")
    for words, message in [
        (["a film"], needs),
        (["--file", tmp_path / "a.txt"], needs),
        (["--file", table, "--format", "lines"], needs),
        (["--file", table], "must have a column 'text'. The columns are: review, the country, age, label."),
        (["--file", tmp_path / "a.txt", "--text", "review"], "--text and --pair are for --file with a table"),
    ]:
        assert run("predict", model, *words) == 2
        assert message in error_line()
    (tmp_path / "b.csv").write_text("text,age,the country\na,old,us\n")
    assert run("predict", model, "--file", tmp_path / "b.csv") == 2
    assert "column 'age' in line 2 of " in error_line()
    assert run("compare", model, model, "--texts", tmp_path / "a.txt") == 2
    assert "Give --task encoder." in error_line()


@pytest.mark.usefixtures("traces_nothing")
def test_requests_and_forms_have_a_value_for_each_column(model):
    served = TaskRestModel(model, name="films")
    served.warm_up()
    values = {"text": ["a film", "bad"], "the_country": ["us", ""], "age": [3.5, None]}
    answer = served.answer("POST", "/v1/models/films:predict", json.dumps({"inputs": values}).encode())
    task = kbl.load_task(model)
    expected = task.answer({"text": ["a film", "bad"], "the country": ["us", None], "age": [3.5, None]})[
        "probabilities"
    ]
    np.testing.assert_allclose(json.loads(answer.body)["outputs"]["probabilities"], expected, atol=1e-6)
    refused = served.answer("POST", "/v1/models/films:predict", json.dumps({"inputs": {"text": ["a"]}}).encode())
    assert (refused.status, "the_country" in refused.body) == (400, True)
    page = DemoPage(task, name="films")
    page.warm_up()
    form = page.answer("POST", "/", b"text=a+film&the+country=us&age=3.5").body
    assert f"<td>{expected[0, 1]:.3f}</td>" in form
    assert 'name="the country" rows="1">us</textarea>' in form
    assert "<td>" in page.answer("POST", "/", b"text=a+film&the+country=&age=").body
    assert "must hold numbers" in page.answer("POST", "/", b"text=a+film&age=old").body


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_from_train_to_a_served_model(run, encoder, table, answers, error_line, tmp_path, capsys):
    pytest.importorskip("tensorflow_text")
    words = ("--text", "review", "--label", "label", "--columns", *NAMES, "--epochs", 1, "--validation", table)
    assert run("train", table, *words, "--from", encoder, "--to", tmp_path / "out") == 0
    shown = capsys.readouterr().err
    assert "train: column 'the country' is read as 3 categories; 2 are missing\n" in shown
    assert "train: column 'age' is read as numbers; 2 are missing\n" in shown
    task = load_model(str(tmp_path / "out"), None, owner="predict").model
    assert list(task.columns.features) == NAMES
    found = []
    for model in (tmp_path / "out", tmp_path / "out" / "saved_model" / "1"):
        assert run("predict", model, "--file", table, "--text", "review") == 0
        found.append([answer["probabilities"] for answer in answers()])
    np.testing.assert_allclose(*found, atol=1e-6)
    served = SavedModelRestModel(tmp_path / "out" / "saved_model" / "1", name="films", version=1)
    for signature, request in served.examples():
        assert served.step(signature, request), signature
    values = {"text": "a good film", "the_country": "us", "age": 31}
    body = json.dumps({"instances": [values, {**values, "age": None}]}).encode()
    answer = json.loads(served.answer("POST", "/v1/models/films:predict", body).body)["predictions"]
    assert answer[0]["probabilities"] == pytest.approx(found[0][0], abs=1e-6)
    assert answer[1]["probabilities"] != answer[0]["probabilities"]
    words = ("--text", "review", "--label", "label", "--from", tmp_path / "out", "--to", tmp_path / "more")
    assert run("train", table, *words) == 2
    assert "`--columns` must name those of MODEL, ['the country', 'age']" in error_line(before=1)
    assert run("train", table, *words, "--columns", "age", "the country", "--epochs", 1, "--validation", table) == 0
