"""`Trainer`: training and evaluation of a task on raw text or ids, with Keras's own loop."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.custom_gradients import freed_with
from keras_bert_layers._internal.keras_models import Graph, all_layers
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Labels, Rows
from keras_bert_layers.data.pretraining.row_source import RowSource
from keras_bert_layers.export.text_task import TextTask
from keras_bert_layers.layers.padding_free import PaddingFreeLayer
from keras_bert_layers.losses.ranking import RankingLoss
from keras_bert_layers.losses.vectors import VectorLoss
from keras_bert_layers.optimizers import adamw
from keras_bert_layers.tasks.feeding.batches import Batches
from keras_bert_layers.tasks.feeding.columns import is_dataset, is_of_tensorflow
from keras_bert_layers.tasks.feeding.epochs import Epochs, RowOrder, of_unknown_length
from keras_bert_layers.tasks.feeding.global_batches import MeanOfRows, part_of_process, parts_are_cut
from keras_bert_layers.tasks.feeding.id_arrays import IdArrays, is_id_arrays
from keras_bert_layers.tasks.feeding.keras_batches import fed, for_keras
from keras_bert_layers.tasks.feeding.streams import as_dataset, from_table
from keras_bert_layers.tasks.graphs.heads import backbones_of
from keras_bert_layers.tasks.inputs import Inputs
from keras_bert_layers.tasks.objectives.losses import on_logits
from keras_bert_layers.tasks.objectives.metrics import metrics_for
from keras_bert_layers.tasks.training.mini_batches import in_mini_batches
from keras_bert_layers.tasks.training.rebuilt_optimizer import is_built_for, rebuild
from keras_bert_layers.tasks.training.training_place import TrainingPlace

#: What reads the data of `fit`, and what makes batches of them.
Reading = tuple[Inputs, Batches] | tuple[IdArrays, IdArrays]
Method = TypeVar("Method", bound=Callable[..., Any])


def _traced_again_after_errors(method: Method) -> Method:
    """A method of `Trainer` whose task's training functions are made again after an error in it; a decorator.

    TensorFlow takes the second call of a function whose first trace was interrupted for one that needs no variables.
    Keras keeps the function, so that every later `fit` would fail.

    An error in a batch of a generator or a `PyDataset` is raised as it is; TensorFlow raises one of its own. While the
    method runs, callbacks may freeze weights for a time: the optimizer stays as it is.
    """

    @functools.wraps(method)
    def guarded(trainer: Trainer, *arguments: Any, **options: Any) -> Any:
        task, is_outer = trainer._task, not trainer._is_running
        task.predictor.follow_layers()
        trainer._is_running = True
        rematerializes = any(backbone.rematerialize for backbone in backbones_of(task))
        has_own = rematerializes or trainer.mini_batch_size is not None
        try:
            with freed_with(task) if has_own else contextlib.nullcontext():
                return method(trainer, *arguments, **options)
        except BaseException as error:
            task.train_function = task.test_function = None
            batches = task.pipeline.batches
            own, batches.stream_error = batches.stream_error, None
            if own is not None and error is not own:
                raise own from None
            raise
        finally:
            trainer._is_running = not is_outer

    return guarded  # type: ignore[return-value]


class Trainer:
    """Compiles, trains and evaluates a task: the part of it behind `compile`, `fit`, `evaluate` and single batches.

    The task's pipeline makes batches of ids and labels, and Keras trains on them. `place` records how far training is,
    so that it can resume.

    Args:
        task: the task.
    """

    def __init__(self, task: TextTask):
        self._task = task
        self.place = TrainingPlace(task)
        #: The metrics and the weighted metrics of the last `compile`.
        self.metrics: list[Any] = []
        #: `jit_compile` of the last `compile`, as it was given.
        self.jit_compile: Any = "auto"
        self._token_count: keras.metrics.Sum | None = None
        self._vectors: keras.Model | None = None
        self._is_running = False

    def compile(self, optimizer: Any, loss: Any, metrics: Any, weighted_metrics: Any, **options: Any) -> None:
        """Compiles the task; see `Task.compile`."""
        task, default_loss = self._task, self._task.default_loss()
        self.jit_compile = options["jit_compile"]
        for layer in all_layers(task):
            if isinstance(layer, PaddingFreeLayer):
                layer.padding_free = options["jit_compile"] is not True
        if not (is_default := _is_auto(loss)):
            loss = on_logits(type(task).__name__, loss)
        elif options["loss_weights"] is None:
            options["loss_weights"] = task.default_loss_weights
        losses = [default_loss if is_default else loss, default_loss]
        with self._following(loss):
            weighted_metrics = metrics_for(task, losses, weighted_metrics)
            if not _is_auto(metrics):
                metrics = metrics_for(task, losses, metrics)
            else:
                metrics = None if task.weighs_metrics and weighted_metrics is not None else task.default_metrics()
            if task.weighs_metrics and weighted_metrics is None:
                metrics, weighted_metrics = None, metrics
            self.metrics = [metrics, weighted_metrics]
            optimizer = adamw(getattr(task, "default_learning_rate", 5e-5)) if _is_auto(optimizer) else optimizer
            options = {"metrics": metrics, "weighted_metrics": weighted_metrics, **options}
            keras.Model.compile(task, optimizer, losses[0], **options)
        if keras.backend.backend() == "jax":  # whose batches may hold rows that only pad them
            object.__setattr__(task, "_loss_tracker", MeanOfRows(name="loss"))  # not tracked, as Keras's own
        task.predictor.forget()

    @contextlib.contextmanager
    def _following(self, loss: Any) -> Iterator[None]:
        """The context in which `compile` takes a loss; the pipeline makes the labels of one of `losses` from then on.

        What is refused in it leaves the labels of the loss before. ValueError for a loss that is not for this task.
        """
        pipeline, owner = self._task.pipeline, type(self._task).__name__
        is_ours = isinstance(loss, VectorLoss | RankingLoss)
        if is_ours and not isinstance(loss, pipeline.loss_kind or ()):
            cure = "Losses of vectors are for encoders of texts, and losses of rankings for cross-encoders."
            raise ValueError(checks.message(owner, "loss", "be one for this task", type(loss).__name__, cure))
        by_xla = self.jit_compile is True and keras.backend.backend() == "tensorflow"
        if by_xla and is_ours and getattr(loss, "mini_batch_size", None) is not None:
            rule, cure = "not be True for a loss with `mini_batch_size`", "On JAX they go together."
            raise ValueError(checks.message(owner, "jit_compile", rule, True, cure))
        before, pipeline.loss = pipeline.loss, loss if is_ours else None
        try:
            yield
        except BaseException:
            pipeline.loss = before
            raise
        if pipeline.loss is not before:
            pipeline.batches.forget()

    def follow_layers(self) -> None:
        """Builds the optimizer again if other weights are trained than before; drops functions of other layers."""
        optimizer = self._task.optimizer if self._task.compiled else None
        if optimizer is not None and optimizer.built and not self._is_running:
            self._build_optimizer()
        self._task.predictor.follow_layers()

    def count_tokens(self) -> None:
        """Adds the metric `"tokens"`: how many tokens an epoch has had so far, padding not included."""
        if self._token_count is None:
            self._token_count = keras.metrics.Sum(name="tokens")
            self._task.train_function = self._task.test_function = None

    def with_token_count(self, metrics: list[Any]) -> list[Any]:
        """Metrics, and after `count_tokens` the number of tokens."""
        return metrics if self._token_count is None else [*metrics, self._token_count]

    def add_tokens(self, x: Mapping[str, Any]) -> None:
        """Counts the tokens of a batch, after `count_tokens`."""
        if self._token_count is not None:
            parts = keras.tree.flatten_with_path(x)
            masks = [mask for path, mask in parts if str(path[-1]).endswith("padding_mask")]
            self._token_count.update_state([keras.ops.count_nonzero(mask) for mask in masks])

    @property
    def mini_batch_size(self) -> int | None:
        """The most rows that training computes at a time; None for all of a batch."""
        return getattr(self._task.pipeline.loss, "mini_batch_size", None)

    def in_mini_batches(self, ids: Mapping[str, Any], **_: Any) -> Any:
        """The outputs of the task in training, computed `mini_batch_size` rows at a time."""
        size: Any = self.mini_batch_size
        if "token_ids" not in ids:  # one part of the model for each
            return {name: in_mini_batches(self._task.predictor.part(name), ids[name], size) for name in ids}
        if self._vectors is None:
            task: Any = self._task
            self._vectors = Graph(task.input, task.output)
        return in_mini_batches(self._vectors, ids, size)

    @_traced_again_after_errors
    def fit(
        self,
        x: Rows,
        y: Labels,
        sample_weight: Labels,
        *,
        batch_size: int | None,
        callbacks: Sequence[keras.callbacks.Callback],
        validation_split: float,
        validation_data: Rows,
        validation_batch_size: int | None,
        shuffle: bool,
        class_weight: Mapping[Any, float],
        group_by_length: bool,
        **options: Any,
    ) -> Any:
        """Trains the task; see `Task.fit`."""
        task = self._task
        self._check_positive(batch_size=batch_size, validation_batch_size=validation_batch_size)
        self._check_positive(**{name: options[name] for name in ("steps_per_epoch", "validation_steps")})
        checks.whole_number(type(task).__name__, "epochs", options["epochs"])
        x, y = from_table(task.pipeline, x, y)
        x, is_raw = as_dataset(task.pipeline, x, shuffle=shuffle)
        first, steps = options["initial_epoch"], options["steps_per_epoch"]
        options["callbacks"] = self.place.callbacks(callbacks, initial_epoch=first, steps_per_epoch=steps)
        if class_weight is not None:
            options["class_weight"] = self._class_weight(x, y, class_weight)
        rows = x, y, sample_weight
        reading = self._reading(rows, is_raw=is_raw, shuffle=shuffle, group_by_length=group_by_length)
        self._check_devices(x)
        if reading is None:
            options |= {"batch_size": batch_size, "shuffle": shuffle, "sample_weight": sample_weight}
            options |= {"validation_split": validation_split, "validation_batch_size": validation_batch_size}
            self._build_optimizer()
            return keras.Model.fit(task, for_keras(x), y, validation_data=for_keras(validation_data), **options)
        order = RowOrder.of(reading[0].owner, x, shuffle=shuffle, group_by_length=group_by_length)
        order_of_epochs = Epochs(
            order, self.place.reader(), are_endless=steps is not None, may_be_former=self.place.may_be_former
        )
        options |= {"validation_data": validation_data, "shuffle": False}  # the dataset shuffles itself
        sizes = (batch_size, validation_batch_size or batch_size)
        return self._fit_batches(reading, rows, order_of_epochs, sizes, validation_split, **options)

    def _fit_batches(
        self,
        reading: Reading,
        rows: tuple[Any, Any, Any],
        order_of_epochs: Epochs,
        batch_sizes: tuple[int | None, int | None],
        validation_split: float,
        *,
        validation_data: Rows,
        **options: Any,
    ) -> Any:
        """Trains on batches that are made here: of `rows`, `(x, y, sample_weight)`, and of the validation data."""
        task, (data, batches) = self._task, reading
        if validation_split and validation_data is None:
            rows, validation_data = data.split(*rows, validation_split)
        self._read_packed(rows[0], validation_data)
        with data.fitting(rows[0]), parts_are_cut():
            make = batches.maker(*rows, batch_size=batch_sizes[0])
            training = make(order_of_epochs)
            num_batches = -1 if is_dataset(rows[0]) else _num_batches(training)
            if self._takes_steps(num_batches):
                training = order_of_epochs.in_one_iterator(make, options["epochs"])
                options["steps_per_epoch"] = num_batches
            training = training.prefetch(tf.data.AUTOTUNE)
            if task.loss is not None:
                data.check_labels(*rows[:2])
            if validation_data is not None:
                validation_data = batches.validation(validation_data, batch_sizes[1])
            if is_dataset(validation_data):
                validation_data, steps = self._evaluated(part_of_process(validation_data), options["validation_steps"])
                options["validation_steps"] = steps
            self._build_optimizer()
            with fed(part_of_process(training), validation_data) as (training, validation_data):
                return keras.Model.fit(task, training, validation_data=validation_data, **options)

    def _evaluated(self, batches: tf.data.Dataset, steps: int | None) -> tuple[tf.data.Dataset, int | None]:
        """Batches to evaluate on, and how many steps to take; Keras begins with one iterator then, and not with two."""
        num_batches = _num_batches(batches)
        if steps is not None or not self._takes_steps(num_batches):
            return batches, steps
        return of_unknown_length(batches), num_batches

    def _takes_steps(self, num_batches: int) -> bool:
        """Whether Keras may take so many steps of a dataset; the number is negative if it is not known, or endless."""
        strategy = self._strategy()
        is_one_device = strategy is None or strategy.num_replicas_in_sync == 1
        return is_one_device and num_batches > 0 and not num_batches % self._task.steps_per_execution

    def _check_positive(self, **numbers: Any) -> None:
        """Refuses sizes and numbers of steps below 1; Keras takes 0 steps for all batches, and some never end."""
        for name, number in numbers.items():
            checks.optional(checks.positive_integer, type(self._task).__name__, name, number)

    def _reading(self, rows: tuple[Any, ...], *, is_raw: bool, shuffle: bool, group_by_length: bool) -> Reading | None:
        """What reads the data of `fit`, and what makes batches of them; None for Keras itself."""
        if is_raw:
            return self._task.pipeline, self._task.pipeline.batches
        owner = type(self._task).__name__
        if group_by_length:
            raise ValueError(checks.message(owner, "group_by_length", "be False for ids", group_by_length))
        arrays = IdArrays(owner)
        return (arrays, arrays) if shuffle and is_id_arrays(rows) else None

    @_traced_again_after_errors
    def evaluate(self, x: Rows, y: Labels, batch_size: int | None, sample_weight: Labels, **options: Any) -> Any:
        """Computes loss and metrics; see `Task.evaluate`."""
        task, pipeline = self._task, self._task.pipeline
        self._check_positive(batch_size=batch_size, steps=options["steps"])
        x, y = from_table(pipeline, x, y)
        x, is_raw = as_dataset(pipeline, x)
        self._check_devices(x)
        if not is_raw:
            options |= {"y": y, "batch_size": batch_size, "sample_weight": sample_weight}
            return keras.Model.evaluate(task, for_keras(x), **options)
        self._read_packed(x)
        with parts_are_cut():
            batches = pipeline.batches(x, y, sample_weight, batch_size=batch_size)
            if task.loss is not None:
                pipeline.check_labels(x, y)
            batches, options["steps"] = self._evaluated(part_of_process(batches), options["steps"])
            with fed(batches) as (batches,):
                return keras.Model.evaluate(task, batches, **options)

    @_traced_again_after_errors
    def train_on_batch(
        self, x: Rows, y: Labels, sample_weight: Labels, class_weight: Mapping[Any, float], return_dict: bool
    ) -> Any:
        """Trains on one batch; see `Task.train_on_batch`."""
        task = self._task
        if class_weight is not None:
            class_weight = self._class_weight(x, y, class_weight)
        batch = self._one_batch(x, y, sample_weight, training=True)
        self._build_optimizer()
        return keras.Model.train_on_batch(task, *batch, class_weight=class_weight, return_dict=return_dict)

    @_traced_again_after_errors
    def test_on_batch(self, x: Rows, y: Labels, sample_weight: Labels, return_dict: bool) -> Any:
        """Evaluates one batch; see `Task.test_on_batch`."""
        batch = self._one_batch(x, y, sample_weight, training=False)
        return keras.Model.test_on_batch(self._task, *batch, return_dict=return_dict)

    def _class_weight(self, x: Rows, y: Labels, class_weight: Any) -> Any:
        """`class_weight` as Keras takes it; `"balanced"` needs the labels."""
        labels = (y,) if isinstance(class_weight, str) else ()
        return self._task.pipeline.class_weight(x, class_weight, *labels)

    def _one_batch(self, x: Rows, y: Labels, sample_weight: Labels, *, training: bool) -> tuple[Any, ...]:
        pipeline = self._task.pipeline
        if not pipeline.is_raw(x):
            return x, y, sample_weight
        x, y = from_table(pipeline, x, y)
        if self._task.loss is not None:
            pipeline.check_labels(x, y)
        return pipeline.batches.one(x, y, sample_weight, training=training)

    def _strategy(self) -> Any:
        """The task's `tf.distribute` strategy; Keras has one on TensorFlow only."""
        return getattr(self._task, "distribute_strategy", None)

    def _check_devices(self, x: Rows) -> None:
        """Refuses batches whose labels count rows or words of all of it, where `tf.distribute` gives devices a part."""
        task, strategy = self._task, self._strategy()
        if strategy is not None and strategy.num_replicas_in_sync > 1 and task.pipeline.counts_rows(x):
            rule = "have one device: labels of this task count the rows or words of a whole batch"
            cure = "Use Keras on JAX for several devices: `keras_bert_layers.distribution.initialize()`."
            received = checks.Shown(f"{strategy.num_replicas_in_sync} devices")
            raise RuntimeError(checks.message(type(task).__name__, "strategy", rule, received, cure))

    def _read_packed(self, *data: Any) -> None:
        """Lets the backbones read rows of several texts, if there are such rows; others are read as before."""
        takes_sources = self._task.pipeline.takes_row_sources
        if takes_sources and any(isinstance(x, RowSource) and x.rule.is_packed for x in data):
            for backbone in backbones_of(self._task):
                backbone.packed_rows = True
            self.follow_layers()

    def _build_optimizer(self) -> None:
        """Creates the optimizer's variables: TensorFlow traces a function twice if its first trace creates some.

        If other weights are trained than those that it was built for, it is built again, and the training step too.
        See `rebuild` for what it keeps.
        """
        task, optimizer, weights = self._task, self._task.optimizer, self._task.trainable_variables
        if optimizer is None or (optimizer.built and is_built_for(optimizer, weights)):
            return
        strategy = self._strategy()
        with contextlib.nullcontext() if strategy is None else strategy.scope():
            if not optimizer.built:
                optimizer.build(weights)
                return
            rebuild(optimizer, weights)
        task.train_function = None


def data_to_build_with(strategy: Any, iterator: Any, data_batch: Any) -> tuple[Any, Any]:
    """The arguments with which Keras builds losses and metrics: under `tf.distribute`, the part of one device.

    Keras would add the parts of all devices, which fails if they are unequal.
    """
    if iterator is None or strategy is None:
        return iterator, data_batch
    local = strategy.experimental_local_results
    return None, keras.tree.map_structure(lambda leaf: local(leaf)[0], next(next(iter(iterator))[2]))


def _num_batches(batches: tf.data.Dataset) -> int:
    """How many batches there are; -1 where TensorFlow, whose iterators take long to begin, does not make them."""
    return int(batches.cardinality()) if is_of_tensorflow(batches) else -1


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"
