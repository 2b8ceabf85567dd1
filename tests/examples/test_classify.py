"""`examples/classify.py`: its smoke run, and how it reads a user's file."""

import sys

import pytest


@pytest.fixture(scope="module")
def classify(import_example):
    return import_example("classify")


@pytest.fixture
def arguments(classify, tmp_path, monkeypatch):
    """A function: command line -> what the script makes of it, with a file of two rows as data."""
    (tmp_path / "mail.csv").write_text(
        "body,answer,folder,spam,urgent,stars\nBuy now,No,spam; urgent,1,1,0.5\nHello,Hi,ham,0,0,4\n", encoding="utf-8"
    )

    def parse(*words):
        line = ["classify.py", "--weights", "bert", "--data", str(tmp_path / "mail.csv"), "--text-column", "body"]
        monkeypatch.setattr(sys, "argv", [*line, *words])
        return classify.parse_arguments()

    return parse


@pytest.mark.slow
def test_smoke(run_example_here):
    finished = run_example_here("classify", "--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "single_label_classification, 2 held-out rows: accuracy " in finished.stdout
    assert "'label': 'bad'" in finished.stdout or "'label': 'good'" in finished.stdout


@pytest.mark.parametrize(
    ("words", "texts", "labels"),
    [
        (["--label-column", "folder"], ["Buy now", "Hello"], ["spam; urgent", "ham"]),
        (["--label-column", "stars", "--labels", "number"], ["Buy now", "Hello"], [0.5, 4.0]),
        (["--label-column", "folder", "--labels", "several"], ["Buy now", "Hello"], [["spam", "urgent"], ["ham"]]),
        (
            ["--label-column", "spam", "urgent", "--labels", "several", "--pair-column", "answer"],
            [("Buy now", "No"), ("Hello", "Hi")],
            [["spam", "urgent"], []],
        ),
    ],
)
def test_reads_every_kind_of_label(classify, arguments, words, texts, labels):
    assert classify.read_rows(arguments(*words)) == (texts, labels)


def test_class_weights(classify):
    labels = ["ham", "ham", "ham", "spam"]
    assert classify.class_weights(["balanced"], labels) == {"ham": pytest.approx(2 / 3), "spam": 2.0}
    assert classify.class_weights(["spam=3", "a=b=0.5"], labels) == {"spam": 3.0, "a=b": 0.5}
    assert classify.class_weights(None, labels) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--labels", "several", "--class-weight", "balanced"], "--class-weight needs --labels one"),
        (["--label-column", "a", "b"], "more than one label column needs --labels several"),
    ],
)
def test_refuses(arguments, capsys, words, message):
    with pytest.raises(SystemExit):
        arguments(*words)
    assert message in capsys.readouterr().err


def test_needs_weights_and_data(run_example):
    finished = run_example("classify")
    assert finished.returncode == 2
    assert "give --weights and --data, or --smoke" in finished.stderr
