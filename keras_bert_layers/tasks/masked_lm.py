"""Masked language modelling: training on raw text, and filling masks."""

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export import onnx
from keras_bert_layers.metrics import MaskedAccuracy, Perplexity
from keras_bert_layers.preprocessing.masking.masking import Masking
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks.graphs.masked import (
    checked_masking,
    fill_masks,
    masked_inputs,
    masked_lm_head,
    onnx_functions,
    onnx_outputs,
)
from keras_bert_layers.tasks.graphs.settings import Setting
from keras_bert_layers.tasks.inputs import MaskedInputs
from keras_bert_layers.tasks.inputs.masked import POSITIONS
from keras_bert_layers.tasks.task import Task


@register
class BertMaskedLM(Task):
    """Masked language model: learns from raw text by predicting masked tokens, and fills each `[MASK]` in a text.

    It needs no labels: `fit(texts)` masks other tokens of each text in every epoch (see `MaskedLMGenerator`) and learns
    to predict them. `evaluate(texts)` masks the same ones each time. The loss is the mean cross entropy of the masked
    positions. Text after the preprocessor's `max_length` is ignored: split long documents into passages first.

    `predict` and the exported model read `[MASK]` in a text as the mask, whatever the tokenizer's `reference`. The
    exported model takes `text` and returns `token` and `probability`, both `(batch, masks, top_k)`: the most probable
    tokens first, the masks in order. Rows with fewer masks than others are padded with `""` and -1, and so is a mask
    after `max_length`. Without any mask there are no columns.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor` whose vocabulary has `[MASK]`; with one, `fit`, `evaluate` and `predict` take
            raw text.
        top_k: how many tokens an answer has for each mask.
        masking: which tokens are masked, and by what; `Masking()` if None.
        head_activation: the activation of the head, if it is not the backbone's: a KerasHub model has two.
        head_layer_norm_epsilon: the epsilon of the head's LayerNorm, if it is not the backbone's.
        tie_weights: whether the head predicts with the backbone's token embedding. If not, it has a matrix of its own,
            which some checkpoints have.
        name: the model's name.
        **keywords: the fields of `Masking`, instead of `masking`: `mask_selection_rate`, `mask_selection_length`,
            `mask_token_rate`, `random_token_rate`, `whole_words` and `seed`.

    Returns:
        A call on ids with `"mask_positions"`, int32 `(batch, masks)`, and `predict` return float32 logits
        `(batch, masks, vocabulary_size)`. `predict` has as many masks as the row with the most has within `max_length`;
        logits after a row's last mask have no meaning. It takes ids without `"mask_positions"` too, if there is a
        preprocessor.

    Raises:
        TypeError: an argument of the wrong type; a call on text.
        ValueError: an argument out of range; a vocabulary without `[MASK]`; labels, which are the masked tokens.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=8, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "it", "rains", "snows"])
        >>> masked_lm = kbl.BertMaskedLM(kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer), top_k=2)
        >>> history = masked_lm.fit(["It rains.", "It snows."], verbose=0)
        >>> masked_lm.answer(["It [MASK]."])["token"].shape
        (1, 1, 2)

    References:
        Devlin et al. 2018, arXiv:1810.04805, section 3.1; new masks in every epoch: Liu et al. 2019,
        arXiv:1907.11692, section 4.1.
    """

    reads_pooled_output = False
    weighs_metrics = True

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor | None = None,
        *,
        top_k: int = 5,
        masking: Masking | None = None,
        head_activation: str | None = None,
        head_layer_norm_epsilon: float | None = None,
        tie_weights: bool = True,
        name: str | None = None,
        **keywords: Any,
    ):
        masking = checked_masking(
            "BertMaskedLM", backbone, preprocessor, top_k=top_k, masking=masking, keywords=keywords
        )
        inputs = masked_inputs(backbone)
        head = masked_lm_head(
            backbone,
            activation=head_activation,
            layer_norm_epsilon=head_layer_norm_epsilon,
            tie_weights=tie_weights,
        )
        outputs = head(backbone(backbone.input)["sequence_output"], inputs[POSITIONS])
        pipeline = MaskedInputs("BertMaskedLM", preprocessor, masking)
        super().__init__(backbone, pipeline, inputs=inputs, outputs=outputs, name=name)
        self.top_k = top_k
        self.masking = masking
        self.head_activation = head_activation
        self.head_layer_norm_epsilon = head_layer_norm_epsilon
        self.tie_weights = tie_weights
        self.compile()

    top_k = Setting(checks.positive_integer, doc="How many tokens an answer has for each mask.")

    def default_loss(self) -> keras.losses.Loss:
        """The mean cross entropy of the masked positions."""
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="mean_with_sample_weight")

    def default_metrics(self) -> list[keras.metrics.Metric]:
        """The share of masked tokens predicted correctly, `"accuracy"`, and the `"perplexity"`."""
        return [MaskedAccuracy(), Perplexity()]

    def onnx_functions(self) -> onnx.Functions:
        """The signature `serving_default`."""
        return onnx_functions(self)

    def onnx_outputs(self, model: onnx.OnnxModel, rows: onnx.Rows) -> dict[str, onnx.Answer]:
        """`logits` for rows of ids in an ONNX file, of all tokens."""
        return onnx_outputs(self, model, rows)

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Texts to `token` and `probability`."""
        return fill_masks(self, *texts)[1]
