"""What the masked language model and the pretrainer have in common: masks to learn from, and masks to fill."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.shared_graphs import traced_once
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.decoding import decode_masks, find_masks
from keras_bert_layers.export import Signature
from keras_bert_layers.layers import MaskedLMHead
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.masked_lm_generator import MaskedLMGenerator, check_masking, check_tokenizer
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._length_batches import LengthBatches, on_host
from keras_bert_layers.tasks._mask_reader import MaskReader
from keras_bert_layers.tasks._row_order import RowOrder
from keras_bert_layers.tasks._text_task import TextTask

POSITIONS = "mask_positions"


def masked_inputs(backbone: BertBackbone) -> dict[str, Any]:
    """The backbone's inputs, and the positions to predict, int32 `(batch, masks)`."""
    return {**backbone.input, POSITIONS: keras.Input(shape=(None,), dtype="int32", name=POSITIONS)}


def masked_lm_head(
    backbone: BertBackbone, *, activation: str | None = None, layer_norm_epsilon: float | None = None
) -> MaskedLMHead:
    """A fresh head as the backbone's config says, where it is not said otherwise."""
    config = backbone.config
    return MaskedLMHead(
        backbone,
        activation=config.activation if activation is None else activation,
        layer_norm_epsilon=config.layer_norm_epsilon if layer_norm_epsilon is None else layer_norm_epsilon,
        initializer_range=config.initializer_range,
        dtype=backbone.dtype_policy,
        name="masked_lm_head",
    )


