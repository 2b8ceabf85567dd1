"""Both of BERT's own tasks at once: words that are missing, and whether one text follows another."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers import NextSentenceHead
from keras_bert_layers.metrics import MaskedAccuracy, Perplexity
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.sentence_pairs import SentencePairs, check_documents
from keras_bert_layers.tasks import _text_data as text_data
from keras_bert_layers.tasks._masked_text_task import POSITIONS, MaskedTextTask, masked_inputs, masked_lm_head
from keras_bert_layers.tasks._row_order import RowOrder
from keras_bert_layers.tasks._task import TEXT

MASKED_LM, NEXT_SENTENCE = "masked_lm", "next_sentence"


@register
class BertPretrainer(MaskedTextTask):
    """BERT's pretraining, from raw documents: a masked language model and next-sentence prediction on one encoder.

    `fit(documents)` takes a list of documents, each a list of sentences, as `data.read_documents` reads them. In every
    epoch it draws other pairs of segments (see `SentencePairs`) and hides other tokens of them (see
    `MaskedLMGenerator`); `evaluate(documents)` uses the same ones each time. It trains on pairs of texts of your own
    too: `fit((first, second), y)`, y being 0 where the second text follows the first and 1 where it does not. The loss
    is the sum of the two mean cross entropies.

    The exported model takes `text` and `text_pair`. It gives `is_next_probability`, `(batch,)`, how probable it is that
    the second text follows the first; and `token` and `probability`, `(batch, masks, top_k)`, for each `[MASK]` that is
    written in the two, as `BertMaskedLM` does.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor` whose vocabulary holds `[MASK]`, and whose `max_length` is at least 5; with
            one, `fit` and `evaluate` take documents, and `predict` takes pairs of texts.
        top_k: how many tokens an answer has for each mask.
        mask_selection_rate: share of the tokens of a pair to hide, in [0, 1).
        mask_selection_length: the largest number of tokens to hide in a pair; None for no limit.
        mask_token_rate: share of the hidden tokens that become `[MASK]`.
        random_token_rate: share of them that become a random token; the rest stays.
        whole_words: whether all pieces of a word are hidden together.
        seed: for the pairs and the masks; None draws one.
        name: the model's name.

    Returns:
        From a call on ids with `"mask_positions"`, int32 `(batch, masks)`, and from `predict`, a dictionary of float32
        logits: `"masked_lm"`, `(batch, masks, vocabulary_size)`, and `"next_sentence"`, `(batch, 2)`, of 0 and 1.

    Raises:
        TypeError: an argument of the wrong type; documents that are none; a call on text.
        ValueError: an argument out of range; a vocabulary without `[MASK]`; labels beside documents, or none beside
            pairs.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=8, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "it", "rains", "snows"])
        >>> pretrainer = kbl.BertPretrainer(kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer))
        >>> history = pretrainer.fit([["It rains.", "It snows."], ["It snows.", "It rains."]], verbose=0)
        >>> pretrainer.predict((["It rains."], ["It [MASK]."]), verbose=0)["next_sentence"].shape
        (1, 2)

    References:
        Devlin et al. 2018, arXiv:1810.04805, section 3.1 and appendix A; google-research/bert
        create_pretraining_data.py and run_pretraining.py.
    """

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor | None = None,
        *,
        top_k: int = 5,
        mask_selection_rate: float = 0.15,
        mask_selection_length: int | None = None,
        mask_token_rate: float = 0.8,
        random_token_rate: float = 0.1,
        whole_words: bool = False,
        seed: int | None = None,
        name: str | None = None,
    ):
        masking = {
            "mask_selection_rate": mask_selection_rate,
            "mask_selection_length": mask_selection_length,
            "mask_token_rate": mask_token_rate,
            "random_token_rate": random_token_rate,
            "whole_words": whole_words,
            "seed": seed,
        }
        self._check_masking(backbone, preprocessor, top_k, masking)
        inputs = masked_inputs(backbone)
        encoded = backbone(backbone.input)
        next_sentence_head = NextSentenceHead(
            initializer_range=backbone.config.initializer_range, dtype=backbone.dtype_policy, name="next_sentence_head"
        )
        outputs = {
            MASKED_LM: masked_lm_head(backbone)(encoded["sequence_output"], inputs[POSITIONS]),
            NEXT_SENTENCE: next_sentence_head(encoded["pooled_output"]),
        }
        super().__init__(
            backbone, preprocessor, inputs=inputs, outputs=outputs, top_k=top_k, masking=masking, name=name
        )

    def default_loss(self) -> Any:
        """The mean cross entropy of the masked positions, and that of the pairs; training adds them."""
        cross_entropy = keras.losses.SparseCategoricalCrossentropy
        return {
            MASKED_LM: cross_entropy(from_logits=True, reduction="mean_with_sample_weight"),
            NEXT_SENTENCE: cross_entropy(from_logits=True, reduction="mean_with_sample_weight"),
        }

    def default_metrics(self) -> Any:
        """The `"accuracy"` and `"perplexity"` of the masked tokens, and the `"accuracy"` of the pairs."""
        return {MASKED_LM: [MaskedAccuracy(), Perplexity()], NEXT_SENTENCE: [MaskedAccuracy()]}

    def _labelled(self, masked: tuple[Any, Any, Any], y: Any, sample_weight: Any) -> tuple[Any, ...]:
        if y is None:
            cure = "Give 0 where the second text follows the first and 1 where it does not; or documents."
            raise ValueError(checks.message("BertPretrainer", "y", "be given for pairs of texts", y, cure))
        inputs, labels, weights = masked
        of_pairs = tf.ones_like(weights[:, 0]) if sample_weight is None else tf.cast(sample_weight, weights.dtype)
        labels = {MASKED_LM: labels, NEXT_SENTENCE: tf.cast(y, tf.int32)}
        return inputs, labels, {MASKED_LM: weights * of_pairs[:, None], NEXT_SENTENCE: of_pairs}

    def encode_labels(self, y: Any) -> Any:
        """A column of 0 and 1 as it is, checked row by row."""
        if isinstance(y, np.ndarray):
            wrong = ~np.isin(y, (0, 1))
            if y.ndim != 1 or wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(
                    "`BertPretrainer`: every label must be 0 (the second text follows the first) or 1 (it does not). "
                    f"Received: {y[row]!r} in row {row}."
                )
        return y

    def _training_batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, order: RowOrder) -> Any:
        if _are_pairs(x):
            return super()._training_batches(x, y, sample_weight, batch_size=batch_size, order=order)
        self._refuse_columns(y=y, sample_weight=sample_weight)
        if order is RowOrder.BY_LENGTH:
            rule, cure = "be False for documents", "Pairs made of them are about as long as `max_length` allows."
            raise ValueError(checks.message("BertPretrainer", "group_by_length", rule, True, cure))
        seeds = (self.generator.draw_seed() for _ in itertools.count())
        return self._document_batches(x, seeds, batch_size=batch_size, order=order)

    def _batches(self, x: Any, y: Any, sample_weight: Any, *, batch_size: int | None, order: RowOrder) -> Any:
        if _are_pairs(x):
            return super()._batches(x, y, sample_weight, batch_size=batch_size, order=order)
        self._refuse_columns(y=y, sample_weight=sample_weight)
        return self._document_batches(
            x, itertools.repeat(self.generator.seed or 0), batch_size=batch_size, order=RowOrder.AS_GIVEN
        )

    def _refuse_columns(self, **columns: Any) -> None:
        for name, value in columns.items():
            if value is not None:
                rule = "be None where `x` is a list of documents"
                raise ValueError(checks.message("BertPretrainer", name, rule, type(value)))

    def _document_batches(
        self, documents: Any, seeds: Iterator[int], *, batch_size: int | None, order: RowOrder
    ) -> tf.data.Dataset:
        """Masked pairs from documents; every epoch takes the next of the seeds."""
        check_documents("BertPretrainer", documents)
        preprocessor = self._stream_preprocessor()
        pairs = SentencePairs(documents, preprocessor.tokenizer, max_length=preprocessor.max_length)
        size = 32 if batch_size is None else checks.positive_integer("BertPretrainer", "batch_size", batch_size)
        # Some epochs would have a few more pairs than others; Keras wants as many steps in each.
        num_rows = len(pairs.draw(self.generator.seed or 0))

        def epoch() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            rows, mask_seeds = _epoch(pairs, next(seeds), num_rows=num_rows, shuffle=order.is_shuffled)
            for start in range(0, num_rows, size):
                yield rows[start : start + size], mask_seeds[start : start + size]

        def masked(rows: Any, mask_seeds: Any) -> tuple[Any, ...]:
            ids = preprocessor._pack(list(pairs.segments(rows)))
            return self._labelled(self.generator(ids, seed=mask_seeds), rows[:, 4], None)

        specs = tf.TensorSpec([None, 5], tf.int64), tf.TensorSpec([None], tf.int64)
        batches = tf.data.Dataset.from_generator(epoch, output_signature=specs)
        batches = batches.apply(tf.data.experimental.assert_cardinality(-(-num_rows // size)))
        return batches.map(masked, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    def _split(self, x: Any, y: Any, sample_weight: Any, share: float) -> tuple[Any, Any, Any, tuple[Any, ...]]:
        if _are_pairs(x):
            return super()._split(x, y, sample_weight, share)
        check_documents("BertPretrainer", x)
        (first,), _ = text_data.split_rows("BertPretrainer", share, np.arange(len(x)))
        return x[: len(first)], y, sample_weight, (x[len(first) :],)

    def _require_labels(self, x: Any, y: Any) -> None:
        """Nothing: documents need no labels, and of pairs they are asked when these are masked."""

    def text_inputs(self) -> dict[str, Any]:
        """`text` and `text_pair`."""
        return {"text": TEXT, "text_pair": TEXT}

    def _serve(self, text: Any, text_pair: Any) -> dict[str, Any]:
        """Pairs of texts to `is_next_probability`, and to `token` and `probability` of the masks in both."""
        outputs, filled = self._fill(text, text_pair)
        probabilities = tf.nn.softmax(tf.cast(outputs[NEXT_SENTENCE], tf.float32), axis=-1)
        return {"is_next_probability": probabilities[:, 0], **filled}


def _epoch(pairs: SentencePairs, seed: int, *, num_rows: int, shuffle: bool) -> tuple[np.ndarray, np.ndarray]:
    """So many pairs, and one seed each for their masks."""
    generator = np.random.default_rng(seed)
    rows = pairs.draw(seed)
    while len(rows) < num_rows:
        rows = np.concatenate([rows, pairs.draw(int(generator.integers(2**63 - 1)))])
    chosen = generator.permutation(len(rows))[:num_rows]
    return rows[chosen if shuffle else np.sort(chosen)], generator.integers(2**63 - 1, size=num_rows)


def _are_pairs(x: Any) -> bool:
    """Whether `x` is pairs of texts, in columns or from a dataset, and not documents."""
    return isinstance(x, tuple) or text_data.is_dataset(x)
