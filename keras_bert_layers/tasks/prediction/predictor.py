"""`Predictor`: runs a model over many rows, those of similar length together."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks, shared_graphs
from keras_bert_layers._internal.keras_models import all_layers
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.types import Ids, Outputs, Rows, Tensor
from keras_bert_layers.preprocessing.preprocessors.long_texts import WINDOW_ROWS
from keras_bert_layers.tasks.feeding.columns import as_rows, has_key, is_dataset, is_single_row, num_rows, stacked
from keras_bert_layers.tasks.feeding.cut_texts import look_for_cuts
from keras_bert_layers.tasks.feeding.global_batches import predict_ids, predict_on_batch
from keras_bert_layers.tasks.feeding.streams import batches_of_pydataset, texts_of_table
from keras_bert_layers.tasks.graphs.heads import backbones_of
from keras_bert_layers.tasks.inputs import Inputs
from keras_bert_layers.tasks.prediction import _row_blocks as row_blocks
from keras_bert_layers.tasks.prediction.length_batches import LengthBatches, Progress, padded_rows, plan
from keras_bert_layers.tasks.prediction.new_head import NewHead
from keras_bert_layers.tasks.prediction.windows import outputs_in_parts, outputs_of_windows, run_windows


class Predictor:
    """Runs a model over raw text: sorted by length, within a budget of tokens, with progress, streaming.

    TensorFlow traces its functions once and keeps them until layers change. `forget` drops them; whatever else changes
    the model or its answers must call it.

    Args:
        model: the model that takes ids.
        parts: parts of the model that some rows go through alone, by name.
    """

    def __init__(self, model: keras.Model, parts: Mapping[Any, keras.Model] | None = None):
        self._model = model
        self._parts = parts or {}
        #: A head of the model that was not trained yet, which `warn_of_new_head` looks at.
        self.new_head: NewHead | None = None
        self._functions: dict[Any, Any] = {}
        self._traced_states: Any = None
        self._dense_layers = [layer for layer in all_layers(model) if isinstance(layer, keras.layers.Dense)]
        self._backbones = backbones_of(model)

    def follow_layers(self) -> None:
        """Drops the traced functions, Keras's own too, if layers have changed: LoRA, quantization, packed rows."""
        states: list[Any] = [(layer.lora_enabled, layer.quantization_mode) for layer in self._dense_layers]
        states += [backbone.packed_rows for backbone in self._backbones]
        if states == self._traced_states:
            return
        self.forget()
        if self._traced_states is not None:
            for model in (self._model, *self._parts.values()):
                model.train_function = model.test_function = model.predict_function = None
        self._traced_states = states

    def warn_of_new_head(self) -> None:
        """Warns, once, before the first answers of a head that was never trained."""
        head, self.new_head = self.new_head, None
        optimizer = getattr(self._model, "optimizer", None)
        # The first steps of a warm-up may have changed no weight.
        if head is not None and (optimizer is None or not int(optimizer.iterations)):
            head.look()

    def forget(self) -> None:
        """Drops all traced functions."""
        self._functions.clear()

    def traced_once(self, function: Callable[..., Any], signature: Any, **options: Any) -> Any:
        """`function` as a `tf.function` of that signature, traced once; on other backends the function itself."""
        if keras.backend.backend() != "tensorflow":
            return function
        # Methods of one object are equal; other functions must be long-lived.
        key = function, str(signature), *options.items()
        self.follow_layers()
        if key not in self._functions:
            self._functions[key] = tf.function(function, input_signature=signature, autograph=False, **options)
        return self._functions[key]

    def part(self, name: Any) -> keras.Model:
        """A part of the model, or all of it for None."""
        return self._model if name is None else self._parts[name]

    def predict(
        self, inputs: Inputs, x: Any, batch_size: int | None, max_tokens_per_batch: int | None = None, **options: Any
    ) -> Any:
        """The outputs of all rows of `x`, of text as `inputs` joins them; options as for `blocks`."""
        has_names, x = isinstance(x, Mapping), texts_of_table(inputs, x)
        is_one = is_single_row(x) and (has_names or not isinstance(x, tuple))
        if is_one and inputs.is_raw(x):
            return next(_rows_of_outputs(self.predict(inputs, as_rows(x), batch_size, max_tokens_per_batch, **options)))
        if inputs.is_raw(x):
            blocks = list(self.blocks(inputs, x, batch_size, max_tokens_per_batch, **options))
            if blocks:
                return inputs.join(blocks)
            return inputs.empty(x, keras.tree.map_structure(_without_rows, self.part(inputs.part).output))
        if max_tokens_per_batch is not None:
            rule, cure = "be None for ids", "Ids are computed in the batches that they come in."
            raise ValueError(checks.message(inputs.owner, "max_tokens_per_batch", rule, max_tokens_per_batch, cure))
        return predict_ids(self._model_for(x), inputs.model_inputs(x), batch_size, **options)

    def stream(
        self, inputs: Inputs, x: Rows, batch_size: int | None, max_tokens_per_batch: int | None, *, verbose: str | int
    ) -> Iterator[Any]:
        """The outputs row by row; nothing of the next block is read before the rows of the last were taken."""
        if not inputs.is_raw(x):
            cure = "Make the task with a preprocessor and give it texts; `predict` takes ids."
            raise ValueError(checks.message(inputs.owner, "x", "be texts", type(x), cure))
        blocks = self.blocks(inputs, x, batch_size, max_tokens_per_batch, verbose=verbose)
        return itertools.chain.from_iterable(map(_rows_of_outputs, blocks))

    def predict_on_batch(self, inputs: Inputs, x: Any) -> Any:
        """The outputs of one batch of texts or ids."""
        if inputs.is_raw(x):
            return self.predict(inputs, x, None, verbose=0)
        return keras.Model.predict_on_batch(self._model_for(x), inputs.model_inputs(x))

    def _model_for(self, ids: Ids) -> keras.Model:
        """The model that takes these ids: all of it, or for ids of single rows a part."""
        self.warn_of_new_head()
        self.follow_layers()
        return self.part(self._model.part if has_key(ids, "token_ids") else None)

    def blocks(
        self,
        inputs: Inputs,
        x: Rows,
        batch_size: int | None = None,
        max_tokens_per_batch: int | None = None,
        *,
        verbose: str | int = "auto",
        steps: int | None = None,
        callbacks: Any = None,
        compute: Callable[[Any, Callable[..., Any]], Any] | None = None,
    ) -> Iterator[Any]:
        """Yields what `compute` returns for each block of a few thousand rows.

        Arguments are checked at once, before the first block is read.

        Args:
            inputs: what kind of data `x` is.
            x: columns, a dataset of batches, or an iterable of rows.
            batch_size: the most rows per step.
            max_tokens_per_batch: the most tokens per step, padding included.
            verbose: Keras's progress bar.
            steps: the first so many batches of `x`; all if None.
            callbacks: Keras callbacks.
            compute: takes checked columns and `run`, as `Inputs.outputs`, which it is if None.
        """
        self.warn_of_new_head()
        sizes = {"batch_size": batch_size, "max_tokens_per_batch": max_tokens_per_batch, "steps": steps}
        for name, value in sizes.items():
            checks.optional(checks.positive_integer, inputs.owner, name, value)
        if batch_size is None and max_tokens_per_batch is None:
            max_tokens_per_batch = inputs.tokens_per_step
        rows, size = _row_stream(inputs, texts_of_table(inputs, x), steps, batch_size)
        progress = Progress(self._model, num_rows=size, verbose=verbose, callbacks=callbacks)
        batches = LengthBatches(
            max_rows=batch_size,
            max_tokens=max_tokens_per_batch,
            few_shapes=keras.backend.backend() == "jax" or self._model.jit_compile is True,
            progress=progress,
        )
        compute = compute or inputs.outputs

        def run(ids: Any, preprocessor: Any, *, part: Any = None, **options: Any) -> Any:
            if WINDOW_ROWS in ids:
                return outputs_of_windows(run, self.step, ids, preprocessor, part, **options)
            return batches.run(self.step(part), ids, preprocessor, **options)

        def outputs() -> Iterator[Any]:
            progress.begin()
            bounds = {"max_rows": inputs.block_rows, "max_characters": inputs.block_characters}
            for start, block in row_blocks.blocks(inputs.owner, rows, **bounds):
                progress.begin_block(len(block))
                columns = inputs.columns(row_blocks.as_columns(block), first_row=start)
                look_for_cuts(inputs, columns)
                yield compute(columns, run)
            progress.end()

        return outputs()

    def step(self, part: Hashable = None) -> Callable[[dict[str, Any]], Any]:
        """A function from a batch of ids to the outputs of the model, or of a part of it."""
        model = self.part(part)
        if keras.backend.backend() != "tensorflow":
            return functools.partial(predict_on_batch, model)
        if model.run_eagerly:
            return model.predict_step
        specs = {name: tf.TensorSpec(value.shape, value.dtype) for name, value in model.input.items()}
        return self.traced_once(model.predict_step, [specs], jit_compile=model.jit_compile)

    def run(self, ids: Any, part: Any) -> Any:
        """The outputs of the model, or of a part, as TensorFlow tensors; vectors of many rows are computed in parts."""
        if WINDOW_ROWS in ids:
            return run_windows(self.run_at_once, ids, part)
        outputs = self.part(part).output
        # Windows come in parts already, and scores of the whole vocabulary are too large to be copied.
        are_vectors = all(None not in output.shape[1:] for output in keras.tree.flatten(outputs))
        if keras.backend.backend() != "tensorflow" or not are_vectors:
            return self.run_at_once(ids, part)
        return outputs_in_parts(functools.partial(self.run_at_once, part=part), ids, outputs)

    def run_at_once(self, ids: Any, part: Any) -> Any:
        """The same for all rows together; on JAX, which compiles each number of rows, for a power of two of them."""
        model = self.part(part)
        if keras.backend.backend() == "tensorflow":
            return shared_graphs.traced_once(model, ids, training=False)
        arrays = keras.tree.map_structure(np.asarray, ids)
        size = len(keras.tree.flatten(arrays)[0])
        if keras.backend.backend() == "jax" and size:
            chosen = padded_rows(np.arange(size))
            arrays = keras.tree.map_structure(lambda array: array[chosen], arrays)
        outputs = predict_on_batch(model, arrays)
        return keras.tree.map_structure(lambda output: tf.constant(np.asarray(output)[:size]), outputs)

    def ask(self, inputs: Inputs, serve: Callable[..., Any], x: Rows, batch_size: int) -> dict[str, np.ndarray]:
        """The answers of `serve`, a function of batches of strings, to all rows of `x`; similar lengths together.

        Answers of as many columns as a batch needs are padded to the widest batch, with `b""` for strings and
        `inputs.answer_fill` for numbers.
        """
        self.warn_of_new_head()
        checks.positive_integer(inputs.owner, "batch_size", batch_size)
        if is_dataset(x):
            rows = list(_row_stream(inputs, x, None, None)[0])
            x = row_blocks.as_columns(rows) if rows else []
        columns = [np.asarray(column) for column in inputs.answer_columns(x)]
        look_for_cuts(inputs, tuple(columns) if len(columns) > 1 else columns[0])
        # Tokenizing a batch costs little beside its model, so characters are good enough as lengths.
        sizes = np.array([row_blocks.num_characters(row) for row in zip(*columns, strict=True)], int)
        chosen = list(plan(sizes, width=int, max_rows=batch_size, max_tokens=None)) or [np.arange(0)]
        specs = tuple(tf.TensorSpec(shape, dtype) for shape, dtype in inputs.text_inputs.values())
        serve = self.traced_once(serve, specs)
        parts = list(zip(columns, specs, strict=True))
        batches = [serve(*(tf.convert_to_tensor(part[rows], spec.dtype) for part, spec in parts)) for rows in chosen]
        found = {name: [np.asarray(batch[name]) for batch in batches] for name in batches[0]}
        position = np.argsort(np.concatenate(chosen))
        return {
            name: stacked(parts, b"" if parts[0].dtype == object else inputs.answer_fill)[position]
            for name, parts in found.items()
        }


