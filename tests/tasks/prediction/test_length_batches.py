import itertools

import numpy as np
import pytest

from keras_bert_layers.tasks.feeding.columns import stacked
from keras_bert_layers.tasks.prediction import length_batches
from keras_bert_layers.tasks.prediction.length_batches import LengthBatches, plan

LENGTHS = np.array([3, 9, 2, 5, 9, 2, 7, 2, 2, 4, 3])


class Made:
    """Stands in for a preprocessor: its padding and maximum length."""

    def __init__(self, padding="longest", max_length=10):
        self.padding, self.max_length = padding, max_length


class Steps:
    """Records the shapes of the batches and the reported progress."""

    def __init__(self):
        self.shapes, self.share, self.begun = [], 0.0, 0

    def begin_step(self):
        self.begun += 1

    def end_step(self, outputs, share):
        assert self.begun == len(self.shapes)
        self.share += share

    def __call__(self, ids):
        self.shapes.append(ids["token_ids"].shape)
        return {"sum": ids["token_ids"].sum(axis=1), "tokens": ids["token_ids"].astype("float32")}


def block():
    mask = (np.arange(10) < LENGTHS[:, None]).astype("int32")
    tokens = np.random.default_rng(2).integers(1, 50, mask.shape).astype("int32") * mask
    return {"token_ids": tokens, "segment_ids": mask, "padding_mask": mask}


def run(*, max_rows=None, max_tokens=None, few_shapes=False, **options):
    steps, ids = Steps(), block()
    batches = LengthBatches(max_rows=max_rows, max_tokens=max_tokens, few_shapes=few_shapes, progress=steps)
    found = batches.run(steps, ids, Made(**options), fill=-1)
    np.testing.assert_array_equal(found["sum"], ids["token_ids"].sum(axis=1))
    width = found["tokens"].shape[1]
    np.testing.assert_array_equal(np.maximum(found["tokens"], 0), ids["token_ids"][:, :width])
    assert steps.share == pytest.approx(1)
    return steps.shapes


def test_longest_first_within_the_budget():
    shapes = run(max_tokens=20)
    assert shapes == [(2, 9), (2, 7), (5, 4), (2, 2)]
    assert run(max_tokens=1) == [(1, length) for length in sorted(LENGTHS, reverse=True)]


def test_rows_per_step():
    assert run(max_rows=4) == [(4, 9), (4, 4), (3, 2)]
    assert run(max_rows=4, max_tokens=20) == [(2, 9), (2, 7), (4, 4), (3, 2)]
    assert run(max_rows=99) == [(11, 9)]


def test_the_padding_of_the_preprocessor_holds():
    assert run(max_tokens=40, padding="max_length") == [(4, 10), (4, 10), (3, 10)]
    assert run(max_tokens=40, padding="bucket") == [(4, 10), (4, 10), (3, 10)]


def test_few_shapes():
    assert run(max_rows=8, few_shapes=True) == [(8, 9), (4, 2)]
    assert run(max_rows=6, few_shapes=True) == [(6, 9), (6, 3)], "no more rows than were allowed"


def test_rows_of_equal_length_keep_their_order():
    order = np.concatenate(list(plan(LENGTHS, width=int, max_rows=2, max_tokens=None)))
    assert order.tolist() == sorted(range(11), key=lambda row: (-LENGTHS[row], row))


def test_even_batches_have_little_padding():
    lengths = np.random.default_rng(1).integers(2, 60, 800)
    lengths[:3] = 0, 1, 700  # a row without tokens, and one that is longer than a batch
    shares = {}
    for even in (False, True):
        batches = list(plan(lengths, width=int, max_rows=None, max_tokens=2048, even=even))
        np.testing.assert_array_equal(np.sort(np.concatenate(batches)), np.arange(800))
        num_computed = [len(rows) * max(lengths[rows]) for rows in batches]
        assert max(num_computed) <= 2048
        shares[even] = lengths.sum() / sum(num_computed)
    assert shares[False] < 0.93 < 0.95 < shares[True]


def test_even_batches_cost_least():
    lengths = np.array([90, 80, 80, 50, 12, 11, 11, 10, 2, 2])
    splits = itertools.chain.from_iterable(itertools.combinations(range(1, 10), size) for size in range(10))
    costs = [
        sum((end - start) * lengths[start] + length_batches._STEP for start, end in itertools.pairwise([0, *split, 10]))
        for split in splits
    ]
    batches = list(plan(lengths, width=int, max_rows=None, max_tokens=2048, even=True))
    assert sum(len(rows) * lengths[rows[0]] + length_batches._STEP for rows in batches) == min(costs)


def test_default_budget_suits_the_device(monkeypatch):
    assert length_batches.default_max_tokens() == length_batches.TOKENS_ON_CPU
    monkeypatch.setattr("keras.distribution.list_devices", lambda: ["gpu:0"])
    assert length_batches.default_max_tokens() == length_batches.TOKENS_ON_ACCELERATOR


def test_batches_of_different_widths_are_padded():
    words = stacked([np.array([[b"a", b"b"]], object), np.array([[b"c"], [b"d"]], object)], b"")
    assert words.tolist() == [[b"a", b"b"], [b"c", b""], [b"d", b""]]
    numbers = stacked([np.zeros((1, 1, 3), np.int32), np.ones((1, 2, 1), np.int32)], -1)
    assert numbers.tolist() == [[[0, 0, 0], [-1, -1, -1]], [[1, -1, -1], [1, -1, -1]]]
