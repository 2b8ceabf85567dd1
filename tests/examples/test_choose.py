"""`examples/choose.py`: its smoke run, and how it reads a user's file."""

import pytest


@pytest.mark.slow
def test_smoke(run_example_here):
    finished = run_example_here("choose", "--smoke")
    assert finished.returncode == 0, finished.stderr
    assert "accuracy on 4 held-out rows: " in finished.stdout
    assert finished.stdout.count(" ... ") == 3


def test_needs_weights_and_data(run_example):
    finished = run_example("choose", "--codah", "codah.tsv")
    assert finished.returncode == 2
    assert "give --weights and --codah or --swag, or --smoke" in finished.stderr


def test_reads_codah(import_example, tmp_path):
    path = tmp_path / "codah.tsv"
    path.write_text("o\tIt is tired. It\tsleeps.\tdrives.\t0\n\tShe\tsings.\teats.\tflies.\t\t2\n", encoding="utf-8")
    choose = import_example("choose")
    assert choose.read_codah(path) == [
        ("It is tired. It", ["sleeps.", "drives."], 0),
        ("She", ["sings.", "eats.", "flies."], 2),
    ]
    path.write_text("o\tShe\tsings.\teats.\t2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 1 must hold two or more choices and the index of one of them"):
        choose.read_codah(path)


def test_reads_swag(import_example, tmp_path):
    path = tmp_path / "swag.csv"
    path.write_text(
        'video,sent1,sent2,ending0,ending1,label\nv,"A cat, two dogs.",They,sit.,sing.,1\n', encoding="utf-8"
    )
    assert import_example("choose").read_swag(path) == [("A cat, two dogs.", ["They sit.", "They sing."], 1)]
