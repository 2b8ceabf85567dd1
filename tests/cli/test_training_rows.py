"""Rows to train on, from files of every kind."""

import gzip
import json
from argparse import Namespace
from pathlib import Path

import pytest

from keras_bert_layers.cli.training_rows import TrainingRows, read_rows, read_table, task_of_file

SQUAD = {
    "id": "q1",
    "question": "Who sleeps?",
    "answers": [{"text": "A cat", "answer_start": 0}],
}


def read(path, task, content, **options):
    path.write_text(content, encoding="utf-8")
    options = {"text": "text", "pair": None, "label": "label", "labels": "one", "separator": ";"} | options
    return read_rows(path, task, Namespace(**options))


def test_tables(tmp_path):
    path, content = tmp_path / "a.csv", "text,pair,label\na,b,0.5\nc,d,1\n"
    assert read(path, "classifier", content) == ((["a", "c"],), (["0.5", "1"],))
    assert read(path, "classifier", content, pair="pair", labels="number") == ((["a", "c"], ["b", "d"]), ([0.5, 1.0],))
    assert read(path, "cross_encoder", content, pair="pair").y == [0.5, 1.0]
    rows = read(path, "sentence_encoder", content, pair="pair", label=None)
    assert (rows.x, rows.y) == ((["a", "c"], ["b", "d"]), None)
    assert read(path, "masked_lm", content) == ((["a", "c"],), ())
    several = read(path, "classifier", "text,label\na,x; y\nb,x\n", labels="several")
    assert several.y == [["x", "y"], ["x"]]


def test_files_of_their_own_form(tmp_path):
    sentences = read(tmp_path / "a.conll", "token_classifier", "Ann B-per\nsaw O\n\nRome B-loc\n")
    assert (sentences.x, sentences.y) == ([["Ann", "saw"], ["Rome"]], [["B-per", "O"], ["B-loc"]])
    squad = {"data": [{"title": "", "paragraphs": [{"context": "A cat sleeps.", "qas": [SQUAD]}]}]}
    answers = read(tmp_path / "a.json", "question_answerer", json.dumps(squad))
    assert answers == ((["Who sleeps?"], ["A cat sleeps."]), ([[0]], [["A cat"]]))
    assert read(tmp_path / "a.txt", "masked_lm", "a film\n\n b \n").x == ["a film", "b"]


def test_split_is_drawn_once_for_a_seed():
    rows = TrainingRows((list(range(20)), list(range(20, 40))), ([str(row) for row in range(20)],))
    training, held_out = rows.split(0.25, 3)
    assert (training.num_rows, held_out.num_rows) == (15, 5)
    assert sorted(training.texts[0] + held_out.texts[0]) == list(range(20))
    assert [str(row) for row in held_out.texts[0]] == held_out.y
    assert rows.split(0.25, 3)[1] == held_out != rows.split(0.25, 4)[1]
    assert rows.split(0.001, 3)[1].num_rows == 1


TAGGED = "-DOCSTART- -X- O\n\nAnn NNP B-per\nsaw VBD O\n\nRome NNP I-loc\n"


@pytest.mark.parametrize(
    ("name", "content", "task", "reason"),
    [
        ("a.CSV.gz", "", "classifier", "name ends in .csv"),
        ("wikigold.conll.txt.gz", "", "token_classifier", "name ends in .conll.txt"),
        ("a.txt", TAGGED, "token_classifier", "lines are words with tags"),
        ("a.txt.gz", TAGGED.replace(" ", "\t"), "token_classifier", "lines are words with tags"),
        ("a.txt", "It is O\n\nA blood group is B\n", "masked_lm", "name ends in .txt"),
        ("a.txt", "Blood O\n", "masked_lm", "name ends in .txt"),
        ("a.txt", "", "masked_lm", "name ends in .txt"),
        ("my.notes.txt", "O\nO\n", "masked_lm", "name ends in .txt"),
    ],
)
def test_the_task_of_a_file(tmp_path, name, content, task, reason):
    found, why = task_of_file(write(tmp_path / name, content))
    assert (found, why.partition("'s ")[2]) == (task, reason)


def test_refusals(tmp_path):
    with pytest.raises(FileNotFoundError, match="`train`: no such file"):
        task_of_file(tmp_path / "absent.txt")
    with pytest.raises(ValueError, match="`train`: --task must be given for a file whose name ends in '.xml'"):
        task_of_file(Path("a.xml"))
    with pytest.raises(ValueError, match="--label must name the column of labels for --task classifier"):
        read(tmp_path / "a.csv", "classifier", "text\na\n", label=None)
    with pytest.raises(ValueError, match="--pair must name the column of second texts for --task cross_encoder"):
        read(tmp_path / "a.csv", "cross_encoder", "text\na\n")
    with pytest.raises(ValueError, match="every label of .* must be a number. Received: 'x'"):
        read(tmp_path / "a.csv", "classifier", "text,label\na,x\n", labels="number")
    with pytest.raises(ValueError, match="must hold at least one line"):
        read(tmp_path / "a.txt", "masked_lm", "\n")
    with pytest.raises(FileNotFoundError, match="`train`: no such file"):
        read_rows(tmp_path / "absent.csv", "classifier", Namespace())


