"""`answer` in Python: takes rows or a single one, and returns strings as `str`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keras_bert_layers._internal.types import Rows
from keras_bert_layers.export.text_task import TextTask
from keras_bert_layers.tasks.feeding.columns import as_rows, check_takes_text, is_single_row
from keras_bert_layers.tasks.feeding.streams import texts_of_table

_AS_TEXT = np.frompyfunc(lambda text: text.decode("utf-8", "replace"), 1, 1)


def ask(task: TextTask, serve: Callable[..., Any], x: Rows, batch_size: int) -> dict[str, Any]:
    """The answers of a function of strings, as a signature has, to all rows of `x` or to a single one.

    Args:
        task: the task.
        serve: one of its functions that give answers.
        x: as in `Task.answer`.
        batch_size: rows per step.

    Raises:
        ValueError: the task has no preprocessor.
    """
    check_takes_text(task)
    x = texts_of_table(task.pipeline, x)
    is_one = is_single_row(x)
    answers = as_text(task.predictor.ask(task.pipeline, serve, as_rows(x) if is_one else x, batch_size))
    return {name: values[0] for name, values in answers.items()} if is_one else answers


def as_text(answers: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The answers with `str` where strings are `bytes`; invalid UTF-8 becomes U+FFFD."""
    return {
        name: _AS_TEXT(values) if values.dtype == object and values.size else values for name, values in answers.items()
    }
