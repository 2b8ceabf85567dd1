"""The command `train`, and the models that it makes for some rows."""

import json
import re
from argparse import Namespace

import keras
import numpy as np
import pytest

from keras_bert_layers import cli
from keras_bert_layers.cli.commands.predict import SavedModelAnswerer
from keras_bert_layers.cli.commands.train import _freeze, new_task
from keras_bert_layers.cli.models import load_model
from keras_bert_layers.cli.text_rows import TextRow
from keras_bert_layers.cli.training_rows import TrainingRows

REVIEWS = "review,sentiment,stars\n" + "".join(
    f'"a {"good" if row % 2 else "bad"}, film",{"so" if row % 2 else "no"},{row % 2}\n' for row in range(8)
)
TEXTS = ["a good film", "bad night"]


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    path = tmp_path_factory.mktemp("reviews") / "reviews.csv"
    path.write_text(REVIEWS, encoding="utf-8")
    return path


@pytest.fixture
def eager(traces_nothing, monkeypatch):
    """Trains step by step, which takes less than a graph for so few steps, and exports nothing."""
    import keras_bert_layers as kbl

    monkeypatch.setattr(kbl.tasks.Task, "export", lambda task, path, **_: path.mkdir())


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_a_classifier(run, encoder, reviews, tmp_path, capsys):
    words = ("--text", "review", "--label", "sentiment", "--epochs", 2, "--batch-size", 4)
    assert run("train", reviews, *words, "--from", encoder, "--to", tmp_path / "out") == 0
    shown = capsys.readouterr()
    lines = shown.err.splitlines()
    assert lines[0].endswith(": train: trains a classifier, because the file's name ends in .csv")
    assert "train: 7 rows to train on, 1 to validate on" in shown.err
    assert ": train: 2 epochs of 2 steps\n" in shown.err
    assert re.search(r": train: epoch 1 of 2, \d+ s: accuracy .*, loss .*, val_accuracy .*, val_loss ", shown.err)
    assert re.search(
        r"2 epochs; the weights are those of epoch [12], .*\nvalidation .*accuracy: ", shown.out, re.DOTALL
    )
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"model.keras", "saved_model", "report.json", "training.html", "report.html"} <= names
    facts = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert (facts["task"], facts["rows"], len(facts["history"]["val_loss"])) == ("classifier", 7, facts["epochs"])
    model = keras.models.load_model(tmp_path / "out" / "model.keras")
    assert model.class_names == ["no", "so"]
    assert run("inspect", tmp_path / "out") == 0, "as every command takes its directory"
    assert load_model(str(tmp_path / "out"), None, owner="predict").task == "classifier"
    served = SavedModelAnswerer(str(tmp_path / "out" / "saved_model" / "1"))
    expected = model.answer(["a good film"])["probabilities"]
    assert served.answer([TextRow("", ("a good film",))])["probabilities"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "words", "kind"),
    [
        ("a.conll.txt", "Ann B-per\nsaw O\n\nRome B-loc\n", [], "BertTokenClassifier"),
        (
            "a.jsonl",
            '{"text": "a", "pair": "b"}\n{"text": "c", "pair": "d"}\n',
            ["--task", "sentence_encoder", "--pair", "pair"],
            "BertSentenceEncoder",
        ),
    ],
)
def test_tasks(run, encoder, tmp_path, capsys, eager, name, content, words, kind):
    (tmp_path / name).write_text(content, encoding="utf-8")
    options = ("--from", encoder, "--to", tmp_path / "out", "--epochs", 1, "--validation", tmp_path / name)
    assert run("train", tmp_path / name, *words, *options) == 0, capsys.readouterr().err
    shown = capsys.readouterr().out
    assert f"out: {kind}, " in shown
    assert "1 epoch; the weights" in shown
    json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)


