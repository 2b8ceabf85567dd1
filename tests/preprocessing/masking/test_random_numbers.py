import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing.masking.random_numbers import integers, mask_seeds, random_bits, row_seeds, uniform

# A share of n draws strays from its probability by more than five standard deviations once in two million cases.
DEVIATIONS = 5
ROWS, PLACES = 300, 257


@pytest.fixture(scope="module")
def seeds():
    return row_seeds(7, tf.constant(ROWS))


def splitmix64(state):
    """The reference, in Python's integers."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % 2**64
    return state ^ (state >> 31)


def test_bits_are_splitmix64():
    step = 0x9E3779B97F4A7C15
    start = splitmix64((5 + 3 * step) % 2**64)
    expected = [splitmix64((start + (place + 1) * step) % 2**64) >> 1 for place in range(4)]
    assert random_bits(row_seeds([5], tf.constant(1)), 4, stream=2).numpy().tolist() == [expected]


def test_a_row_depends_on_its_seed_alone(seeds):
    whole = random_bits(seeds, PLACES, stream=1).numpy()
    np.testing.assert_array_equal(random_bits(seeds[9:12], 11, stream=1), whole[9:12, :11])
    assert len(np.unique(whole)) == whole.size
    assert not np.isin(random_bits(seeds, PLACES, stream=2), whole).any()
    assert not np.isin(random_bits(row_seeds(8, tf.constant(ROWS)), PLACES, stream=1), whole).any()
    assert whole.min() >= 0


def test_uniform(seeds):
    numbers = uniform(seeds, PLACES, stream=0).numpy()
    assert numbers.dtype == np.float32
    assert numbers.min() >= 0
    assert numbers.max() < 1
    size = numbers.size
    assert abs(numbers.mean() - 0.5) < DEVIATIONS * np.sqrt(1 / 12 / size)
    for axis in (0, 1):  # neighbours have nothing to do with each other
        first, second = np.moveaxis(numbers, axis, 0)[:-1].ravel(), np.moveaxis(numbers, axis, 0)[1:].ravel()
        assert abs(np.corrcoef(first, second)[0, 1]) < DEVIATIONS / np.sqrt(size)


@pytest.mark.parametrize("below", [1, 7, 30522])
def test_integers(seeds, below):
    numbers = integers(seeds, PLACES, below=below, stream=0).numpy()
    counts = np.bincount(numbers.ravel(), minlength=below)
    assert counts.size == below  # none too large
    # Pearson's statistic has mean below - 1 and variance 2 (below - 1).
    expected = numbers.size / below
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic <= below - 1 + DEVIATIONS * np.sqrt(2 * (below - 1))


def test_negative_seed():
    assert random_bits(row_seeds(-1, tf.constant(2)), 3, stream=0).shape == (2, 3)


class TestMaskSeeds:
    ROWS = np.array([0, 1, 5, 2**40, 2**63 - 1])

    @pytest.mark.parametrize(("seed", "epoch"), [(0, 0), (2**63 - 1, 7), (3, 2**33)])
    def test_values_are_the_same_in_numpy_and_in_graph(self, seed, epoch):
        expected = []
        step = 0x9E3779B97F4A7C15
        for row in self.ROWS.tolist():
            state = splitmix64(seed)
            for number in (epoch, row):
                state = splitmix64((state + (number + 1) * step) % 2**64)
            expected.append(state - 2**64 * (state >= 2**63))
        found = mask_seeds(seed, epoch, self.ROWS)
        assert found.dtype == np.int64
        assert found.tolist() == expected
        in_graph = tf.function(mask_seeds)(*(tf.constant(value, tf.int64) for value in (seed, epoch, self.ROWS)))
        assert in_graph.dtype == tf.int64
        assert in_graph.numpy().tolist() == expected

    def test_a_seed_depends_on_its_row_alone(self):
        rows = np.random.default_rng(1).permutation(211)
        whole = mask_seeds(3, 2, np.arange(211))
        np.testing.assert_array_equal(mask_seeds(3, 2, rows), whole[rows])
        np.testing.assert_array_equal(
            np.concatenate([mask_seeds(3, 2, part) for part in (rows[:7], rows[7:])]), whole[rows]
        )

    def test_seeds_epochs_and_rows_have_nothing_in_common(self):
        seeds = np.concatenate([mask_seeds(s, epoch, np.arange(50)) for s in range(9) for epoch in range(11)])
        assert len(np.unique(seeds)) == 9 * 11 * 50
