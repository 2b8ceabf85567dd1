"""Rows as `tf.train.Example`s in TFRecord files, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.token_rows import TokenRows

SEQUENCES = ("token_ids", "segment_ids", "padding_mask")


def write_records(path: Path, rows: TokenRows, numbers: np.ndarray, *, compression: str) -> None:
    """Writes rows to a TFRecord file, one `tf.train.Example` of lists of integers a row.

    Args:
        path: a new file.
        rows: the rows; their mask is `text_numbers`.
        numbers: int64 `(rows,)`, what is read as `"row"`.
        compression: `""` or `"GZIP"`.
    """
    with tf.io.TFRecordWriter(str(path), compression) as file:
        for example in _examples(rows, numbers):
            # Without it, the order of the features is not the same in every process.
            file.write(example.SerializeToString(deterministic=True))


def read_records(paths: tf.Tensor, *, compression: str, has_labels: bool) -> tf.data.Dataset:
    """The rows of files in their order, as `RowSource.dataset` has them."""
    features = {name: tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True) for name in SEQUENCES}
    features |= {name: tf.io.FixedLenFeature([], tf.int64) for name in (("label", "row") if has_labels else ("row",))}

    def parsed(example: tf.Tensor) -> dict[str, tf.Tensor]:
        row = tf.io.parse_single_example(example, features)
        return {name: value if name == "row" else tf.cast(value, tf.int32) for name, value in row.items()}

    # Not in parallel: that takes more time than to parse a row.
    return tf.data.TFRecordDataset(paths, compression).map(parsed)


def _examples(rows: TokenRows, numbers: np.ndarray) -> Iterator[tf.train.Example]:
    values = rows.token_ids.tolist(), rows.segment_ids.tolist(), rows.text_numbers.tolist()
    bounds = rows.bounds.tolist()
    for index, number in enumerate(numbers.tolist()):
        example = tf.train.Example()
        feature = example.features.feature
        for name, tokens in zip(SEQUENCES, values, strict=True):
            feature[name].int64_list.value.extend(tokens[bounds[index] : bounds[index + 1]])
        if rows.labels is not None:
            feature["label"].int64_list.value.append(int(rows.labels[index]))
        feature["row"].int64_list.value.append(number)
        yield example
