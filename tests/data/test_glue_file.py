import re

import pytest

from keras_bert_layers.data import read_glue

FILES = {
    "CoLA": 'gj04\t0\t*\tHim "ran.\ngj04\t1\t\tHe ran. \n',
    "MNLI": "index\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n0\tx\ta\tb\tneutral\tcontradiction\n",
    "MRPC": '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\t" a\tb\r\n0\t8\t9\tc\td\r\n',
    "QNLI": "index\tquestion\tsentence\tlabel\n0\ta?\tb\tentailment\n",
    "QQP": "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\ta?\tb?\t1\n",
    "RTE": "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tnot_entailment\n\n",
    "SST-2": "sentence\tlabel\nit 's\u2028good \t1\n",
    "STS-B": "index\tsentence1\tsentence2\tscore\n0\ta\tb\t3.250\n1\tc\td\t5.000\n",
    "WNLI": "index\tsentence1\tsentence2\tlabel\n0\ta\tb\t0\n",
}
EXPECTED = {
    "CoLA": (['Him "ran.', "He ran. "], [0, 1]),
    "MNLI": (["a"], ["b"], ["contradiction"]),
    "MRPC": (['" a', "c"], ["b", "d"], [1, 0]),
    "QNLI": (["a?"], ["b"], ["entailment"]),
    "QQP": (["a?"], ["b?"], [1]),
    "RTE": (["a"], ["b"], ["not_entailment"]),
    "SST-2": (["it 's\u2028good "], [1]),
    "STS-B": (["a", "c"], ["b", "d"], [3.25, 5.0]),
    "WNLI": (["a"], ["b"], [0]),
}


@pytest.mark.parametrize("task", FILES)
def test_every_task(write, task):
    columns = read_glue(write(FILES[task], "dev.tsv", compress=task == "QQP"), task)
    assert columns == EXPECTED[task]
    assert columns.names == (("first", "labels") if len(columns) == 2 else ("first", "second", "labels"))
    assert type(columns.labels[0]) is type(EXPECTED[task][-1][0])


def test_test_files_have_no_labels(write):
    assert read_glue(write("index\tsentence\n0\tHe ran.\n"), "CoLA", labels=False) == (["He ran."],)
    pairs = read_glue(write("index\tsentence1\tsentence2\n0\ta\tb\n"), "RTE", labels=False)
    assert pairs == (["a"], ["b"])
    assert pairs.names == ("first", "second")
    assert read_glue(write(FILES["STS-B"]), "STS-B", labels=False) == (["a", "c"], ["b", "d"])


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize(
    ("task", "content", "problem"),
    [
        ("CoLA", "index\tsentence\n0\tHe ran.\n", "no column named 'label'. The columns are ['index', 'sentence']."),
        ("RTE", "index\tsentence1\tsentence2\n0\ta\tb\n", "no column named 'label'. The columns are ['index', 's"),
        ("RTE", FILES["SST-2"], "no column named 'sentence1'. The columns are ['sentence', 'label']."),
    ],
)
def test_missing_column(write, task, content, problem, on_error):
    path = write(content, "test.tsv")
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 1: {problem}")) as error:
        read_glue(path, task, on_error=on_error)
    assert str(error.value).endswith("For a test file, which has no labels, set labels=False; otherwise check `task`.")


BAD = [
    ("RTE", "7\ta\tentailment", "3 cells where there are 4 columns. Only tabs separate cells."),
    ("RTE", "7\ta\t \tentailment", "column 'sentence2' is empty. Fill or remove the row."),
    ("RTE", "7\ta\tb\t1", "the label must be one of ['entailment', 'not_entailment']. Received: '1'."),
    ("SST-2", "good\t2", "the label must be one of ['0', '1']. Received: '2'."),
    ("STS-B", "7\ta\tb\t5.2", "the label must be a number from 0 to 5. Received: '5.2'."),
    ("STS-B", "7\ta\tb\tnan", "the label must be a number from 0 to 5. Received: 'nan'."),
    ("STS-B", "7\ta\tb\thigh", "the label must be a number from 0 to 5. Received: 'high'."),
    (
        "MNLI",
        "7\tx\ta\tb\tneutral\t-",
        "the label must be one of ['entailment', 'neutral', 'contradiction']. Received: '-'.",
    ),
    ("CoLA", "gj04\t1\t\t", "column 'sentence' is empty."),
    ("QQP", b"1\t2\t3\ta\xff\tb\t1", "byte 0xff is not UTF-8. Save the file as UTF-8."),
]


@pytest.mark.parametrize(("task", "line", "problem"), BAD)
def test_bad_row(write, task, line, problem):
    line = line.encode() if isinstance(line, str) else line
    good = FILES[task].rstrip("\n").encode()
    path = write(good + b"\n" + line + b"\n", "train.tsv")
    position = f"line {len(good.splitlines()) + 1}"
    with pytest.raises(ValueError, match=re.escape(f"{path}, {position}: {problem}")):
        read_glue(path, task)
    with pytest.warns(UserWarning, match="`read_glue`: left out 1 rows"):
        columns = read_glue(path, task, on_error="skip")
    assert columns == EXPECTED[task]
    assert columns.skipped[0].startswith(f"{path}, {position}: {problem}")


def test_no_rows(write):
    with pytest.raises(ValueError, match="no row to read."):
        read_glue(write("sentence\tlabel\n"), "SST-2")


def test_arguments(write):
    path = write(FILES["SST-2"])
    with pytest.raises(ValueError, match="`read_glue`: `task` must be one of .*'SST-2'.* Received: task='sst2'"):
        read_glue(path, "sst2")
    with pytest.raises(TypeError, match="`labels` must be True or False. Received: labels='label'"):
        read_glue(path, "SST-2", labels="label")
    with pytest.raises(ValueError, match="`read_glue`: `on_error` must be one of"):
        read_glue(path, "SST-2", on_error="drop")


REAL = {
    "SST-2": (67_349, 872, 1_821),
    "MRPC": (3_667, 408, 1_725),
    "CoLA": (8_551, 1_043, 1_063),
    "RTE": (2_490, 277, 3_000),
    "STS-B": (5_749, 1_500, 1_379),
}


@pytest.mark.parametrize("task", REAL)
def test_real_files(shared_data, task):
    train, dev, test = (shared_data / "glue" / task / f"{part}.tsv.gz" for part in ("train", "dev", "test"))
    num_rows = (
        read_glue(train, task).num_rows,
        read_glue(dev, task).num_rows,
        read_glue(test, task, labels=False).num_rows,
    )
    assert num_rows == REAL[task]
    with pytest.raises(ValueError, match="test.tsv.gz, line 1: no column named"):
        read_glue(test, task)
