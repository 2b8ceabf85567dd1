"""`predict`: rows from arguments, files and stdin, and answers as JSON lines."""

import io
import json
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("loaded_once")

TEXTS = ["a good film", "bad, bad night", "good"]
QUESTIONS = [("a good ?", "a bad film"), ("night", "good, good films")]


def with_head(huggingface, path, architecture, head):
    tensors = huggingface.random_tensors(prefix="bert.")
    rng = np.random.default_rng(3)
    for name, shape in head.items():
        tensors[name] = rng.normal(0, 0.3, shape).astype("float32")
    return huggingface.write(path, config={**huggingface.CONFIG, "architectures": [architecture]}, tensors=tensors)


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_three_kinds_of_model_give_the_same_lines(run, classifier, keras_file, saved_model, capsys):
    shown = []
    for model in (classifier, keras_file, saved_model):
        assert run("predict", model, *TEXTS) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        shown.append([json.loads(line) for line in captured.out.splitlines()])
    assert [answer["label"] for answer in shown[0]] == [answer["label"] for answer in shown[1]]
    for others in shown[1:]:
        for answer, other in zip(shown[0], others, strict=True):
            assert answer.keys() == other.keys()
            # Another graph may add in another order.
            np.testing.assert_allclose(answer["probabilities"], other["probabilities"], atol=1e-6)
    assert set(shown[0][0]) == {"label", "probabilities"}


def test_a_saved_model_without_tensorflow_text(run, error_line, tmp_path, monkeypatch):
    (tmp_path / "saved_model.pb").touch()
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    assert run("predict", tmp_path, "a text") == 2
    found = error_line()
    assert f"`predict`: {tmp_path} is a SavedModel of strings, which needs tensorflow-text. It is not" in found
    assert "Give the checkpoint or the `.keras` file that it was made from." in found


def test_order_and_batches(run, answers, saved_model, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS * 3) + "\n", encoding="utf-8")
    assert run("predict", saved_model, "--file", tmp_path / "texts.txt", "--batch-size", "2") == 0
    found = answers()
    assert len(found) == 9
    assert run("predict", saved_model, *TEXTS) == 0
    for answer, expected in zip(found, answers() * 3, strict=True):
        np.testing.assert_allclose(answer["probabilities"], expected["probabilities"], atol=1e-6)


def test_stdin_is_answered_while_it_comes(run, answers, saved_model, capsys, monkeypatch):
    seen = []

    class Lines(io.RawIOBase):
        """Yields one line at a time, and records how many answers were there before."""

        def readable(self):
            return True

        def readinto(self, buffer):
            seen.append(capsys.readouterr().out.count("\n"))
            if len(seen) > 4:
                return 0
            buffer[:7] = b"a good\n"
            return 7

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Lines(), 7)))
    assert run("predict", saved_model, "-", "--batch-size", "2") == 0
    assert sum(seen) + len(answers()) == 4
    assert seen[2] + seen[3] == 2, "two answers before the third line"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"good\nb\xffd\n", "line 2 of stdin: byte 0xff is not UTF-8"),
        (b'{"text": 3}\n', "text in line 1 of stdin must be a string. Received: 3"),
        (b'{"text": "a"}\n{"txt": "a"}\n', "line 2 of stdin must be a JSON object with text"),
        (b"good\n", "line 1 of stdin must be JSON"),
    ],
)
def test_bad_lines_are_named(run, error_line, saved_model, monkeypatch, content, message):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    form = "lines" if b"\xff" in content else "jsonl"
    assert run("predict", saved_model, "--format", form) == 2
    assert f"error: `predict`: {message}" in error_line()


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_questions(run, error_line, answers, huggingface, tmp_path):
    head = {"qa_outputs.weight": (2, 15), "qa_outputs.bias": (2,)}
    model = with_head(huggingface, tmp_path / "qa", "BertForQuestionAnswering", head)
    assert run("predict", model, *QUESTIONS[0], *QUESTIONS[1]) == 0
    expected = answers()
    assert [set(answer) for answer in expected] == [{"answer", "score", "start", "end", "no_answer_probability"}] * 2
    (tmp_path / "q.tsv").write_text("".join(f"{q}\t{c}\n" for q, c in QUESTIONS))
    (tmp_path / "q.jsonl").write_text(
        "".join(json.dumps({"id": 1, "context": c, "question": q}) + "\n" for q, c in QUESTIONS)
    )
    for name in ("q.tsv", "q.jsonl"):
        assert run("predict", model, "--file", tmp_path / name) == 0
        assert answers() == expected
    assert run("predict", model, "one") == 2
    assert "TEXT must come as question and context in turn" in error_line()
    (tmp_path / "q.tsv").write_text("a film\n")
    assert run("predict", model, "--file", tmp_path / "q.tsv") == 2
    assert "must hold question and context. Received: 1 column(s)" in error_line()
    assert run("predict", model, "good " * 30, "a film") == 2
    assert "row 1 of the arguments: " in error_line()


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_choices(run, answers, huggingface, tmp_path):
    head = {"classifier.weight": (1, 15), "classifier.bias": (1,)}
    model = with_head(huggingface, tmp_path / "choice", "BertForMultipleChoice", head)
    rows = [("a film", ["good", "bad"]), ("night", ["good", "bad", "unhappy"])]
    (tmp_path / "c.tsv").write_text("".join("\t".join([prompt, *choices]) + "\n" for prompt, choices in rows))
    assert run("predict", model, "--file", tmp_path / "c.tsv") == 0
    found = answers()
    assert [len(answer["probabilities"]) for answer in found] == [2, 3]
    assert run("predict", model, "a film", "good", "bad") == 0
    assert answers()[0]["choice"] == found[0]["choice"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "--batch-size", "0"], "`--batch-size` must be at least 1"),
        (["a", "--file", "b"], "not from both"),
        (["--file", "absent.txt"], "no such file: absent.txt"),
        (["a", "--task", "masked_lm"], "--task is for checkpoints"),
    ],
)
def test_refuses(run, error_line, saved_model, words, message):
    assert run("predict", saved_model, *words) == 2
    assert message in error_line()


