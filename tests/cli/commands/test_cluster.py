"""`cluster`: what it prints, its files, and errors."""

import csv
import sys

import pytest

pytest.importorskip("sklearn")
pytestmark = pytest.mark.usefixtures("traces_nothing")


@pytest.fixture(autouse=True)
def one_thread():
    """k-means of few rows is faster so, above all where other programs run."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    rows = [*(["a good film"] * 5), "", *(["bad night"] * 4)]
    path.write_text("".join(f"{row}\n" for row in ["id,review", *(f"{i},{row}" for i, row in enumerate(rows))]))
    return path


def test_files(run, encoder, table, tmp_path, capsys):
    words = ["cluster", table, "--text", "review", "--model", encoder, "--clusters", 2]
    assert run(*words, "--to", tmp_path / "out.csv", "--picture", tmp_path / "out.html") == 0
    assert capsys.readouterr().out == (
        "2 clusters of 9 rows, as asked\n  0         5  film, good: a good film\n  1         4  bad, night: bad night\n"
    )
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["row", "cluster", "words", "text"]
    assert rows[5:7] == [["5", "0", "film, good", "a good film"], ["7", "1", "bad, night", "bad night"]]
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert page.count("0 film</text>") == page.count("0: film, good</text>") == 1, "its label, and the legend"
    assert "9 of 9 texts, and the center of each cluster" in page
    assert run(*words) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--clusters", "10"], "rows.csv must have at least 10 different texts. Found: 2."),
        ([], "rows.csv must have at least 3 different texts. Found: 2."),
        (["--clusters", "1"], "`cluster`: `--clusters` must be"),
        (["--picture", "out.png"], "`cluster`: `--picture` must be a file that ends in .html"),
        (["--text", "title"], "must have a column 'title'"),
    ],
)
def test_errors(run, encoder, table, error_line, words, message):
    assert run("cluster", table, "--text", "review", "--model", encoder, *words) == 2
    assert message in error_line()


def test_scikit_learn_is_missing(run, table, error_line, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert run("cluster", table, "--model", "any") == 2
    assert "`cluster` needs scikit-learn, which is not installed here. Install it with `pip install" in error_line()