class MaskedTextTask(TextTask):
    """A task that hides tokens of its texts and learns to find them.

    Training draws other masks in every epoch. Evaluation draws those that follow from a text and the seed, so that it
    gives the same numbers again, in batches of any size.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor`, or None for a task that takes ids only.
        inputs: what `masked_inputs` gives.
        outputs: the functional model's outputs.
        top_k: how many tokens an answer has for each mask.
        masking: the arguments of the `MaskedLMGenerator`.
        name: the model's name.
    """

    #: A row's outputs are as wide as the vocabulary, 120 KB for each mask.
    block_rows = 256

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor | None,
        *,
        inputs: Any,
        outputs: Any,
        top_k: int,
        masking: dict[str, Any],
        name: str | None,
    ):
        super().__init__(backbone, preprocessor, inputs=inputs, outputs=outputs, name=name)
        self.top_k = top_k
        self._masking = _Plain(masking)
        self._generator: Any = None
        self._reader: Any = None
        if preprocessor is not None:
            self._generator = _Plain(MaskedLMGenerator(preprocessor.tokenizer, **masking))
            self._reader = MaskReader(self._stream_preprocessor())

    @classmethod
    def _check_masking(cls, backbone: Any, preprocessor: Any, top_k: Any, masking: dict[str, Any]) -> None:
        """Refuses wrong arguments in the task's own name, before it makes its graph."""
        cls._check_parts(backbone, preprocessor)
        check_masking(cls.__name__, **masking)
        size = backbone.config.vocabulary_size
        if preprocessor is not None:
            check_tokenizer(cls.__name__, preprocessor.tokenizer)
            size = preprocessor.tokenizer.vocabulary_size()
        if checks.positive_integer(cls.__name__, "top_k", top_k) > size:
            raise ValueError(checks.message(cls.__name__, "top_k", f"be at most {size}, the vocabulary's size", top_k))

    @property
    def generator(self) -> MaskedLMGenerator:
        """The generator of masks for training."""
        return self._generator.value

    def compile(self, *args: Any, metrics: Any = "auto", weighted_metrics: Any = None, **kwargs: Any) -> None:
        """Sets how to train, as `Task.compile`; every metric counts the masked positions only."""
        if isinstance(metrics, str) and metrics == "auto":
            metrics = self.default_metrics() if weighted_metrics is None else None
        if weighted_metrics is None:
            metrics, weighted_metrics = None, metrics
        super().compile(*args, metrics=metrics, weighted_metrics=weighted_metrics, **kwargs)

    def preprocess(self, x: Any, y: Any = None, sample_weight: Any = None) -> tuple[Any, ...]:
        """One batch of text as what the model trains on, masked anew; runs inside `tf.data.Dataset.map`."""
        return self._masked(x, y, sample_weight)

    def _masked(self, x: Any, y: Any = None, sample_weight: Any = None, *, seed: Any = None) -> tuple[Any, ...]:
        return self._labelled(self.generator(self._stream_preprocessor()(x), seed=seed), y, sample_weight)

    def _labelled(self, masked: tuple[Any, Any, Any], y: Any, sample_weight: Any) -> tuple[Any, ...]:
        """What the generator gave, as the model trains on it, with what the user gave beside the text."""
        raise NotImplementedError

    def _text_seeds(self, x: Any) -> tf.Tensor:
        """One seed a text, for masks that are the same whenever it is evaluated."""
        text = tf.strings.join(x, separator="\0") if isinstance(x, tuple) else x
        return tf.strings.to_hash_bucket_fast(text, 2**62) + (self.generator.seed or 0)

    def _training_batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, order: RowOrder) -> Any:
        texts = self._text_batches(x, y, sample_weight, batch_size=batch_size, order=order)
        # A stream of seeds, and not a stateful draw in `map`, whose parallel calls come in any order.
        seeds = tf.data.Dataset.random(self.generator.draw_seed(), rerandomize_each_iteration=True)
        batches = tf.data.Dataset.zip(texts, seeds)
        return batches.map(
            lambda parts, seed: self._masked(*parts, seed=seed), num_parallel_calls=tf.data.AUTOTUNE
        ).prefetch(tf.data.AUTOTUNE)

    def _batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, order: RowOrder) -> Any:
        texts = self._text_batches(x, y, sample_weight, batch_size=batch_size, order=order)
        return texts.map(
            lambda *parts: self._masked(*parts, seed=self._text_seeds(parts[0])), num_parallel_calls=tf.data.AUTOTUNE
        ).prefetch(tf.data.AUTOTUNE)

    def _validation_batches(self, validation_data: Any, batch_size: int | None) -> Any:
        if not isinstance(validation_data, tuple) and not text_data.is_dataset(validation_data):
            validation_data = (validation_data,)  # texts need no labels beside them
        return super()._validation_batches(validation_data, batch_size)

    def predict(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The model's outputs at each `[MASK]` that is written in a text, as `keras.Model.predict`.

        Args:
            x: texts as of all tasks; or ids, in which `"mask_positions"` may be left out where there is a preprocessor.
            *args: as of all tasks.
            **kwargs: as of all tasks.

        Returns:
            Logits, float32 `(rows, masks, vocabulary_size)`, with as many masks as the row with the most has within
            `max_length`. What stands behind a row's last mask means nothing.
        """
        return super().predict(x if self._needs_preprocessing(x) else self._with_positions(x), *args, **kwargs)

    def _block_outputs(self, columns: Any, batches: LengthBatches) -> Any:
        preprocessor = self._reader.preprocessor
        return batches.run(
            self._compiled_step(), on_host(preprocessor, columns), preprocessor, finish=self._with_positions
        )

    def _with_positions(self, x: Any) -> Any:
        """Ids as they are, or with the positions of `[MASK]` among them."""
        if self.preprocessor is None or not isinstance(x, dict) or POSITIONS in x or "token_ids" not in x:
            return x
        positions, _ = find_masks(keras.ops.convert_to_numpy(x["token_ids"]), self.preprocessor.tokenizer.mask_id)
        return {**x, POSITIONS: positions.numpy()}

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, **kwargs: Any) -> Any:
        """Loss and metrics of one batch, with the masks of `evaluate`."""
        if self._needs_preprocessing(x):
            columns = keras.tree.map_structure(tf.convert_to_tensor, self._columns(x))
            y = None if y is None else tf.convert_to_tensor(self.encode_labels(text_data.as_array(y)))
            batch = self._masked(columns, y, sample_weight, seed=self._text_seeds(columns))
            x, y, sample_weight = keras.tree.map_structure(np.asarray, batch)
        return super().test_on_batch(x, y, sample_weight, **kwargs)

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for one batch, as `predict`."""
        if self._needs_preprocessing(x):
            return super().predict_on_batch(keras.tree.map_structure(np.asarray, self._reader.ids(self._columns(x))))
        return super().predict_on_batch(self._with_positions(x))

    def signatures(self) -> list[Signature]:
        """What the exported model can be asked; without a preprocessor, `token_ids` takes `mask_positions` too."""
        if self.preprocessor is not None:
            return super().signatures()
        inputs: dict[str, Any] = dict.fromkeys(self.input, ((None, None), "int32"))
        return [Signature("token_ids", self._serve_given_ids, inputs)]

    def _serve_ids(
        self, token_ids: Any, segment_ids: Any, padding_mask: Any, mask_positions: Any = None
    ) -> dict[str, Any]:
        if mask_positions is None:
            mask_positions, _ = find_masks(token_ids, self.preprocessor.tokenizer.mask_id)
        ids = {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}
        outputs = self._run_model({**ids, POSITIONS: mask_positions})
        return outputs if isinstance(outputs, dict) else {self.output_name: outputs}

    def _serve_tokens(self, *texts: Any) -> dict[str, Any]:
        return traced_once(self._reader.preprocessor, texts if len(texts) > 1 else texts[0])

    def _fill(self, *texts: Any) -> tuple[Any, dict[str, Any]]:
        """The model's outputs for a batch of texts or of pairs, and the tokens for the masks in them."""
        masks = self._reader.read(*texts)
        outputs = self._run_model(masks.ids)
        filled = decode_masks(
            outputs["masked_lm"] if isinstance(outputs, dict) else outputs,
            masks.columns,
            self.preprocessor.tokenizer.get_config()["vocabulary"],
            num_columns=masks.num_columns,
            top_k=self.top_k,
        )
        return outputs, filled

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), **self._masking.value, "top_k": self.top_k}


class _Plain:
    """Holds what Keras must not take for a part of the model."""

    def __init__(self, value: Any):
        self.value = value
