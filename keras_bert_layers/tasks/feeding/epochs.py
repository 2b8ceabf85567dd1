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
from keras_bert_layers.preprocessing.masking.random_numbers import mask_seeds
from keras_bert_layers.tasks.feeding import former_order
from keras_bert_layers.tasks.feeding.columns import as_tensor, as_tuple, gather_rows, is_dataset, num_rows, without_none

# The batches whose rows are sorted by length together. More make batches of similar texts; fewer take more padding.
GROUPED_BATCHES = 50
# What one seed puts in order.
ROWS, BATCHES, WINDOWS = range(NUM_ORDERS := 3)


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
        self, num_rows: int, batch_size: int, *, lengths: Callable[..., tf.Tensor], seed: tf.Tensor
    ) -> tf.data.Dataset:
        """The numbers of the rows of each batch.

        Args:
            num_rows: how many rows there are.
            batch_size: rows per batch.
            lengths: maps the numbers of rows, int64 `(rows,)`, to the rows' lengths, integers `(rows,)`.
            seed: an int64 scalar from 0 on, which determines the order.

        Returns:
            A dataset of int64 `(rows,)`. For `BY_LENGTH`, see `by_length`.
        """
        if self is RowOrder.AS_GIVEN:
            return tf.data.Dataset.range(num_rows).batch(batch_size)
        rows = tf.data.Dataset.from_tensor_slices(permutation(seed, num_rows, of=ROWS))
        if self is RowOrder.SHUFFLED:
            return rows.batch(batch_size)
        return by_length(rows.batch(batch_size * GROUPED_BATCHES), batch_size, lengths=lengths, seed=seed)


def permutation(seed: tf.Tensor, size: Any, *, of: int, group: Any = 0) -> tf.Tensor:
    """The integers from 0 to `size - 1` in an order that follows from the other arguments, int64 `(size,)`.

    Args:
        seed: an int64 scalar from 0 on.
        size: an int, or an integer scalar.
        of: `ROWS`, `BATCHES` or `WINDOWS`, whose orders are unrelated.
        group: the number of the group that is put in order, an int or an int64 scalar.
    """
    # As one operation, since it takes tens of milliseconds to trace those of the random numbers.
    order = tf.numpy_function(partial(_permutation, of), [seed, size, group], tf.int64)
    order.set_shape([None])
    return order


def _permutation(of: int, seed: Any, size: Any, group: Any) -> Any:
    return np.argsort(mask_seeds(seed, NUM_ORDERS * group + of, np.arange(size)), kind="stable")