def test_refuses_what_answers_nothing(run, error_line, encoder):
    assert run("predict", encoder, "a") == 2
    assert "MODEL must have a task and a tokenizer" in error_line()


def test_a_damaged_saved_model(run, error_line, tmp_path):
    pytest.importorskip("tensorflow_text")
    (tmp_path / "saved_model.pb").write_bytes(b"no program")
    assert run("predict", tmp_path, "a") == 2
    assert "is not a complete SavedModel" in error_line()


def test_closed_pipe_ends_quietly(run, saved_model, capsys, monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    assert run("predict", saved_model, "a") == 141
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "words",
    [
        ["--batch-size", "8", "a good film", "bad"],
        ["a good film", "--batch-size", "8", "bad"],
        ["a good film", "bad", "--batch-size", "8"],
    ],
)
def test_options_between_texts(run, answers, saved_model, words):
    assert run("predict", saved_model, *words) == 0
    assert len(answers()) == 2


def test_words_after_two_dashes(run, answers, saved_model):
    assert run("predict", saved_model, "--batch-size", "8", "--", "-a", "--b") == 0
    assert len(answers()) == 2


def test_an_unknown_option_is_not_a_text(run, error_line, saved_model):
    with pytest.raises(SystemExit):
        run("predict", saved_model, "--bach-size", "8", "a")
    assert "unrecognized arguments: --bach-size" in error_line()


@pytest.mark.parametrize("words", [["texts.csv"], ["--file", "texts.csv"]], ids=["text", "file"])
def test_warns_of_a_file_that_is_read_otherwise_than_expected(run, saved_model, capsys, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.csv").write_text("text,label\na,x\n")
    assert run("predict", saved_model, *words) == 0
    expected = {
        1: "'texts.csv' is taken as a text, and a file",
        2: "each line of texts.csv, the first too, is taken as",
    }
    assert expected[len(words)] in capsys.readouterr().err


def test_a_column_of_a_table(run, answers, saved_model, tmp_path):
    (tmp_path / "texts.csv").write_text("id,review\n" + "".join(f'1,"{text}"\n' for text in TEXTS))
    assert run("predict", saved_model, "--file", tmp_path / "texts.csv", "--text", "review") == 0
    found = answers()
    assert run("predict", saved_model, *TEXTS) == 0
    assert found == answers()
