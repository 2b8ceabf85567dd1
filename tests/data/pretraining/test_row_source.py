"""Rows of blocks as a dataset of single rows, and as records."""

import logging

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.data.pretraining.row_source import records_of_blocks, rows_of_bytes
from keras_bert_layers.preprocessing.rows.token_rows import TokenRows


class Rule:
    def __init__(self, has_labels):
        self.has_labels = has_labels


def rows_of_blocks(*arguments):
    return records_of_blocks(*arguments).map(rows_of_bytes)


def blocks(epoch, labels):
    ids = np.arange(5, dtype=np.int32) + 10 * epoch
    segments, texts = np.array([0, 1, 0, 0, 1], np.int8), np.array([1, 1, 1, 2, 2], np.int32)
    rows = TokenRows(ids, segments, texts, np.array([0, 2, 5]), np.array([1, 0], np.int32) if labels else None)
    yield rows, np.array([7, 8])
    yield rows.take([1]), np.array([2**40])


@pytest.mark.parametrize("has_labels", [False, True])
def test_rows_of_blocks(has_labels, rows_of):
    found = rows_of(rows_of_blocks(lambda epoch: blocks(epoch, has_labels), Rule(has_labels), 3))
    first = {"token_ids": [30, 31], "segment_ids": [0, 1], "padding_mask": [1, 1], "row": 7}
    second = {"token_ids": [32, 33, 34], "segment_ids": [0, 0, 1], "padding_mask": [1, 2, 2]}
    expected = [first, {**second, "row": 8}, {**second, "row": 2**40}]
    if has_labels:
        expected = [{**row, "label": label} for row, label in zip(expected, [1, 0, 0], strict=True)]
    assert found == expected


def test_a_batch_of_records():
    records = records_of_blocks(lambda epoch: blocks(epoch, True), Rule(has_labels=True), 3)
    (found,) = records.batch(4).map(rows_of_bytes)
    assert found["token_ids"].to_list() == [[30, 31], [32, 33, 34], [32, 33, 34]]
    assert found["padding_mask"].to_list() == [[1, 1], [1, 2, 2], [1, 2, 2]]
    assert found["label"].numpy().tolist() == [1, 0, 0]


def test_no_blocks(rows_of):
    assert rows_of(rows_of_blocks(lambda epoch: [], Rule(has_labels=False), 0)) == []


def test_autograph_reads_it_without_a_warning(caplog):
    """`fit` calls it while TensorFlow traces, with AutoGraph on."""

    def of_epoch(epoch):
        return rows_of_blocks(lambda epoch: blocks(epoch, False), Rule(has_labels=False), epoch)

    logging.getLogger("tensorflow").propagate, before = True, logging.getLogger("tensorflow").propagate
    try:
        rows = list(tf.data.Dataset.range(1).flat_map(of_epoch))
    finally:
        logging.getLogger("tensorflow").propagate = before
    assert len(rows) == 3
    assert "AutoGraph" not in caplog.text
