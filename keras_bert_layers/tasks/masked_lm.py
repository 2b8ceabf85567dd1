"""Words that are missing in a text."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.metrics import MaskedAccuracy, Perplexity
from keras_bert_layers.preprocessing.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks._masked_text_task import POSITIONS, MaskedTextTask, masked_inputs, masked_lm_head


@register
class BertMaskedLM(MaskedTextTask):
    """Learns from raw text by hiding tokens of it, and fills the `[MASK]` that a user writes.

    It needs no labels: `fit(texts)` hides other tokens of each text in every epoch (see `MaskedLMGenerator`) and learns
    to find them. `evaluate(texts)` hides the same ones each time. The loss is the mean cross entropy of the masked
    positions. Text beyond the preprocessor's `max_length` is not looked at: cut long documents into passages first.

    `predict` and the exported model read `[MASK]` in a text as the mask, under both references of the tokenizer.
    The exported model takes `text` and gives `token` and `probability`, both `(batch, masks, top_k)`: the most probable
    tokens first, the masks in their order. Rows with fewer masks than others are padded with `""` and -1, and so is
    the place of a mask that stands beyond `max_length`. Without any mask there are no columns.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor` whose vocabulary holds `[MASK]`; with one, `fit`, `evaluate` and `predict`
            take raw text.
        top_k: how many tokens an answer has for each mask.
        mask_selection_rate: share of the tokens of a text to hide, in [0, 1).
        mask_selection_length: the largest number of tokens to hide in a text; None for no limit.
        mask_token_rate: share of the hidden tokens that become `[MASK]`.
        random_token_rate: share of them that become a random token; the rest stays.
        whole_words: whether all pieces of a word are hidden together.
        seed: for the masks; None draws one.
        head_activation: the function inside the head, where it is not the backbone's: a KerasHub model has two.
        head_layer_norm_epsilon: what the head's LayerNorm adds to the variance, where it is not the backbone's.
        name: the model's name.

    Returns:
        From a call on ids with `"mask_positions"`, int32 `(batch, masks)`, and from `predict`: float32 logits
        `(batch, masks, vocabulary_size)`.

    Raises:
        TypeError: an argument of the wrong type; a call on text.
        ValueError: an argument out of range; a vocabulary without `[MASK]`; labels, which it makes itself.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=8, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "it", "rains", "snows"])
        >>> masked_lm = kbl.BertMaskedLM(kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer), top_k=2)
        >>> history = masked_lm.fit(["It rains.", "It snows."], verbose=0)
        >>> masked_lm.answer(["It [MASK]."])["token"].shape
        (1, 1, 2)

    References:
        Devlin et al. 2018, arXiv:1810.04805, section 3.1; masks anew in every epoch: Liu et al. 2019,
        arXiv:1907.11692, section 4.1.
    """

    reads_pooled_output = False

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
        head_activation: str | None = None,
        head_layer_norm_epsilon: float | None = None,
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
        head = masked_lm_head(backbone, activation=head_activation, layer_norm_epsilon=head_layer_norm_epsilon)
        outputs = head(backbone(backbone.input)["sequence_output"], inputs[POSITIONS])
        super().__init__(
            backbone, preprocessor, inputs=inputs, outputs=outputs, top_k=top_k, masking=masking, name=name
        )
        self.head_activation = head_activation
        self.head_layer_norm_epsilon = head_layer_norm_epsilon

    def default_loss(self) -> keras.losses.Loss:
        """The mean cross entropy of the masked positions."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="mean_with_sample_weight")

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The share of masked tokens found, `"accuracy"`, and the `"perplexity"`."""
        return [MaskedAccuracy(), Perplexity()]

    def _labelled(self, masked: tuple[Any, Any, Any], y: Any, sample_weight: Any) -> tuple[Any, ...]:
        if y is not None:
            cure = "It hides tokens of the texts, which are then the labels."
            raise ValueError(checks.message("BertMaskedLM", "y", "be None for raw text", type(y), cure))
        inputs, labels, weights = masked
        if sample_weight is not None:
            weights *= tf.cast(sample_weight, weights.dtype)[:, None]
        return inputs, labels, weights

    def _require_labels(self, x: Any, y: Any) -> None:
        """Nothing: the labels are made."""

    def _serve(self, text: Any) -> dict[str, Any]:
        """Texts to `token` and `probability`."""
        return self._fill(text)[1]

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {
            **super().get_config(),
            "head_activation": self.head_activation,
            "head_layer_norm_epsilon": self.head_layer_norm_epsilon,
        }
