"""A prompt and some choices, of which one is right."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.decoding import decode_choices
from keras_bert_layers.layers import FlattenChoices, MultipleChoiceHead
from keras_bert_layers.layers.multiple_choice_head import ABSENT_SCORE
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks import _text_data as text_data
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
            y = _checked_in_graph(y, present[:, :widest])
        ids = _ids_of_choices(self._stream_preprocessor(), prompts, choices)
        return tuple(part for part in (ids, y, sample_weight) if part is not None)

    def predict(self, x: Any, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Logits `(rows, choices)`, -1e9 where there is no choice; `x` as in `fit`.

        Only the choices that are there are computed, `batch_size` times their mean number in a row at once. A dataset
        of text is read into memory first.
        """
        if not self._needs_preprocessing(x):
            return super().predict(x, batch_size=batch_size, **kwargs)
        prompts, choices = self._columns(self._read(x, kwargs.pop("steps", None)) if text_data.is_dataset(x) else x)
        scores = np.full(choices.shape, ABSENT_SCORE, np.float32)
        if len(prompts):
            present = _present(choices)
            rows = np.nonzero(present)[0]
            pairs = (prompts[rows], choices[present][:, None])
            num_pairs = math.ceil(len(rows) / len(prompts)) * (batch_size or 32)
            scores[present] = super().predict(pairs, batch_size=num_pairs, **kwargs)[:, 0]
        return scores

    def _read(self, dataset: Any, steps: int | None) -> tuple[list[bytes], list[list[bytes]]]:
        """The prompts and choices of a dataset."""
        self._check_dataset(dataset)
        prompts: list[bytes] = []
        choices: list[list[bytes]] = []
        for element in dataset if steps is None else dataset.take(steps):
            batch_prompts, batch_choices = element[0]
            prompts.extend(batch_prompts.numpy())
            choices.extend(list(row) for row in batch_choices.numpy())
        return prompts, choices

    def _check_dataset(self, dataset: Any) -> None:
        """Refuses a dataset that does not yield batches of prompts and choices."""
        element = dataset.element_spec
        first = element[0] if isinstance(element, tuple) else None
        if isinstance(first, tuple) and len(first) == 2:
            prompts, choices = first
            if prompts.dtype == choices.dtype == tf.string and (prompts.shape.rank, choices.shape.rank) == (1, 2):
                return
        rule = "yield `((prompts, choices), y)`, string tensors `(batch,)` and, ragged or not, `(batch, choices)`"
        cure = "Without labels: `((prompts, choices),)`. Call `dataset.batch(32)` first, if it yields single rows."
        raise ValueError(checks.message(type(self).__name__, "x", rule, element, cure))

    def _batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, shuffle: bool) -> Any:
        """A dataset of model inputs from columns, or from a dataset, of prompts and choices."""
        if text_data.is_dataset(x):
            text_data.refuse_beside_dataset(type(self).__name__, y=y, sample_weight=sample_weight)
            self._check_dataset(x)
            return x.map(self.preprocess, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
        x = self._columns(x)
        y = None if y is None else self._checked_places(y, x[1])
        return super()._batches(x, y, sample_weight, batch_size=batch_size, shuffle=shuffle)

    def _one_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, Any, Any]:
        """One batch of prompts and choices as arrays for the model; ids as they are."""
        if self._needs_preprocessing(x):
            x = self._columns(x)
            y = None if y is None else self._checked_places(y, x[1])
        return super()._one_batch(x, y, sample_weight)

    def _columns(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Prompts `(rows,)` and choices `(rows, choices)`, checked row by row, filled up with empty strings."""
        owner = type(self).__name__
        if not isinstance(x, tuple) or len(x) != 2:
            cure = "Write `(prompts, choices)`: a list of strings, and a list of lists of strings."
            raise ValueError(checks.message(owner, "x", "be a tuple of two columns", type(x), cure))
        prompts = text_data.as_columns(owner, x[0])
        choices = _as_choices(owner, x[1])
        if len(prompts) != len(choices):
            raise ValueError(
                f"`{owner}`: every prompt must have its row of choices. "
                f"Received: {len(prompts)} prompts and {len(choices)} rows of choices."
            )
        present = _present(choices)
        if not present.any(axis=1).all():
            row = int(np.argmin(present.any(axis=1)))
            raise ValueError(f"`{owner}`: every row must have a choice that is not empty. Received: none in row {row}.")
        return prompts, choices[:, : np.flatnonzero(present.any(axis=0)).max(initial=-1) + 1]

    def _checked_places(self, y: Any, choices: np.ndarray) -> np.ndarray:
        """Labels as integers, each the place of a choice of its row."""
        owner = type(self).__name__
        places = np.asarray(text_data.as_array(y))
        if places.dtype.kind not in "iuf":
            cure = "For a choice's own text: `[row.index(text) for row, text in zip(choices, texts)]`."
            raise TypeError(checks.message(owner, "y", "hold integers", places.dtype, cure))
        places = places.reshape(-1)
        if len(places) != len(choices):
            return places  # told with the other columns' lengths
        for row, place in enumerate(places):
            there = _present(choices[row])
            if not (place == np.floor(place) and 0 <= place < len(there) and there[int(place)]):
                raise ValueError(
                    f"`{owner}`: every label must be the place of a choice, counted from 0. "
                    f"Received: {place} in row {row}, which has {there.sum()} choices."
                )
        return places.astype(np.int32)

    def text_inputs(self) -> dict[str, Any]:
        """`prompt` `(batch,)` and `choices` `(batch, choices)`, short rows filled up with empty strings."""
        return {"prompt": TEXT, "choices": ((None, None), "string")}

    def _serve(self, *texts: Any) -> dict[str, Any]:
        """Strings to `choice`, `choice_index` and `probabilities`; only the choices that are there are computed."""
        prompts, choices = texts
        places = tf.where(tf.not_equal(choices, ""))  # [pairs, 2]
        pairs = (tf.gather(prompts, places[:, 0]), tf.gather_nd(choices, places)[:, tf.newaxis])
        scores = self._run_model(_ids_of_choices(self.preprocessor, *pairs))[:, 0]
        logits = tf.tensor_scatter_nd_update(tf.fill(tf.shape(choices), ABSENT_SCORE), places, scores)
        return decode_choices(logits, choices)

    def _serve_tokens(self, *texts: Any) -> dict[str, Any]:
        return _ids_of_choices(self.preprocessor, *texts)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "dropout": self.dropout}


def _as_choices(owner: str, choices: Any) -> np.ndarray:
    """Lists of strings, or an array or tensor of them, as an array of objects `(rows, choices)`."""
    rows = choices if isinstance(choices, list | tuple) else []
    for row, texts in enumerate(rows):
        if isinstance(texts, str | bytes):
            raise TypeError(
                f"`{owner}`: `choices` must hold a list of strings for each prompt. Received: {texts!r} in row {row}."
            )
    return text_data.as_table(owner, choices)


def _present(choices: np.ndarray) -> np.ndarray:
    """Which strings of an array of objects are not empty."""
    return choices.astype(bool)


def _ids_of_choices(preprocessor: BertPreprocessor, prompts: Any, choices: Any) -> dict[str, tf.Tensor]:
    """Each prompt with each of its choices as ids `(batch, choices, sequence)`, all padding where there is none."""
    shape = tf.shape(choices)
    ids = preprocessor((tf.repeat(prompts, shape[1]), tf.reshape(choices, [-1])))  # [B * choices, S]
    present = tf.reshape(tf.not_equal(choices, ""), [-1, 1])
    padding = {"token_ids": preprocessor.tokenizer.pad_id, "segment_ids": 0, "padding_mask": 0}
    ids = {key: tf.where(present, values, padding[key]) for key, values in ids.items()}
    return {key: tf.reshape(values, tf.concat([shape, tf.shape(values)[1:]], 0)) for key, values in ids.items()}


def _checked_in_graph(places: Any, present: tf.Tensor) -> tf.Tensor:
    """Labels `(batch,)`, each the place of a choice of its row."""
    places = tf.cast(places, tf.int32)
    owners = tf.reduce_any(tf.one_hot(places, tf.shape(present)[1], on_value=True, off_value=False) & present, axis=-1)
    known = tf.debugging.Assert(
        tf.reduce_all(owners),
        ["`BertMultipleChoice`: every label must be the place of a choice, counted from 0. Received: ", places],
    )
    with tf.control_dependencies([] if known is None else [known]):
        return tf.identity(places)
