"""`TrainingPlace`: how far training is and its random state, so that `fit` resumes identically."""

from __future__ import annotations

import importlib.util
import random
import weakref
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.keras_models import Untracked
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.optimizers.adamw import BertAdamW
from keras_bert_layers.tasks.feeding.global_batches import agreed
from keras_bert_layers.tasks.training.rebuilt_optimizer import parts_of

Values = list[np.ndarray]
# The orders of rows. Places that were written before there were two do not state theirs, which is the former one.
FORMER_ORDER, ORDER = range(2)


class TrainingPlace(keras.layers.Layer):
    """How far the training of a task was when its `.keras` or weights file was written: a part of these files.

    It holds the seed of this training, how many epochs the task was ever trained for, the epoch and step of this `fit`,
    which order of rows it has, the states of dropout and of the metrics, and what `BertAdamW` has beside its variables.
    The order of rows, the masks and the pairs of an epoch follow from these numbers.

    Training resumes from a file in two cases. A callback of `fit`, such as `keras.callbacks.BackupAndRestore`, reads
    it: then the batches before the step are read and skipped, so that `fit` ends with the same weights as without the
    interruption. Or a model was loaded from the file and `fit` gets the `initial_epoch` that was to come next. In all
    other cases a new training begins, with a seed that `keras.utils.set_random_seed` makes repeatable.

    It is a layer, as Keras saves nothing else; a task has it as a property, and not as one of its layers.

    Args:
        task: the task that is trained.
    """

    def __init__(self, task: keras.Model):
        super().__init__(name="training_place")
        self._task = Untracked(task)
        self._read: Untracked[dict[str, Values]] = Untracked({})  # what a file held, until it is used
        self._first_epoch = 0  # of this `fit`
        self._steps_per_epoch: int | None = None  # of an iterator that serves all epochs
        self.seed = self.num_epochs = self.epoch = self.step = 0
        self.order = ORDER
        self.may_be_former = False  # the order of this `fit`, until it begins

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        """Called by Keras."""
        place = np.array([self.seed, self.num_epochs, self.epoch, self.step, self.order], np.int64)
        groups = {"place": [place], "dropout": self._dropout_states(), "metrics": self._task.value.metrics_variables}
        groups["steps"] = [np.array(part.steps_before, np.int64) for part in self._optimizers()]
        for name, values in groups.items():
            for index, value in enumerate(values):
                store[f"{name}_{index:04}"] = keras.ops.convert_to_numpy(value)

    def load_own_variables(self, store: MutableMapping[str, Any]) -> None:
        """Called by Keras; files without a place, such as older ones, leave this one unchanged."""
        read: dict[str, Values] = {"dropout": [], "metrics": []}
        for key in sorted(store.keys()):
            read.setdefault(key.partition("_")[0], []).append(np.array(store[key]))
        self._read.value = read
        if "place" in read:
            self.num_epochs = int(read["place"][0][1])  # also for a new training, whose masks are then new ones
        for part, steps in zip(self._optimizers(), read.get("steps", ()), strict=False):
            if len(steps) == len(part.steps_before) and [*steps] != part.steps_before:
                part.steps_before = steps.tolist()
                self.make_step_again()

    def make_step_again(self) -> None:
        """Makes the compiled step of `fit` anew, as for other weights; batches that it was to skip are skipped."""
        task = self._task.value
        if (before := task.train_function) is None:
            return
        task.make_train_function(force=True)
        if isinstance(before, _Replay):
            before.train = task.train_function
            task.train_function = before

    def _optimizers(self) -> list[BertAdamW]:
        optimizer = getattr(self._task.value, "optimizer", None)
        parts = [] if optimizer is None else parts_of(optimizer)
        return [part for part in parts if isinstance(part, BertAdamW) and part.built]

    def _dropout_states(self) -> list[Any]:
        return [variable for variable in self._task.value.variables if variable.name == "seed_generator_state"]

    def now(self) -> tuple[int, int, int]:
        """The seed, the epoch and the number of epochs at which a dataset's iterator begins; see `Epochs`."""
        num_before = self.epoch - self._first_epoch if self._steps_per_epoch else 0
        seed = -1 - self.seed if self.order == FORMER_ORDER else self.seed
        return seed, self.epoch - num_before, self.num_epochs - num_before

    def reader(self) -> Callable[[], tuple[int, int, int]]:
        """`now`, without a reference to the task: TensorFlow keeps the Python functions of a dataset for ever."""
        place = weakref.ref(self)
        return lambda: place().now()  # type: ignore[union-attr] # `fit` holds the task

    def callbacks(
        self, callbacks: Sequence[keras.callbacks.Callback], *, initial_epoch: int, steps_per_epoch: int | None
    ) -> list[Any]:
        """The callbacks of `fit`, with those that follow the training from its beginning on."""
        before = self._read.value
        self._task.value._initial_epoch = None  # Keras keeps that of an earlier `fit`

        def begin(logs: Mapping[str, Any] | None = None) -> None:
            read, self._read.value = self._read.value, {}
            self._first_epoch, self._steps_per_epoch = initial_epoch, steps_per_epoch
            self._begin(read, by_callback=read is not before)

        first = keras.callbacks.LambdaCallback(on_train_batch_end=self._end_step, on_epoch_end=self._end_epoch)
        first.async_safe = True  # alone, it does not need the logs of each step
        given = callbacks.callbacks if isinstance(callbacks, keras.callbacks.CallbackList) else callbacks
        given = keras.tree.flatten(given or [])
        self.may_be_former = bool(given or before)
        for callback in given:
            if isinstance(callback, keras.callbacks.BackupAndRestore):
                _remove_if_empty(Path(callback.backup_dir) / "training_metadata.json")
            if isinstance(callback, keras.callbacks.TensorBoard):
                _check_tensorboard(type(self._task.value).__name__)
        return [first, *given, keras.callbacks.LambdaCallback(on_train_begin=begin)]

    def _begin(self, read: dict[str, Values], *, by_callback: bool) -> None:
        """Resumes at the place that a file held, or begins a new training.

        Args:
            read: what a file held, if one was read since the last `fit`.
            by_callback: whether a callback of this `fit` read it.
        """
        task = self._task.value
        if not by_callback:  # a callback that read an epoch, but no weights, found an incomplete file of Keras's
            task._initial_epoch = None
        epoch = read["place"][0][2] if "place" in read else None
        if epoch is None or not (by_callback or epoch == self._first_epoch > 0):
            self.seed, self.epoch, self.step = agreed(random.randrange(2**31)), self._first_epoch, 0
            self.order = ORDER
            return
        place = map(int, [*read["place"][0], FORMER_ORDER][:5])
        self.seed, self.num_epochs, self.epoch, self.step, self.order = place
        for state, value in zip(self._dropout_states(), read["dropout"], strict=False):
            state.assign(value)
        if not by_callback:
            self.step = 0
            return
        task._initial_epoch = self.epoch
        num_before = (self._steps_per_epoch or 0) * (self.epoch - self._first_epoch)
        if num_before and keras.backend.backend() == "torch":
            rule, cure = "be None where a training resumes", "On torch, Keras reads batches before this task can."
            raise ValueError(checks.message(type(task).__name__, "steps_per_epoch", rule, self._steps_per_epoch, cure))
        if num_before or self.step:
            task.train_function = _Replay(task, num_before, self.step, read["metrics"])

    def _end_step(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        self.step = max(self.step, batch + 1)  # skipped steps were counted before

    def _end_epoch(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        self.num_epochs += 1
        self.epoch, self.step = epoch + 1, 0


def _check_tensorboard(owner: str) -> None:
    """ModuleNotFoundError before the first step: Keras would raise it only at the end of an epoch."""
    if importlib.util.find_spec("tensorboard") is None:
        cure = 'Install it: `python -m pip install "keras-bert-layers[tensorboard]"`.'
        raise ModuleNotFoundError(f"`{owner}`: the callback TensorBoard needs the package tensorboard. {cure}")


def _remove_if_empty(path: Path) -> None:
    """Removes a file that Keras was about to write when its process was killed; Keras could not read it."""
    if path.is_file() and not path.stat().st_size:
        path.unlink()


class _Replay:
    """Replaces a task's compiled training step while batches are read that were trained on before.

    Args:
        task: the task.
        num_before: how many batches come before the first step.
        num_steps: how many steps to skip; Keras counts them as usual.
        metrics: the values of the metrics' variables after these steps.
    """

    def __init__(self, task: keras.Model, num_before: int, num_steps: int, metrics: Values):
        self._task = task
        self.train = task.train_function
        self._num_before = num_before
        self._num_left = num_steps
        self._metrics = metrics
        # On TensorFlow the first step creates them; other backends create them before.
        self._has_metrics = keras.backend.backend() != "tensorflow"

    def __call__(self, *arguments: Any) -> Any:
        """A step of `fit`: on TensorFlow `(batches)`, on JAX `(state, batches)`."""
        *state, batches = arguments
        batches = iter(batches)  # torch hands over a list, of the batches of this step
        for _ in range(self._num_before):
            next(batches)
        self._num_before = 0
        if not self._num_left:
            self._task.train_function = self.train
            return self.train(*arguments)
        logs = self._skip(batches)
        self._num_left = max(0, self._num_left - self._task.steps_per_execution)
        if state and len(state[0][-1]) == len(self._metrics):
            *others, _ = state[0]
            state = [(*others, self._metrics)]
        return (logs, *state) if state else logs

    def _skip(self, batches: tf.data.Dataset) -> dict[str, Any]:
        """Reads the batches of one step, and returns its logs."""
        task = self._task
        if not self._has_metrics:
            task.make_test_function()
            task.test_function(batches)
            self._has_metrics = True
        else:
            for _ in range(task.steps_per_execution):
                next(batches, None)
        if keras.backend.backend() == "jax":  # its variables have no values during `fit`
            return {}
        if len(task.metrics_variables) == len(self._metrics):
            for variable, value in zip(task.metrics_variables, self._metrics, strict=True):
                variable.assign(value)
        return task.get_metrics_result()
