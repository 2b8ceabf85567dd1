"""Batches of rows, and the order of rows in each epoch of training, which a seed repeats exactly."""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Rows
from keras_bert_layers.tasks.feeding.columns import as_tensor, gather_rows, is_dataset, num_rows, without_none

# The batches whose rows are sorted by length together. More make batches of similar texts; fewer take more padding.
GROUPED_BATCHES = 50


class RowOrder(enum.Enum):
    """How rows are put into batches."""

    AS_GIVEN = "as given"
    SHUFFLED = "shuffled"
    #: Shuffled, with rows of similar length in each batch.
    BY_LENGTH = "by length"

    @classmethod
    def of(cls, owner: str, x: Rows, *, shuffle: bool, group_by_length: bool) -> RowOrder:
        """The order of `fit`'s arguments; ValueError where they contradict each other."""
        if not checks.boolean(owner, "group_by_length", group_by_length):
            return cls.SHUFFLED if shuffle else cls.AS_GIVEN
        if is_dataset(x):
            rule = "be False for a dataset, which is batched already"
        elif not shuffle:
            rule = "be False if `shuffle` is False"
        else:
            return cls.BY_LENGTH
        raise ValueError(checks.message(owner, "group_by_length", rule, group_by_length))

    def batches(
        self, rows: tf.data.Dataset, batch_size: int, *, lengths: Callable[..., tf.Tensor], buffer: int, seed: tf.Tensor
    ) -> tf.data.Dataset:
        """Batches of rows.

        Args:
            rows: yields one row at a time.
            batch_size: rows per batch.
            lengths: maps the elements of a batch of rows to the rows' lengths, integers `(rows,)`.
            buffer: how many rows are shuffled at a time; as in `tf.data.Dataset.shuffle`.
            seed: an int64 scalar, which determines the order.

        Returns:
            The dataset. `BY_LENGTH` sorts the rows of 50 batches, cuts them into batches and shuffles these.
        """
        if self is RowOrder.AS_GIVEN:
            return rows.batch(batch_size)
        rows = rows.shuffle(buffer, seed=seed, reshuffle_each_iteration=False)
        if self is RowOrder.SHUFFLED:
            return rows.batch(batch_size)

        def cut(*element: Any) -> tf.data.Dataset:
            order = tf.argsort(lengths(*element), direction="DESCENDING", stable=True)
            parts = element if isinstance(rows.element_spec, tuple) else element[0]
            starts = tf.data.Dataset.range(0, tf.size(order, tf.int64), batch_size)
            return starts.map(lambda start: gather_rows(parts, order[start : start + batch_size]))

        groups = rows.batch(batch_size * GROUPED_BATCHES).flat_map(cut)
        return groups.shuffle(GROUPED_BATCHES, seed=seed, reshuffle_each_iteration=False)


