"""A prompt and some choices, of which one is right."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.decoding import decode_choices
from keras_bert_layers.layers import FlattenChoices, MultipleChoiceHead
from keras_bert_layers.layers.multiple_choice_head import ABSENT_SCORE
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks import _choice_data as choice_data
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._length_batches import LengthBatches, on_host
from keras_bert_layers.tasks._row_order import RowOrder
from keras_bert_layers.tasks._task import TEXT
from keras_bert_layers.tasks._text_task import TextTask


@register
class BertMultipleChoice(TextTask):
    """Which choice follows from a prompt: every pair of prompt and choice gets one score, and the best one wins.

    Rows may have different numbers of choices. In columns and in arrays an empty string is not a choice: it fills up a
    row that has fewer than others. A row's softmax and loss see its own choices only.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`; with one, `fit`, `evaluate` and `predict` take raw text: `x` is a tuple
            `(prompts, choices)`, a list of strings and a list of lists of strings, or an array or tensor of each; `y`
            holds the place of the right choice in each row, counted from 0. A `tf.data.Dataset` yields
            `((prompts, choices), y)`, with the choices ragged, or filled up with empty strings.
        dropout: the share of pooled features dropped in training before the dense layer; the backbone's if None.
        name: the model's name.

    Returns:
        From `predict`: float32 logits `(rows, choices)`, as many columns as the longest row has choices, -1e9 where
        there is no choice. From a call on ids `(batch, choices, sequence)`: logits `(batch, choices)`, -1e9 where the
        padding mask of a choice is all 0.

    Raises:
        TypeError: a backbone or a preprocessor that is none; a call on text; choices that are not lists of strings.
        ValueError: an argument out of range; a row without choices, or whose label is not the place of one of them
            (the row is named).

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=7, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "bread", "boil", "bake"])
        >>> chooser = kbl.BertMultipleChoice(kbl.BertBackbone(config), preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> prompts, choices = ["bread", "bread"], [["boil", "bake"], ["bake", "boil", "bread"]]
        >>> history = chooser.fit((prompts, choices), [1, 0], verbose=0)
        >>> chooser.predict((prompts, choices), verbose=0).shape
        (2, 3)

    References:
        Devlin et al. 2018, arXiv:1810.04805, section 4.4 (SWAG).
    """

    fill_value = ABSENT_SCORE

    def __init__(
        self,
        backbone: BertBackbone,
        *,
        preprocessor: BertPreprocessor | None = None,
        dropout: float | None = None,
        name: str | None = None,
    ):
        self._check_parts(backbone, preprocessor)
        dropout = backbone.config.dropout if dropout is None else dropout
        head = MultipleChoiceHead(
            dropout=dropout,
            initializer_range=backbone.config.initializer_range,
            dtype=backbone.dtype_policy,
            name="multiple_choice_head",
        )
        inputs = {key: keras.Input((None, None), dtype="int32", name=key) for key in backbone.input}
        flatten = FlattenChoices(name="flatten_choices")
        pooled = backbone({key: flatten(ids) for key, ids in inputs.items()})["pooled_output"]  # [B * choices, H]
        # A choice without a single token is none.
        outputs = head(pooled, choice_mask=keras.ops.max(inputs["padding_mask"], axis=-1))
        super().__init__(backbone, preprocessor, outputs=outputs, inputs=inputs, name=name)
        self.dropout = dropout

    def default_loss(self) -> keras.losses.Loss:
        """Cross entropy of the logits of a row's choices."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The share of rows whose right choice has the highest logit, named `"accuracy"`."""
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def preprocess(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of prompts and choices as ids `(batch, choices, sequence)`; runs inside `tf.data.Dataset.map`."""
        prompts, choices = x
        if isinstance(choices, tf.RaggedTensor):
            choices = choices.to_tensor(default_value="")
        present = tf.not_equal(choices, "")  # [B, choices]
        places = tf.range(1, tf.shape(choices)[1] + 1)
        widest = tf.reduce_max(tf.where(present, places, 0))  # of this batch; the columns are as wide as all rows need
        choices = choices[:, :widest]
        if y is not None:
            y = choice_data.checked_in_graph(y, present[:, :widest])
        ids = choice_data.ids_of_choices(self._stream_preprocessor(), prompts, choices)
        return tuple(part for part in (ids, y, sample_weight) if part is not None)

    def _check_dataset(self, dataset: Any) -> None:
        choice_data.check_dataset(type(self).__name__, dataset)

    def _block_outputs(self, columns: Any, batches: LengthBatches) -> np.ndarray:
        """The scores of a block of rows; only the choices that are there are computed, and each is a row of a step."""
        prompts, choices = columns
        present = choice_data.present(choices)
        preprocessor = self._stream_preprocessor()
        pairs = prompts[np.nonzero(present)[0]], choices[present]
        scores = np.full(choices.shape, ABSENT_SCORE, np.float32)
        ids = on_host(preprocessor, pairs)
        scores[present] = batches.run(self._compiled_step(), ids, preprocessor, finish=_as_only_choices)[:, 0]
        return scores

    def _batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, order: RowOrder) -> Any:
        """A dataset of model inputs from columns, or from a dataset, of prompts and choices."""
        if text_data.is_dataset(x):
            text_data.refuse_beside_dataset(type(self).__name__, y=y, sample_weight=sample_weight)
            self._check_dataset(x)
            return x.map(self.preprocess, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        x = self._columns(x)
        y = None if y is None else choice_data.checked_places(type(self).__name__, y, x[1])
        return super()._batches(x, y, sample_weight, batch_size=batch_size, order=order)

    def _one_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, Any, Any]:
        """One batch of prompts and choices as arrays for the model; ids as they are."""
        if self._needs_preprocessing(x):
            x = self._columns(x)
            y = None if y is None else choice_data.checked_places(type(self).__name__, y, x[1])
        return super()._one_batch(x, y, sample_weight)

    def _columns(self, x: Any, *, first_row: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Prompts `(rows,)` and choices `(rows, choices)`, checked row by row, filled up with empty strings."""
        return choice_data.as_columns(type(self).__name__, x, first_row=first_row)

    def text_inputs(self) -> dict[str, Any]:
        """`prompt` `(batch,)` and `choices` `(batch, choices)`, short rows filled up with empty strings."""
        return {"prompt": TEXT, "choices": ((None, None), "string")}

    def _serve(self, *texts: Any) -> dict[str, Any]:
        """Strings to `choice`, `choice_index` and `probabilities`; only the choices that are there are computed."""
        prompts, choices = texts
        places = tf.where(tf.not_equal(choices, ""))  # [pairs, 2]
        pairs = (tf.gather(prompts, places[:, 0]), tf.gather_nd(choices, places)[:, tf.newaxis])
        scores = self._run_model(self._serve_tokens(*pairs))[:, 0]
        logits = tf.tensor_scatter_nd_update(tf.fill(tf.shape(choices), ABSENT_SCORE), places, scores)
        return decode_choices(logits, choices)

    def _serve_tokens(self, *texts: Any) -> dict[str, Any]:
        return traced_once(self._ids_of_choices, *texts)

    def _ids_of_choices(self, prompts: Any, choices: Any) -> dict[str, Any]:
        return choice_data.ids_of_choices(self.preprocessor, prompts, choices)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "dropout": self.dropout}


def _as_only_choices(ids: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Ids `(pairs, sequence)` as `(pairs, 1, sequence)`."""
    return {name: values[:, np.newaxis] for name, values in ids.items()}
