"""What an exported model would answer, asked from Keras."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks import _row_blocks as row_blocks
from keras_bert_layers.tasks._length_batches import plan, stacked
from keras_bert_layers.tasks._text_predictor import TextPredictor


class TextAnswerer(TextPredictor):
    """A task that answers texts as its exported model does."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self._serve_functions: dict[Any, Any] = {}

    def answer(self, x: Any, batch_size: int = 32) -> dict[str, np.ndarray]:
        """The answers of the exported model's `serving_default`, without exporting it.

        Args:
            x: texts as in `predict`: a list, array or tensor, or a tuple with one of them for each text input.
            batch_size: rows a step.

        Returns:
            One array for each answer, rows first, strings as `bytes` in an array of objects. An answer of as many
            columns as a batch needs is padded to the widest batch, with `b""` for strings and -1 for numbers.

        Raises:
            ValueError: the task has no preprocessor; what `predict` refuses.
        """
        return self._ask(self._serve, x, batch_size)

    def _ask(self, serve: Any, x: Any, batch_size: int) -> dict[str, np.ndarray]:
        """What a function of batches of strings, as a signature has, answers to all rows of `x`; see `answer`."""
        if self.preprocessor is None:
            cure = "Make the task with `preprocessor=BertPreprocessor(tokenizer)`."
            raise ValueError(checks.message(type(self).__name__, "preprocessor", "be given for raw text", None, cure))
        checks.positive_integer(type(self).__name__, "batch_size", batch_size)
        columns = [np.asarray(column) for column in self._answer_columns(x)]
        # Texts of about one length together; what a batch of strings costs to tokenize is little beside its model.
        sizes = np.array([row_blocks.num_characters(row) for row in zip(*columns, strict=True)], int)
        chosen = list(plan(sizes, width=int, max_rows=batch_size, max_tokens=None)) or [np.arange(0)]
        serve = self._compiled(serve)
        batches = [serve(*(tf.convert_to_tensor(column[rows], tf.string) for column in columns)) for rows in chosen]
        found = {name: [np.asarray(batch[name]) for batch in batches] for name in batches[0]}
        place = np.argsort(np.concatenate(chosen))
        return {name: stacked(parts, b"" if parts[0].dtype == object else -1)[place] for name, parts in found.items()}

    def _answer_columns(self, x: Any) -> list[Any]:
        """One column of strings for each of `text_inputs`."""
        columns = self._columns(x)
        columns = list(columns) if isinstance(columns, tuple) else [columns]
        names = list(self.text_inputs())
        if len(columns) != len(names):
            rule = f"hold {len(names)} texts a row: {names}"
            raise ValueError(checks.message(type(self).__name__, "x", rule, f"{len(columns)} columns"))
        return columns

    def _compiled(self, serve: Any) -> Any:
        """A function of strings as a graph for all sizes, traced once; as it is where TensorFlow cannot trace it."""
        if keras.backend.backend() != "tensorflow":
            return serve
        specs = tuple(tf.TensorSpec(shape, dtype) for shape, dtype in self.text_inputs().values())
        key = (serve.__name__, specs)
        if key not in self._serve_functions:
            self._serve_functions[key] = tf.function(serve, input_signature=specs, autograph=False)
        return self._serve_functions[key]