@pytest.mark.slow
def test_questions(run, encoder, tmp_path, capsys, eager):
    asked = {"id": "q1", "question": "Who sleeps?", "answers": [{"text": "A cat", "answer_start": 0}]}
    squad = {"data": [{"title": "", "paragraphs": [{"context": "A cat sleeps.", "qas": [asked]}]}]}
    (tmp_path / "a.json").write_text(json.dumps(squad), encoding="utf-8")
    options = ("--from", encoder, "--to", tmp_path / "out", "--epochs", 1, "--validation", tmp_path / "a.json")
    assert run("train", tmp_path / "a.json", *options) == 0
    assert "validation f1: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--label", "nothing"], "`train`: .* must have a column 'nothing'. The columns are: review, sentiment, stars"),
        ([], "--label must name the column of labels"),
        (["--label", "sentiment", "--epochs", "0"], "`--epochs` must be at least 1"),
        (["--label", "sentiment", "--share", "1"], "`--share` must be greater than 0 and less than 1"),
        (["--label", "sentiment", "--validation", "absent.csv"], "no such file: absent.csv"),
        (["--label", "sentiment", "--from", "absent.keras"], "no such file: absent.keras"),
        (["--label", "stars", "--labels", "number", "--class-weight", "balanced"], "--class-weight is for a classif"),
        (["--label", "stars", "--labels", "number", "--calibrate"], "--calibrate is for a classifier of one label or"),
        (["--task", "masked_lm", "--long-texts", "windows"], "--long-texts is for classifier, cross_.* a masked_lm"),
        (["--task", "masked_lm", "--columns", "stars"], "--columns is for a classifier. Received: a masked_lm"),
        (["--label", "sentiment", "--columns", "review"], "--columns must name columns beside review, sentiment"),
        (["--label", "sentiment", "--freeze", "some"], "`--freeze` must be a number of blocks, or 'all'"),
    ],
)
def test_refusals_before_training(run, error_line, encoder, reviews, tmp_path, words, message):
    out = tmp_path / "out"
    assert run("train", reviews, "--text", "review", "--from", encoder, "--to", out, *words) == 2
    line = error_line(before=1)  # by what it trains
    assert re.search(message, line), line
    assert not out.exists()


@pytest.mark.parametrize(("rate", "is_questioned"), [("5", True), ("1e-3", False)])
def test_a_learning_rate_that_is_a_typo(run, capsys, reviews, tmp_path, rate, is_questioned):
    words = ("--from", tmp_path / "absent.keras", "--to", tmp_path / "out", "--learning-rate", rate)
    assert run("train", reviews, *words) == 2
    assert ("warning: --learning-rate 5 is high." in capsys.readouterr().err) == is_questioned


