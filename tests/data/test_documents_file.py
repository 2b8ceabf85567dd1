import re

import pytest

from keras_bert_layers.data import read_documents


def test_empty_lines_separate_documents(write):
    path = write("\ufeff\nOne. \r\nTwo\u2028still.\r\n\r\n \t\r\nThree.", "corpus.txt", compress=True)
    columns = read_documents(path)
    assert columns == ([["One.", "Two\u2028still."], ["Three."]],)
    assert columns.documents == columns[0]


def test_bad_line_leaves_out_its_document(write):
    path = write(b"One.\n\nTwo.\nThr\xe9e.\nFour.\n\nFive.\n", "corpus.txt")
    problem = f"{path}, line 4: byte 0xe9 is not UTF-8. Save the file as UTF-8."
    with pytest.raises(ValueError, match=re.escape(problem)):
        read_documents(path)
    with pytest.warns(UserWarning, match="`read_documents`: left out 1 rows"):
        columns = read_documents(path, on_error="skip")
    assert columns.documents == [["One."], ["Five."]]
    assert columns.skipped == (problem,)


def test_no_document(write):
    with pytest.raises(ValueError, match="corpus.txt: no document to read."):
        read_documents(write("\n \n", "corpus.txt"))


def test_on_error(write):
    with pytest.raises(ValueError, match="`read_documents`: `on_error` must be one of"):
        read_documents(write("a"), on_error="drop")


def test_real_files(shared_data):
    documents = read_documents(shared_data / "corpus" / "wikipedia-2006-articles.txt.gz").documents
    assert len(documents) == 2000
    assert read_documents(shared_data / "corpus" / "sample_text.txt").num_rows > 1
