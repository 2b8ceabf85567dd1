"""`suggest`: the columns that it sees, what it prints and draws, and errors."""

import csv
import re
import shlex
from argparse import Namespace
from unittest.mock import Mock, patch
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")

from keras_bert_layers.cli.commands.suggest import _next_steps
from keras_bert_layers.cli.parser import make_parser
from keras_bert_layers.cli.row_facts import Chosen, baselines, choose_columns, doubtful
from keras_bert_layers.tasks.inputs.row_features import RowFeatures

REVIEWS = ["good film", "a good night", "bad film", "unhappy night", "good, good", "bad, bad night"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [
        f'{row},"{text} {row % 3}",{"bad" if "bad" in text or "un" in text else "good"}'
        for row, text in enumerate(4 * REVIEWS)
    ]
    lines += ['98,"GOOD  film 0",bad', '99,"rare",once']
    path.write_text("\n".join(["id,review,sentiment", *lines]) + "\n")
    return path


def figure_of(page):
    """The facts on a page, which are XML too."""
    return ElementTree.fromstring(re.search("<figure.*</figure>", page.read_text(encoding="utf-8"), re.DOTALL)[0])


def test_a_table(run, encoder, table, tmp_path, capsys):
    (tmp_path / "dev.csv").write_text("id,review,sentiment\n1,good film 0,good\n2,new,bad\n")
    words = ["--model", encoder, "--validation", tmp_path / "dev.csv", "--rows", 30, "--page", tmp_path / "facts.html"]
    assert run("suggest", table, *words) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:4] == [
        "task: classifier, because the file's name ends in .csv",
        "columns: texts in 'review', labels in 'sentiment'; not read: id",
        "labels: of 3 kinds: bad 50.0 %, good 46.2 %, once 3.8 %",
        "rows: 26; 19 repeat the text of an earlier row, 1 of them with another label",
    ]
    assert shown[4] == "  row 25 (bad): GOOD film 0"
    assert shown[5] == f"validation: 2 rows, 1 of them with a text of {table}"
    beginnings = ["tokens: ", "simple models, accuracy in %, on 25 rows: the most frequent class 52, TF-IDF of words "]
    beginnings += ["doubtful labels, by the frozen vectors: ", "fine-tuning: about ", "next: keras-bert-layers train "]
    for beginning in beginnings:
        assert any(line.startswith(beginning) for line in shown), beginning
    (command,) = (line for line in shown if line.startswith("next: "))
    parsed = make_parser().parse_args(shlex.split(command)[2:])
    assert (parsed.text, parsed.label, str(parsed.validation)) == ("review", "sentiment", str(tmp_path / "dev.csv"))
    python = "\n".join(line.strip() for line in shown[shown.index("or in Python:") + 1 :])
    compile(python, "shown", "exec")
    figure = figure_of(tmp_path / "facts.html")
    found = ["".join(part.itertext()) for part in figure.iter()]
    assert {"What is in rows.csv", python, command.removeprefix("next: ")} <= {*found}
    assert {line for line in shown[: shown.index(command)] if line[0] != " "} <= {*found}
    assert {"bad13 (50.0 %)", "the most frequent class52", "25bad1goodGOOD film 0"} <= {*found}
    limit = re.search(r"the model reads (\d+), and 0 texts", "\n".join(shown))[1]
    assert f"0 % above the limit of {limit}" in found


def test_cells_stay_text_on_the_page(run, encoder, tmp_path, capsys):
    hostile, page = "<script>alert('1')</script> \"q\" & \x00 \u202eשלום " + "long" * 999, tmp_path / "facts.html"
    with (tmp_path / "<b>.csv").open("w", encoding="utf-8") as file:
        csv.writer(file).writerows([["<i>"], [hostile], [hostile], ["<b>bold</b>"]])
    page.write_text("an older page")
    assert run("suggest", tmp_path / "<b>.csv", "--model", encoder, "--page", page) == 0
    shown = capsys.readouterr().out
    assert "columns: texts in '<i>', labels in None\n" in shown
    assert " --label COLUMN " in shown
    (row,) = figure_of(page).findall(".//tbody/tr[th='2']")
    *_, text = row.itertext()
    assert text == f"{hostile.replace(chr(0), chr(0xFFFD))[:299]}…"
    assert not re.search("<script|<b>|<i>|\0", page.read_text(encoding="utf-8"))