@dataclasses.dataclass(frozen=True)
class Epochs:
    """The random state of `fit`'s data: a seed and the number of an epoch alone, so that an epoch can be repeated.

    Args:
        order: how rows are put into batches.
        place: returns the seed of this training, the epoch of it that begins, and how many epochs the task was ever
            trained for; read whenever a dataset is iterated over.
        seed: a seed that does not depend on this training, or None; with one, each epoch of the task's life differs.
        are_endless: whether a dataset continues with the next epoch and never ends, as `steps_per_epoch` needs it.
        inside: what `place` would return, as int64 scalars of the graph in which `in_one_iterator` makes an epoch.
    """

    order: RowOrder
    place: Callable[[], tuple[int, int, int]]
    seed: int | None = None
    are_endless: bool = False
    inside: tuple[tf.Tensor, ...] = ()

    def seeded(self, seed: int | None) -> Epochs:
        """The same epochs with another seed; with their own if it is None."""
        return dataclasses.replace(self, seed=seed)

    def seeds(self, *inside: int) -> Iterator[int]:
        """One seed for every epoch of one iterator: integers from 0 to 2**63 - 1."""
        seed, epoch, num_epochs = map(int, inside or self.place())
        entropy = (seed, epoch) if self.seed is None else (self.seed, num_epochs)
        for turn in self._turns():
            (bits,) = np.random.SeedSequence([*entropy, turn]).generate_state(1, np.uint64)
            yield int(bits) >> 1

    def _numbers(self, *inside: int) -> Iterator[tuple[int, int]]:
        seed, _, num_epochs = map(int, inside or self.place())
        for turn in self._turns():
            yield seed if self.seed is None else self.seed, num_epochs + turn

    def _outside(self) -> Epochs:
        """The same without tensors: TensorFlow keeps the functions of a dataset for ever, and so their graph."""
        return dataclasses.replace(self, inside=())

    def _turns(self) -> Iterable[int]:
        return itertools.count() if self.are_endless else (0,)

    def dataset(self, make: Callable[[tf.Tensor], tf.data.Dataset]) -> tf.data.Dataset:
        """A dataset that is `make(seed)` in each epoch, with an int64 scalar as the seed."""
        seeds = self._outside().seeds
        return _each_epoch(lambda *inside: ((seed,) for seed in seeds(*inside)), make, 1, self.inside)

    def numbered(self, make: Callable[[tf.Tensor, tf.Tensor], tf.data.Dataset]) -> tf.data.Dataset:
        """A dataset that is `make(seed, epoch)` in each epoch, with int64 scalars: one seed, and the epoch's number.

        Epochs are counted over the task's life, so that a second `fit` continues with the next one.
        """
        return _each_epoch(self._outside()._numbers, make, 2, self.inside)

    def in_one_iterator(self, make: Callable[[Epochs], tf.data.Dataset], end: int) -> tf.data.Dataset:
        """`make` of this epoch and of all that follow; each is as if it had an iterator of its own.

        TensorFlow takes tenths of a second to begin with an iterator whose functions hold a tokenizer.

        Args:
            make: makes a dataset of one epoch.
            end: the epoch before which training ends.
        """

        def places() -> Iterator[tuple[int, ...]]:
            seed, epoch, num_epochs = self.place()
            return ((seed, epoch + turn, num_epochs + turn) for turn in range(end - epoch))

        epochs = _each_epoch(places, lambda *inside: make(dataclasses.replace(self, inside=inside)), 3)
        return unoptimized(epochs)

    def batches(
        self, rows: tf.data.Dataset, batch_size: int, *, lengths: Callable[..., tf.Tensor], buffer: int
    ) -> tf.data.Dataset:
        """`RowOrder.batches` of these rows in each epoch."""
        batches = partial(self.order.batches, rows, batch_size, lengths=lengths, buffer=buffer)
        return self.dataset(lambda seed: batches(seed=seed))


def _each_epoch(
    places: Callable[..., Iterable[tuple[int, ...]]],
    make: Callable[..., tf.data.Dataset],
    size: int,
    inside: tuple[tf.Tensor, ...] = (),
) -> tf.data.Dataset:
    """`make(*place)` for each place of `places(*inside)`, a tuple of `size` integers, one after the other."""

    def epoch(*place: tf.Tensor) -> tf.data.Dataset:
        # Of the graph that is traced here: TensorFlow's global seed would be mixed into each seed that is given.
        tf.random.set_seed(1)
        return make(*place)

    signature = (tf.TensorSpec([], tf.int64),) * size
    return tf.data.Dataset.from_generator(places, args=inside, output_signature=signature).flat_map(epoch)


def with_num_batches(dataset: tf.data.Dataset, num_batches: int, epochs: Epochs | None) -> tf.data.Dataset:
    """The dataset with the number of its batches, which Keras shows: `num_batches`, or without end."""
    is_endless = epochs is not None and epochs.are_endless
    length = tf.data.INFINITE_CARDINALITY if is_endless else num_batches
    return dataset.apply(tf.data.experimental.assert_cardinality(length))


def batches_of_rows(
    rows: tuple[Any, Any, Any], *, batch_size: int, lengths: Callable[..., tf.Tensor], epochs: Epochs | None
) -> tf.data.Dataset:
    """Batches of `(x,)`, `(x, y)` or `(x, y, sample_weight)`, with y None where weights come without labels.

    Args:
        rows: columns, labels and weights with equally many rows: arrays or ragged tensors, or tuples of such. Labels
            and weights may be None.
        batch_size: rows per batch.
        lengths: as in `RowOrder.batches`.
        epochs: which rows come together in each epoch; None leaves them in their order.
    """
    size = num_rows(rows[0])
    parts = without_none(*tf.nest.map_structure(as_tensor, rows))

    def lengths_of(chosen: tf.Tensor) -> tf.Tensor:
        return lengths(gather_rows(parts[0], chosen))

    indices = tf.data.Dataset.range(size)
    if epochs is None:
        batches = indices.batch(batch_size)
    else:
        batches = epochs.batches(indices, batch_size, lengths=lengths_of, buffer=size)
    batches = with_num_batches(batches, -(-size // batch_size), epochs)
    return unoptimized(batches.map(lambda chosen: gather_rows(parts, chosen)))


def unoptimized(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset without TensorFlow's default optimizations.

    They rewrite the graph at each start, which takes a tenth of a second, and find nothing here to improve.
    """
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def of_unknown_length(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The dataset without its length: after as many steps, Keras begins with another iterator, in case of more."""
    return tf.data.Dataset.from_tensors(0).flat_map(lambda _: dataset).with_options(dataset.options())
