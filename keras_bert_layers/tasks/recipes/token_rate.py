"""`TokenRate`: tokens per second in the logs of `fit`."""

import time
from collections.abc import Mapping
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks.task import Task


class TokenRate(keras.callbacks.Callback):
    """A callback that adds `tokens` and `tokens_per_second` to the logs of `fit` of a task.

    `tokens` are those that the epoch has trained on so far, special tokens included and padding not. The time is that
    of the whole epoch: reading, training and the callbacks within it. What reads the logs finds both there: the
    history, and the callbacks after it in the list, such as `CSVLogger` and `TensorBoard`.

    Args:
        each_step: also in the logs of each step, such as those of `TensorBoard(update_freq=100)`. `fit` then waits for
            each step before it starts the next one.

    Raises:
        TypeError: `each_step` is not True or False; `fit` of a model that is not a task of this package.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=8, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "it", "rains", "snows"])
        >>> masked_lm = kbl.BertMaskedLM(kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer))
        >>> history = masked_lm.fit(["It rains.", "It"], verbose=0, callbacks=[TokenRate()]).history
        >>> history["tokens"], history["tokens_per_second"][0] > 0
        ([8.0], True)
    """

    def __init__(self, *, each_step: bool = False):
        super().__init__()
        self.each_step = checks.boolean(type(self).__name__, "each_step", each_step)
        self.async_safe = not each_step  # Keras then need not wait for a step's logs

    def set_model(self, model: keras.Model) -> None:
        """Makes the task count the tokens that it is trained on."""
        super().set_model(model)
        checks.instance(type(self).__name__, "model", model, Task)
        model.trainer.count_tokens()

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Notes the time."""
        self._start = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Adds to the logs of a step."""
        if self.each_step:
            self._add_to(logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds to the logs of an epoch."""
        self._add_to(logs)

    def _add_to(self, logs: dict[str, Any]) -> None:
        logs["tokens_per_second"] = float(logs["tokens"]) / (time.perf_counter() - self._start)