def write(path, content):
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'id,text,label\n1,"A film, a ""good"" one\nof two lines",x\n2,b,y\n'),
        ("a.csv.gz", '\ufefftext,label\r\n"A film, a ""good"" one\nof two lines",x\r\nb,y\r\n'),
        ("a.csv", '\ufefftext;label\r\n"A film, a ""good"" one\nof two lines";x\r\nb;y\r\n'),
        ("a.tsv", 'label\ttext\nx\t"A film, a ""good"" one\nof two lines"\ny\tb\n'),
        ("a.jsonl", '{"text": "A film, a \\"good\\" one\\nof two lines", "label": "x"}\n{"label": "y", "text": "b"}\n'),
    ],
)
def test_columns(tmp_path, name, content):
    texts, labels = read_table(write(tmp_path / name, content), ["text", "label"])
    assert texts == ['A film, a "good" one\nof two lines', "b"]
    assert labels == ["x", "y"]


UNCLOSED = ['"A joy to watch', "Dull.", 'A 12" record', 'At 12"', "Fine."]


@pytest.mark.parametrize(
    "texts", [UNCLOSED, [*UNCLOSED[:2], *UNCLOSED[3:]], UNCLOSED[:2], ['"A joy"', '"Oh", he said']]
)
@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_marks_that_enclose_no_cell_of_a_tsv_are_text(tmp_path, texts, name):
    for form in ("{0}\t{1}\n", "{1}\t{0}\n"):
        lines = [form.format("label", "text"), *(form.format("x", text) for text in texts)]
        path = write(tmp_path / name, "".join(lines))
        assert read_table(path, ["text", "label"]) == [texts, ["x"] * len(texts)]


def test_quoted_cells_of_a_tsv(tmp_path):
    path = write(tmp_path / "a.tsv", 'text\tlabel\n"a\nb\nc"\tx\n"d\te"\ty\n')
    assert read_table(path, ["text", "label"]) == [["a\nb\nc", "d\te"], ["x", "y"]]
    path = write(tmp_path / "a.tsv", 'text\tlabel\n"a"\tx\n"say ""d"""\ty\n')
    assert read_table(path, ["text", "label"]) == [["a", 'say "d"'], ["x", "y"]]


@pytest.mark.parametrize("texts", [UNCLOSED, ["Fine.", '"A joy to watch', "Dull."]])
def test_marks_that_end_no_cell_of_a_csv(tmp_path, texts):
    lines = ["label,text\n", *(f"x,{text}\n" for text in texts)]
    match = rf"a\.csv, line {2 + texts.index(UNCLOSED[0])}: .* must end with one"
    with pytest.raises(ValueError, match=match):
        read_table(write(tmp_path / "a.csv", "".join(lines)), ["text", "label"])


def test_a_cell_longer_than_pythons_limit(tmp_path):
    assert read_table(write(tmp_path / "a.csv", "text\n" + "a" * 200_000), ["text"]) == [["a" * 200_000]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "txt,label\na,b\n", "must have a column 'text'. The columns are: txt, label"),
        ("a.csv", "text,label\na\n", "line 2: column 'label' is empty"),
        (
            "a.csv",
            "text,label\na,b,c\n",
            "line 2: 1 cell more than columns. Quote cells that contain the separator ','",
        ),
        (
            "a.csv",
            "text;label\na;b;c\n",
            "line 2: 1 cell more than columns. Quote cells that contain the separator ';'",
        ),
        ("a.csv", "text,label\na, \n", "line 2: column 'label' is empty"),
        ("a.csv", "text,label\n", "must have at least one row"),
        ("a.jsonl", '{"text": \n', "line 1 must be JSON"),
        ("a.jsonl", "[1]\n", "line 1 must be a JSON object"),
    ],
)
def test_table_refusals(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=f"`train`: .*{name}.*{message}"):
        read_table(write(tmp_path / name, content), ["text", "label"])


def test_bytes_that_are_not_utf8(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"text\na\nb\xff\n")
    with pytest.raises(ValueError, match="line 3: byte 0xff is not UTF-8"):
        read_table(tmp_path / "a.csv", ["text"])


def test_labels_lose_the_blanks_around_them(tmp_path):
    rows = read(tmp_path / "a.csv", "classifier", "text,label\na,bad\nb,bad \nc, good\n")
    assert rows.labels == (["bad", "bad", "good"],)


def test_no_label_among_several(tmp_path):
    rows = read(tmp_path / "a.csv", "classifier", "text,label\na,\nb,x; y\n", labels="several")
    assert rows.labels == ([[], ["x", "y"]],)


def test_the_columns_are_listed_where_none_is_chosen(tmp_path):
    with pytest.raises(ValueError, match=r"--label must name .* The columns of .*a\.csv are: review, stars\."):
        read(tmp_path / "a.csv", "classifier", "review,stars\na,1\n", label=None)
