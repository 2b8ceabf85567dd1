"""The epochs of one `fit`, each of which has its own order of rows, masks and pairs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.inputs._row_order import RowOrder


@dataclasses.dataclass(frozen=True)
class Epochs:
    """What `fit` draws its data by: nothing but a seed and a number, so that an epoch can be drawn again.

    Args:
        order: how rows are put into batches.
        place: returns the seed of this training, the epoch of it that begins, and how many epochs the task was ever
            trained for; read whenever a dataset is iterated over.
        seed: a seed that is not of this training, if not None; then each epoch of the task's life draws anew.
        are_endless: whether a dataset goes on with the next epoch and never ends, as `steps_per_epoch` needs it.
    """

    order: RowOrder
    place: Callable[[], tuple[int, int, int]]
    seed: int | None = None
    are_endless: bool = False

    def seeded(self, seed: int | None) -> Epochs:
        """The same epochs drawn by another seed; by their own if it is None."""
        return dataclasses.replace(self, seed=seed)

    def seeds(self) -> Iterator[int]:
        """One seed for every epoch of one iterator: integers from 0 to 2**63 - 1."""
        seed, epoch, num_epochs = self.place()
        entropy = (seed, epoch) if self.seed is None else (self.seed, num_epochs)
        for turn in itertools.count() if self.are_endless else (0,):
            (bits,) = np.random.SeedSequence([*entropy, turn]).generate_state(1, np.uint64)
            yield int(bits) >> 1

    def numbered(self, make: Callable[[tf.Tensor, tf.Tensor], tf.data.Dataset]) -> tf.data.Dataset:
        """A dataset that is `make(seed, epoch)` in each epoch, with int64 scalars: one seed, and the epoch's number.

        Epochs are counted over the task's life, so that a second `fit` goes on with the next one.
        """

        def places() -> Iterator[tuple[int, int]]:
            seed, _, num_epochs = self.place()
            for turn in itertools.count() if self.are_endless else (0,):
                yield seed if self.seed is None else self.seed, num_epochs + turn

        spec = tf.TensorSpec([], tf.int64)
        return tf.data.Dataset.from_generator(places, output_signature=(spec, spec)).flat_map(_alone(make))

    def dataset(self, make: Callable[[tf.Tensor], tf.data.Dataset]) -> tf.data.Dataset:
        """A dataset that is `make(seed)` in each epoch, with an int64 scalar as the seed."""
        seeds = tf.data.Dataset.from_generator(self.seeds, output_signature=tf.TensorSpec([], tf.int64))
        return seeds.flat_map(_alone(make))

    def batches(
        self, rows: tf.data.Dataset, batch_size: int, *, lengths: Callable[..., tf.Tensor], buffer: int
    ) -> tf.data.Dataset:
        """`RowOrder.batches` of these rows in each epoch."""
        batches = partial(self.order.batches, rows, batch_size, lengths=lengths, buffer=buffer)
        return self.dataset(lambda seed: batches(seed=seed))


def _alone(make: Callable[..., tf.data.Dataset]) -> Callable[..., tf.data.Dataset]:
    """`make` without TensorFlow's global seed, which would be mixed into each seed that is given."""

    def epoch(*place: tf.Tensor) -> tf.data.Dataset:
        tf.random.set_seed(1)  # of the graph that is traced here
        return make(*place)

    return epoch


def of_length(dataset: tf.data.Dataset, num_batches: int, epochs: Epochs | None) -> tf.data.Dataset:
    """The dataset with the number of its batches, which Keras shows: `num_batches`, or no end."""
    is_endless = epochs is not None and epochs.are_endless
    length = tf.data.INFINITE_CARDINALITY if is_endless else num_batches
    return dataset.apply(tf.data.experimental.assert_cardinality(length))