def _row_stream(inputs: Inputs, x: Any, steps: int | None, batch_size: int | None) -> tuple[Iterator[Any], int | None]:
    """The rows of `x`, or of its first batches, and their number where it is known."""
    if is_dataset(x):
        inputs.check_dataset(x)
    if is_dataset(x) or isinstance(x, keras.utils.PyDataset):
        batches = itertools.islice(x if is_dataset(x) else batches_of_pydataset(x), steps)
        texts = (texts_of_table(inputs, batch[0] if isinstance(batch, tuple) else batch) for batch in batches)
        return itertools.chain.from_iterable(map(row_blocks.rows_of_columns, texts)), None
    size = None
    if not row_blocks.is_stream(x):
        x = inputs.columns(x)
        size = num_rows(x)
        x = row_blocks.rows_of_columns(x)
    if steps is None:
        return iter(x), size
    most = steps * (batch_size or 32)
    return itertools.islice(x, most), None if size is None else min(most, size)


def _rows_of_outputs(outputs: Outputs) -> Iterator[Any]:
    """What `predict_stream` yields for each row of a block."""
    if isinstance(outputs, np.ndarray | list):
        return iter(outputs)
    size = len(keras.tree.flatten(outputs)[0])
    return (keras.tree.map_structure(operator.itemgetter(row), outputs) for row in range(size))


def _without_rows(output: Tensor) -> np.ndarray:
    """An array with the axes and dtype of an output, and without rows."""
    return np.zeros((0, *(size or 0 for size in output.shape[1:])), output.dtype)
