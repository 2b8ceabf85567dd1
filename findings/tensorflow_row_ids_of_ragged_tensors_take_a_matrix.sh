#!/usr/bin/env bash
# TensorFlow 2.21.0: the row ids of a ragged tensor take the memory of a matrix as wide as its longest row.
#
# One would think that `RaggedTensor.value_rowids()` takes one number per value, as its result does: ragged tensors are
# there for rows of very different lengths. But it repeats each row's number by a matrix of rows x longest row and a mask
# over it, and so do `tf.repeat` with different counts and the reductions of ragged tensors that are built on them, such
# as `tf.strings.reduce_join`. Tokens of 6,000 short texts and one of 6,000 words are 12,000 values; their row ids take
# hundreds of MB for a moment. A batch of documents, of which one is long, is just that. A scatter of ones at
# `row_splits` and a cumulative sum give the same ids in linear memory.
#
# Seen: "row ids 328 MB more, by a cumulative sum 0 MB more", give or take a few.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/environment"
"$folder/environment/bin/python" -m pip install --quiet tensorflow==2.21.0
cat >"$folder/program.py" <<'END'
import numpy as np
import tensorflow as tf

NUM_ROWS = LONGEST = 6000


def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def ids_by_sum(splits):
    begun = tf.scatter_nd(splits[1:-1, None], tf.ones_like(splits[1:-1]), [splits[-1] + 1])
    return tf.cumsum(begun)[:-1]


lengths = np.ones(NUM_ROWS, np.int64)
lengths[-1] = LONGEST
splits = tf.constant(np.concatenate([[0], np.cumsum(lengths)]))
ragged = tf.RaggedTensor.from_row_splits(tf.range(splits[-1]), splits, validate=False)
small = tf.RaggedTensor.from_row_splits([1, 2], tf.constant([0, 1, 2], tf.int64), validate=False)
assert ids_by_sum(small.row_splits).numpy().tolist() == small.value_rowids().numpy().tolist() == [0, 1]

before = peak()
by_sum = ids_by_sum(ragged.row_splits).numpy()
after_sum = peak()
by_method = ragged.value_rowids().numpy()
after_method = peak()
print(f"row ids {after_method - after_sum:.0f} MB more, by a cumulative sum {after_sum - before:.0f} MB more")
assert (by_sum == by_method).all(), "the ids are equal"
assert after_sum - before < 20, "linear in the values"
assert after_method - after_sum > NUM_ROWS * LONGEST * 4 / 2**20, "more than a matrix of rows x longest row"
END
TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES= "$folder/environment/bin/python" "$folder/program.py"