def test_other_files(run, encoder, tmp_path, capsys):
    (tmp_path / "names.conll").write_text("Ann B-person\nsleeps O\n\nBob B-person\nruns O\n")
    assert run("suggest", tmp_path / "names.conll", "--model", encoder) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == "rows: 2"
    assert shown[2] == f"next: keras-bert-layers train {tmp_path / 'names.conll'} --from {encoder} --to names"


KINDS = {"the price": "float_normalized", "shop": "string_categorical", "sold": "string_categorical"}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rows.csv", {}),
        ("rows.csv", {"sep": ";"}),
        ("rows.tsv", {"sep": "\t"}),
        ("rows.tsv.gz", {"sep": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}),
    ],
)
def test_columns_beside_the_text(tmp_path, name, options):
    chosen = Chosen("review", "stars", "one", (), KINDS)
    arguments = Namespace(file=tmp_path / name, model="mini", validation=None)
    texts = ['"a, b', "c"] if "quoting" in options else ["a", "b"]
    columns = {"review": texts, "stars": ["1", "0"], "the price": [2.5, None], "shop": ["x", None], "id": [1, 2]}
    pd.DataFrame({**columns, "sold": ["TRUE", "FALSE"]}).to_csv(arguments.file, index=False, **options)
    facts = _next_steps(arguments, "classifier", chosen, ["--long-texts", "windows"])
    (command,), python = (fact.code for fact in facts)
    parsed = make_parser().parse_args(shlex.split(command)[1:])
    assert (parsed.columns, parsed.long_texts) == ([*KINDS], "head_tail")
    task = Mock()
    with patch("keras_bert_layers.load_task", return_value=task) as load:
        exec("\n".join(python))
    assert list(load.call_args.kwargs["columns"].features) == [*KINDS]
    assert load.call_args.kwargs["class_names"] == ["0", "1"]
    (x, y), _ = task.fit.call_args
    assert (list(x), list(x["text"]), list(y)) == ([*KINDS, "text"], texts, ["1", "0"])
    features = RowFeatures("Test", load.call_args.kwargs["columns"])
    assert [features.checked(name, x[name], 0).tolist() for name in ("shop", "sold")] == [["x", ""], ["TRUE", "FALSE"]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--text", "body"], "`suggest`: `--text` must be one of ['id', 'review', 'sentiment']"),
        (["--rows", "3"], "`suggest`: `--rows` must be"),
        (["--validation", "absent.csv"], "no such file: absent.csv"),
        (["--page", "facts.txt"], "`suggest`: `--page` must be a file that ends in .html"),
    ],
)
def test_errors(run, encoder, table, error_line, words, message):
    assert run("suggest", table, "--model", encoder, *words) == 2
    assert message in error_line()


def test_columns():
    rows = {"text": ["a b", "c d", "e f", "g h"], "note": ["longer text"] * 4, "score": [0.5, 1.5, 0.5, 2.0]}
    assert choose_columns(rows, None, None)[:3] == ("note", "score", "number")
    assert choose_columns({"text": ["a", "b"], "kind": ["x", "y"]}, None, None).label is None
    assert choose_columns({"link": ["https://a.example/a"], "text": ["a b"]}, None, None).text == "text"


def test_baselines_of_numbers_and_doubtful_labels():
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(60, 4)).astype("float32")
    numbers = (vectors @ [1, 2, 0, 0]).tolist()
    scores, probabilities = baselines(["word"] * 60, vectors, numbers, "number", lambda _: None)
    assert probabilities is None
    assert scores["the mean"] == pytest.approx(np.abs(numbers - np.mean(numbers)).mean())
    assert scores["frozen vectors"] < 0.2 * scores["the mean"] < scores["TF-IDF of words"]
    labels = np.where(vectors[:, 0] > 0, "up", "down")
    labels[7] = "down" if labels[7] == "up" else "up"
    vectors[7, 0] *= 9
    _, probabilities = baselines(["word"] * 60, vectors, labels.tolist(), "one", lambda _: None)
    assert next(iter(doubtful(probabilities, labels.tolist()).items())) == (7, "up" if labels[7] == "down" else "down")
