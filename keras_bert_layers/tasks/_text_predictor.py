"""Raw text through a task to its outputs: lists, generators without end, single batches."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks import _row_blocks as row_blocks
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._length_batches import LengthBatches, on_host, stacked
from keras_bert_layers.tasks._progress import Progress
from keras_bert_layers.tasks._text_reader import TextReader


class TextPredictor(TextReader):
    """A task that is asked about texts.

    With a preprocessor, `predict` takes raw text; ids are taken as they are.
    """

    #: How many rows are sorted by length at a time.
    block_rows = row_blocks.BLOCK_ROWS

    #: What stands where a row's outputs are narrower than those of the widest row.
    fill_value = 0.0

    def __init__(self, *args: Any, **kwargs: Any):
        self._step_functions: dict[Any, Any] = {}
        super().__init__(*args, **kwargs)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        *,
        max_tokens_per_batch: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """The model's outputs as NumPy arrays, as `keras.Model.predict`.

        Texts are computed from the longest to the shortest, those of about one length together, and put back in order.

        Args:
            x: with a preprocessor, a list, array, tensor or pandas column of strings, or a tuple of two for pairs; a
                `tf.data.Dataset` of batches; or any iterable that gives one text, or one tuple of texts, at a time,
                such as a generator. It may be empty. Without a preprocessor, or if it holds `"token_ids"`, what Keras
                takes.
            batch_size: the most rows a step; for ids 32 if None.
            max_tokens_per_batch: the most tokens a step, padding and special tokens included; a longer text is a step
                by itself. None is 4096 on a CPU and 65536 on an accelerator, and no bound where `batch_size` is given.
                Not for ids.
            verbose: Keras's progress bar, over rows: 0 shows nothing, 1 and "auto" show it, 2 shows one line.
            steps: the first so many batches of `x`, `batch_size` or else 32 rows each where it is not a dataset; all
                if None.
            callbacks: Keras callbacks.

        Returns:
            One row of outputs a row of `x`, in order.

        Raises:
            TypeError, ValueError: text that is not strings (the row is named), or not as the task wants it.
        """
        if not self._needs_preprocessing(x):
            self._refuse_budget(max_tokens_per_batch)
            return super().predict(x, batch_size=batch_size, verbose=verbose, steps=steps, callbacks=callbacks)
        blocks = self._predicted_blocks(
            x, batch_size, max_tokens_per_batch=max_tokens_per_batch, verbose=verbose, steps=steps, callbacks=callbacks
        )
        found = list(blocks)
        if not found:
            return self._no_outputs(x)
        return keras.tree.map_structure(lambda *parts: stacked(parts, self.fill_value), *found)

    def predict_stream(
        self,
        x: Any,
        batch_size: int | None = None,
        *,
        max_tokens_per_batch: int | None = None,
        verbose: Any = 0,
    ) -> Iterator[Any]:
        """The rows of `predict` one by one, for more texts than fit into memory.

        Rows are read in blocks of a few thousand, which are sorted and computed as in `predict`; no more than a block
        is held, and nothing of the next one is read before the rows of the last were taken.

        Args:
            x: as in `predict`; texts, not ids.
            batch_size: as in `predict`.
            max_tokens_per_batch: as in `predict`.
            verbose: as in `predict`.

        Yields:
            The outputs of each row of `x`, in order, as NumPy arrays without the axis of rows.

        Raises:
            TypeError, ValueError: as `predict`. What `x` itself raises comes through unchanged.
        """
        if not self._needs_preprocessing(x):
            cure = "Make the task with a preprocessor and give it texts; `predict` takes ids."
            raise ValueError(checks.message(type(self).__name__, "x", "be texts", type(x), cure))
        blocks = self._predicted_blocks(
            x,
            batch_size,
            max_tokens_per_batch=max_tokens_per_batch,
            verbose=verbose,
            compute=self._stream_outputs,
        )
        return itertools.chain.from_iterable(map(_rows, blocks))

    def _refuse_budget(self, max_tokens_per_batch: int | None) -> None:
        if max_tokens_per_batch is not None:
            owner, cure = type(self).__name__, "Ids are computed in the batches that they come in."
            raise ValueError(
                checks.message(owner, "max_tokens_per_batch", "be None for ids", max_tokens_per_batch, cure)
            )

    def _predicted_blocks(
        self,
        x: Any,
        batch_size: int | None,
        *,
        max_tokens_per_batch: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Any = None,
        compute: Callable[[Any, LengthBatches], Any] | None = None,
    ) -> Iterator[Any]:
        """What `compute` (`_block_outputs` if None) gives for one block after the other; arguments are checked now."""
        owner = type(self).__name__
        sizes = {"batch_size": batch_size, "max_tokens_per_batch": max_tokens_per_batch, "steps": steps}
        for name, value in sizes.items():
            if value is not None:
                checks.positive_integer(owner, name, value)
        rows, num_rows = self._row_stream(x, steps, batch_size)
        progress = Progress(self, num_rows=num_rows, verbose=verbose, callbacks=callbacks)
        batches = LengthBatches(
            max_rows=batch_size,
            max_tokens=max_tokens_per_batch,
            few_shapes=keras.backend.backend() == "jax" or self.jit_compile is True,
            progress=progress,
        )

        compute = compute or self._block_outputs

        def outputs() -> Iterator[Any]:
            progress.begin()
            for start, block in row_blocks.blocks(owner, rows, max_rows=self.block_rows):
                progress.begin_block(len(block))
                yield compute(self._columns(row_blocks.as_columns(block), first_row=start), batches)
            progress.end()

        return outputs()

    def _row_stream(self, x: Any, steps: int | None, batch_size: int | None) -> tuple[Iterator[Any], int | None]:
        """The rows of `x`, or of its first batches, and how many there are where that is known."""
        if text_data.is_dataset(x):
            self._check_dataset(x)
            return row_blocks.rows_of_dataset(x if steps is None else x.take(steps)), None
        num_rows = None
        if not row_blocks.is_stream(x):
            x = self._columns(x)
            num_rows = text_data.num_rows(x)
            x = row_blocks.rows_of_columns(x)
        if steps is None:
            return iter(x), num_rows
        most = steps * (batch_size or 32)
        return itertools.islice(x, most), None if num_rows is None else min(most, num_rows)

    def _check_dataset(self, dataset: Any) -> None:
        """Refuses a dataset that does not yield batches of what the task takes."""
        text_data.check_dataset(type(self).__name__, dataset, most=self.most_texts)

    def _block_outputs(self, columns: Any, batches: LengthBatches) -> Any:
        """The outputs for a block of rows, as NumPy arrays; a subclass with other rows than those of its model says."""
        return batches.run(self._compiled_step(), self._model_inputs(columns), self._stream_preprocessor())

    def _stream_outputs(self, columns: Any, batches: LengthBatches) -> Any:
        """The same for `predict_stream`; a subclass whose outputs are not one a row gives a list."""
        return self._block_outputs(columns, batches)

    def _model_inputs(self, columns: Any) -> Any:
        """The model's inputs for a block of rows."""
        return on_host(self.preprocess, columns)[0]

    def _compiled_step(self, model: Any = None) -> Callable[[dict[str, Any]], Any]:
        """A function from a batch of ids to the outputs of the model, or of a part; on TensorFlow traced once."""
        model = self if model is None else model
        if keras.backend.backend() != "tensorflow":
            return functools.partial(keras.Model.predict_on_batch, model)
        if model.run_eagerly:
            return lambda ids: model.predict_step((ids,))
        key = (model.name, model.jit_compile, *(backbone.padding_free for backbone in self._backbones()))
        if key not in self._step_functions:
            specs = {name: tf.TensorSpec(value.shape, value.dtype) for name, value in model.input.items()}
            self._step_functions[key] = tf.function(
                lambda ids: model.predict_step((ids,)),
                input_signature=[specs],
                jit_compile=model.jit_compile,
                autograph=False,
            )
        return self._step_functions[key]

    def _no_outputs(self, x: Any) -> Any:
        """What `predict` gives for no rows."""
        return keras.tree.map_structure(_no_rows, self.output)

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch, as `keras.Model.predict_on_batch`; lists or arrays of text, or ids."""
        if not self._needs_preprocessing(x):
            return super().predict_on_batch(x)
        return super().predict_on_batch(keras.tree.map_structure(np.asarray, self.preprocess(self._columns(x))[0]))


def _no_rows(output: Any) -> np.ndarray:
    """What `predict` gives for no texts: an array with the output's axes and dtype, and nothing in it."""
    return np.zeros((0, *(size or 0 for size in output.shape[1:])), output.dtype)


def _rows(block: Any) -> Iterator[Any]:
    """The rows of a block's outputs."""
    if isinstance(block, np.ndarray | list):
        return iter(block)
    num_rows = len(keras.tree.flatten(block)[0])
    return (keras.tree.map_structure(operator.itemgetter(row), block) for row in range(num_rows))
