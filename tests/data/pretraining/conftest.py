"""Documents in files of every format, and a simple rule for rows."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from keras_bert_layers.preprocessing.rows.token_rows import TokenRows

# Words of the vocabulary of tests/conftest.py.
DOCUMENTS = [
    ["a good film", "bad night , good night"],
    ["unhappy ?"],
    ["good films !", "a night", "a bad , bad film ."],
    ["night"],
    ["a a a a a a a a a a a a", "un"],
]


@dataclass(frozen=True)
class DocumentRows:
    """A row is a document, cut, with its sentences as texts; its label is random."""

    first_id: int = 2

    has_labels: ClassVar[bool] = True
    is_packed: ClassVar[bool] = True

    def rows(self, documents, tokenizer, *, max_length, seed):
        ids, segments, texts = [], [], []
        for start, stop in zip(documents.document_bounds, documents.document_bounds[1:], strict=False):
            bounds = documents.sentence_bounds[start : stop + 1]
            numbers = np.repeat(np.arange(stop - start) + 1, np.diff(bounds))[: max_length - 1]
            ids.append([self.first_id, *documents.ids[bounds[0] : bounds[-1]][: max_length - 1]])
            segments.append([0, *(numbers > 1)])
            texts.append([1, *numbers])
        labels = np.random.default_rng(seed).integers(0, 2, len(ids))
        splits = np.concatenate([[0], np.cumsum([len(row) for row in ids])])
        flat = [np.concatenate(rows).astype(kind) for rows, kind in ((ids, "int32"), (segments, "int8"))]
        return TokenRows(*flat, np.concatenate(texts).astype("int32"), splits, labels.astype("int32"))


@pytest.fixture(scope="session")
def rule():
    return DocumentRows()


@pytest.fixture(scope="session")
def documents():
    return DOCUMENTS


@pytest.fixture
def blank_lines(write):
    """A file of the documents, with one sentence per line and blank lines between documents."""

    def blank_lines(name="corpus.txt", documents=DOCUMENTS, **options):
        return write("\n\n".join("\n".join(document) for document in documents) + "\n", name, **options)

    return blank_lines


@pytest.fixture
def json_lines(write):
    """A file of the documents, with one JSON object per line."""

    def json_lines(name="corpus.jsonl", documents=DOCUMENTS, field="text", **options):
        lines = [json.dumps({"id": 1, field: "\n".join(document)}) for document in documents]
        return write("\n".join(lines), name, **options)

    return json_lines


@pytest.fixture
def parquet(tmp_path):
    """A Parquet file of texts."""
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow, from the extra `parquet`")
    from pyarrow import parquet as library

    def parquet(texts, name="corpus.parquet", field="text"):
        path = tmp_path / name
        library.write_table(pyarrow.table({"id": list(range(len(texts))), field: texts}), path, row_group_size=2)
        return path

    return parquet


@pytest.fixture(scope="session")
def rows_of():
    """A function that gives all rows of a dataset as lists."""

    def rows_of(dataset):
        return [{name: value.tolist() for name, value in row.items()} for row in dataset.as_numpy_iterator()]

    return rows_of