def by_length(
    groups: tf.data.Dataset, batch_size: int, *, lengths: Callable[..., tf.Tensor], seed: tf.Tensor
) -> tf.data.Dataset:
    """Batches of rows of similar length: each group is sorted and cut, and its batches are put in a random order.

    Args:
        groups: yields the rows of several batches at a time: a tensor, or a tuple of structures of them.
        batch_size: rows per batch.
        lengths: maps the parts of a group to the rows' lengths, integers `(rows,)`.
        seed: an int64 scalar from 0 on, which determines the order.
    """

    def cut(number: tf.Tensor, group: Any) -> tf.data.Dataset:
        parts = as_tuple(group)
        order = tf.argsort(lengths(*parts), direction="DESCENDING", stable=True)
        starts = permutation(seed, -(-tf.size(order) // batch_size), of=BATCHES, group=number) * batch_size
        starts = tf.data.Dataset.from_tensor_slices(starts)
        return starts.map(lambda start: gather_rows(group, order[start : start + batch_size]))

    return numbered(groups).flat_map(cut)


def numbered(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """The elements of a dataset, each behind its number, an int64 scalar."""
    return tf.data.Dataset.zip(tf.data.Dataset.range(2**62), dataset)


@dataclasses.dataclass(frozen=True)
class Epochs:
    """The random state of `fit`'s data: a seed and the number of an epoch alone, so that an epoch can be repeated.

    Args:
        order: how rows are put into batches.
        place: returns the seed of this training, the epoch of it that begins, and how many epochs the task was ever
            trained for; read whenever a dataset is iterated over. The seed is from 0 to 2**31 - 1; `-1 - seed` stands
            for the same seed and the former order of rows.
        seed: a seed that does not depend on this training, or None; with one, each epoch of the task's life differs.
        are_endless: whether a dataset continues with the next epoch and never ends, as `steps_per_epoch` needs it.
        may_be_former: whether `place` may ask for the former order, see `former_order`; its graph takes time to make.
        inside: what `place` would return, as int64 scalars of the graph in which `in_one_iterator` makes an epoch.
    """

    order: RowOrder
    place: Callable[[], tuple[int, int, int]]
    seed: int | None = None
    are_endless: bool = False
    may_be_former: bool = False
    inside: tuple[tf.Tensor, ...] = ()

    def seeded(self, seed: int | None) -> Epochs:
        """The same epochs with another seed; with their own if it is None."""
        return dataclasses.replace(self, seed=seed)

    def seeds(self, *inside: int) -> Iterator[int]:
        """One seed for every epoch of one iterator: from 0 to 2**63 - 1, or -1 minus such for the former order."""
        seed, epoch, num_epochs, is_former = self._place(*inside)
        entropy = (seed, epoch) if self.seed is None else (self.seed, num_epochs)
        for turn in self._turns():
            (bits,) = np.random.SeedSequence([*entropy, turn]).generate_state(1, np.uint64)
            yield -1 - (int(bits) >> 1) if is_former else int(bits) >> 1

    def _numbers(self, *inside: int) -> Iterator[tuple[int, int]]:
        seed, _, num_epochs, _ = self._place(*inside)
        for turn in self._turns():
            yield seed if self.seed is None else self.seed, num_epochs + turn

    def _place(self, *inside: int) -> tuple[int, int, int, bool]:
        seed, epoch, num_epochs = map(int, inside or self.place())
        if seed < 0:
            former_order.check()
        return max(seed, -1 - seed), epoch, num_epochs, seed < 0

    def _outside(self) -> Epochs:
        """The same without tensors: TensorFlow keeps the functions of a dataset for ever, and so their graph."""
        return dataclasses.replace(self, inside=())

    def _turns(self) -> Iterable[int]:
        return itertools.count() if self.are_endless else (0,)

    def dataset(
        self, make: Callable[[tf.Tensor], tf.data.Dataset], former: Callable[[tf.Tensor], tf.data.Dataset]
    ) -> tf.data.Dataset:
        """A dataset that is `make(seed)` in each epoch, with an int64 scalar as the seed; or `former(seed)`."""
        seeds = self._outside().seeds
        if self.may_be_former:
            make = partial(former_order.either, make=make, former=former)
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

    def batches(self, num_rows: int, batch_size: int, *, lengths: Callable[..., tf.Tensor]) -> tf.data.Dataset:
        """`RowOrder.batches` in each epoch."""
        batches = partial(self.order.batches, num_rows, batch_size, lengths=lengths)

        def former(seed: tf.Tensor) -> tf.data.Dataset:
            if self.order is RowOrder.AS_GIVEN:
                return batches(seed=seed)
            sorted_by = lengths if self.order is RowOrder.BY_LENGTH else None
            rows = tf.data.Dataset.range(num_rows)
            return former_order.batches(rows, batch_size, lengths=sorted_by, buffer=num_rows, seed=seed)

        return self.dataset(lambda seed: batches(seed=seed), former)


def _each_epoch(
    places: Callable[..., Iterable[tuple[int, ...]]],
    make: Callable[..., tf.data.Dataset],
    size: int,
    inside: tuple[tf.Tensor, ...] = (),
) -> tf.data.Dataset:
    """`make(*place)` for each place of `places(*inside)`, a tuple of `size` integers, one after the other."""
    signature = (tf.TensorSpec([], tf.int64),) * size
    return tf.data.Dataset.from_generator(places, args=inside, output_signature=signature).flat_map(make)


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

    if epochs is None:
        batches = tf.data.Dataset.range(size).batch(batch_size)
    else:
        batches = epochs.batches(size, batch_size, lengths=lengths_of)
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