def test_an_existing_directory_is_kept(run, error_line, encoder, reviews, tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    words = ("train", reviews, "--label", "sentiment", "--from", encoder, "--to", tmp_path)
    assert run(*words) == 2
    assert "`train`: DIR must be new" in error_line(before=1)
    assert run(*words, "--force") == 2
    assert "--force replaces models only" in error_line(before=1)


def test_a_fault_leaves_nothing(run, encoder, reviews, tmp_path, eager, monkeypatch):
    from keras_bert_layers.cli.commands import train

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(train, "_fit", lambda *_: {"loss": [1.0], "val_loss": [1.0]})
    monkeypatch.setattr(train, "measured", lambda *_: {"loss": 1.0})
    monkeypatch.setattr(train, "_write_pictures", fail)
    words = ("--text", "review", "--label", "sentiment", "--from", encoder, "--to", tmp_path / "out")
    assert cli.main(["train", str(reviews), *map(str, words)]) == 2
    assert list(tmp_path.iterdir()) == []


def make(source, task, *labels, labels_kind="one", max_length=None, texts=(TEXTS,), long_texts=None):
    rows = TrainingRows(texts, labels)
    arguments = Namespace(labels=labels_kind, max_length=max_length, long_texts=long_texts)
    return new_task(str(source), task, (rows, rows), arguments)


@pytest.mark.parametrize(
    ("kind", "labels", "problem_type", "num_classes"),
    [
        ("one", ["x", "y"], "single_label_classification", 2),
        ("several", [["x", "y", "z"], []], "multi_label_classification", 3),
        ("number", [0.5, 1.0], "regression", 1),
    ],
)
def test_a_classifier_for_the_labels(encoder, kind, labels, problem_type, num_classes):
    model = make(encoder, "classifier", labels, labels_kind=kind, max_length=7)
    assert (model.problem_type, model.num_classes) == (problem_type, num_classes)
    assert model.preprocessor.max_length == 7


def test_a_new_head_where_the_classes_are_others(classifier):
    assert make(classifier, "classifier", ["x", "y"]).class_names == ["x", "y"]


@pytest.mark.usefixtures("eager")
def test_options_of_a_classifier(run, encoder, reviews, tmp_path, capsys, monkeypatch):
    import keras_bert_layers as kbl

    given = {}
    fit = kbl.BertClassifier.fit

    def remember(model, *rows, **options):
        given.update(options, weights=[model.backbone.get_weights()])
        return fit(model, *rows, **options)

    monkeypatch.setattr(kbl.BertClassifier, "fit", remember)
    words = ("--text", "review", "--label", "sentiment", "--epochs", 1, "--batch-size", 4, "--share", 0.5)
    words += ("--class-weight", "balanced", "--freeze", "all", "--calibrate", "--max-length", 6)
    assert run("train", reviews, *words, "--from", encoder, "--to", tmp_path / "out", "--long-texts", "head_tail") == 0
    assert given["class_weight"] == "balanced"
    assert "train: calibrated by the validation rows, with the temperature " in capsys.readouterr().err
    model = keras.models.load_model(tmp_path / "out" / "model.keras")
    assert type(model.long_texts).__name__ == "HeadTail"
    assert model.preprocessor.max_length == 6
    for ours, theirs in zip(model.backbone.get_weights(), given["weights"][0], strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_some_blocks_are_frozen(encoder):
    backbone = make(encoder, "masked_lm").backbone
    _freeze(backbone, "0")
    assert [layer.name for layer in backbone.layers if layer.weights and not layer.trainable] == ["embedding"]
    _freeze(backbone, "1")
    assert not backbone.get_layer("encoder_block_0").trainable
    with pytest.raises(ValueError, match="`train`: `--freeze` must be at most 1, the blocks of the model"):
        _freeze(backbone, "9")


def test_long_texts(encoder, keras_file):
    for task in ("sentence_encoder", "cross_encoder"):
        assert type(make(encoder, task, long_texts="windows").long_texts).__name__ == "Windows"
    with pytest.raises(ValueError, match="--long-texts must be left out for a .keras file"):
        make(keras_file, "classifier", ["x", "y"], long_texts="windows")


def test_tags_of_every_type(encoder):
    model = make(encoder, "token_classifier", [["B-per", "O"], ["B-loc"]], texts=([["Ann", "saw"], ["Rome"]],))
    assert model.tag_names == ["O", "B-loc", "I-loc", "B-per", "I-per"]


def test_other_tasks(encoder):
    answerer = make(encoder, "question_answerer", [[0]], [["a"]], max_length=12)
    assert (answerer.preprocessor.max_length, answerer.preprocessor.stride) == (12, 4)
    assert make(encoder, "question_answerer", [[0]], [["a"]]).preprocessor.max_length == 17  # the model's positions
    for task in ("masked_lm", "sentence_encoder", "cross_encoder"):
        assert make(encoder, task).preprocessor.max_length == 17


def test_a_file_is_trained_further(keras_file, encoder, tmp_path):
    assert make(keras_file, "classifier", ["x", "y"]).num_classes == 3
    with pytest.raises(ValueError, match="--max-length must be left out for a .keras file"):
        make(keras_file, "classifier", ["x", "y"], max_length=7)
    with pytest.raises(FileNotFoundError, match="`train`: no such file: .*absent.keras"):
        make(tmp_path / "absent.keras", "classifier", ["x", "y"])
    with pytest.raises(ValueError, match="must hold a BertMaskedLM. Received: a BertClassifier"):
        make(keras_file, "masked_lm")


def test_a_classifier_from_a_masked_language_model(encoder, keras_file, tmp_path):
    pretrained = make(encoder, "masked_lm", max_length=7)
    path = tmp_path / "model.keras"  # in a directory, as `train` writes it
    pretrained.save(path)
    words = ([["B-per", "O"], ["B-per"]],)
    for task, labels, texts in (
        ("classifier", (["x", "y"],), (TEXTS,)),
        ("token_classifier", words, ([["Ann", "saw"], ["Rome"]],)),
    ):
        model = make(tmp_path, task, *labels, texts=texts)
        assert model.preprocessor.max_length == 7
        for ours, theirs in zip(model.backbone.get_weights(), pretrained.backbone.get_weights(), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match="must hold a BertTokenClassifier. Received: a BertClassifier"):
        make(keras_file, "token_classifier", *words)


@pytest.mark.parametrize(("kind", "column"), [("one", [f"id{i}" for i in range(8)]), ("several", [["x"], ["y", "z"]])])
def test_a_column_of_values_that_all_differ_is_refused(encoder, kind, column):
    rows = TrainingRows((["a"] * len(column),), (column,)).split(0.25, seed=1)
    match = r"--label must be a column of classes .* Received: \d values, each of them once: .*--labels number"
    with pytest.raises(ValueError, match=match):
        new_task(str(encoder), "classifier", rows, Namespace(labels=kind, max_length=None, long_texts=None))


def test_one_class_is_refused(encoder):
    with pytest.raises(ValueError, match=r"`train`: --label must be a column of at least two classes.*\['x'\]"):
        make(encoder, "classifier", ["x", "x"])
