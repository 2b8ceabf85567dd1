"""The command `shards`: its files, its output and its errors."""

import pytest

DOCUMENTS = b"a good film\nbad night, good night\n\nunhappy\nfilm\n\na b\xffd film\n\n"


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes(DOCUMENTS)
    return path


def test_shards(run, classifier, corpus, tmp_path, capsys):
    import keras_bert_layers as kbl

    to = tmp_path / "shards"
    words = ["shards", "--tokenizer", classifier, "--rule", "next-sentence", "--max-length", 16, "--duplicates", 2]
    words += ["--separated-by", "blank-lines", "--skip-bad-lines", "--gzip", "--to", to, corpus]
    assert run(*words) == 0
    printed = capsys.readouterr().out.splitlines()
    shards = kbl.data.TokenShards(to, kbl.load_tokenizer(classifier))
    assert shards.rule == kbl.preprocessing.NextSentence()
    assert (shards.max_length, shards.num_duplicates) == (16, 2)
    assert len(list(shards.dataset(1))) == shards.num_rows[1] > 1
    assert printed[0].startswith(f"{to}: {sum(shards.num_rows)} rows in 2 shards, of 2 documents with ")
    assert printed[1] == (
        f"left out 1 documents; the first: {corpus}, line 7: byte 0xff is not UTF-8. Save the file as UTF-8."
    )


def test_errors(run, classifier, corpus, tmp_path, error_line):
    words = ["shards", corpus, "--tokenizer", classifier, "--rule", "full-sentences", "--to", tmp_path / "shards"]
    assert run(*words) == 2
    assert "`separated_by` must be 'lines' or 'blank_lines'" in error_line()
    assert run(*words, "--separated-by", "lines") == 2
    assert "corpus.txt, line 7: byte 0xff" in error_line()
