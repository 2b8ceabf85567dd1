"""Pretraining: masked language modelling and next-sentence prediction together."""

from __future__ import annotations

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export import onnx
from keras_bert_layers.layers import NextSentenceHead
from keras_bert_layers.metrics import MaskedAccuracy, Perplexity
from keras_bert_layers.preprocessing.masking.masking import Masking
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.tasks.graphs.heads import head_options
from keras_bert_layers.tasks.graphs.masked import (
    checked_masking,
    fill_masks,
    masked_inputs,
    masked_lm_head,
    onnx_functions,
)
from keras_bert_layers.tasks.graphs.settings import Setting
from keras_bert_layers.tasks.inputs import DocumentInputs
from keras_bert_layers.tasks.inputs.documents import MASKED_LM, NEXT_SENTENCE
from keras_bert_layers.tasks.inputs.masked import POSITIONS
from keras_bert_layers.tasks.task import Task


@register
class BertPretrainer(Task):
    """BERT's pretraining from raw documents: masked language modelling and next-sentence prediction on one encoder.

    `fit(documents)` takes a list of documents, each a list of sentences, as `data.read_documents` returns them. Every
    epoch draws other pairs of segments (see `SentencePairs`) and masks other tokens of them (see `MaskedLMGenerator`);
    `evaluate(documents)` uses the same ones each time. It trains on your own pairs of texts too: `fit((first, second),
    y)`, with y 0 where the second text follows the first and 1 where it does not. The loss is the sum of the two mean
    cross entropies.

    The exported model takes `text` and `text_pair`. It returns `is_next_probability`, `(batch,)`, the probability that
    the second text follows the first; and `token` and `probability`, `(batch, masks, top_k)`, for each `[MASK]` in the
    two texts, like `BertMaskedLM`.

    Args:
        backbone: a `BertBackbone`.
        preprocessor: a `BertPreprocessor` whose vocabulary has `[MASK]`, and whose `max_length` is at least 5; with
            one, `fit` and `evaluate` take documents, and `predict` takes pairs of texts.
        top_k: how many tokens an answer has for each mask.
        masking: which tokens are masked, and by what; `Masking()` if None.
        tie_weights: whether the head predicts with the backbone's token embedding. If not, it has a matrix of its own,
            which some checkpoints have.
        name: the model's name.
        **keywords: the fields of `Masking`, instead of `masking`: `mask_selection_rate`, `mask_selection_length`,
            `mask_token_rate`, `random_token_rate`, `whole_words` and `seed`.

    Returns:
        A call on ids with `"mask_positions"`, int32 `(batch, masks)`, and `predict` return a dictionary of float32
        logits: `"masked_lm"`, `(batch, masks, vocabulary_size)`, and `"next_sentence"`, `(batch, 2)`, for 0 and 1.

    Raises:
        TypeError: an argument of the wrong type; documents of another type; a call on text.
        ValueError: an argument out of range; a vocabulary without `[MASK]`; labels beside documents, or pairs
            without labels.

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

    weighs_metrics = True

    def __init__(
        self,
        backbone: BertBackbone,
        preprocessor: BertPreprocessor | None = None,
        *,
        top_k: int = 5,
        masking: Masking | None = None,
        tie_weights: bool = True,
        name: str | None = None,
        **keywords: Any,
    ):
        masking = checked_masking(
            "BertPretrainer", backbone, preprocessor, top_k=top_k, masking=masking, keywords=keywords
        )
        inputs = masked_inputs(backbone)
        encoded = backbone(backbone.input)
        next_sentence_head = NextSentenceHead(**head_options(backbone, "next_sentence_head"))
        outputs = {
            MASKED_LM: masked_lm_head(backbone, tie_weights=tie_weights)(encoded["sequence_output"], inputs[POSITIONS]),
            NEXT_SENTENCE: next_sentence_head(encoded["pooled_output"]),
        }
        pipeline = DocumentInputs("BertPretrainer", preprocessor, masking)
        super().__init__(backbone, pipeline, inputs=inputs, outputs=outputs, name=name)
        self.top_k = top_k
        self.masking = masking
        self.tie_weights = tie_weights
        self.compile()

    top_k = Setting(checks.positive_integer, doc="How many tokens an answer has for each mask.")

    def default_loss(self) -> Any:
        """The mean cross entropies of the masked positions and of the pairs, which training adds."""
        options = {"from_logits": True, "reduction": "mean_with_sample_weight"}
        return {name: keras.losses.SparseCategoricalCrossentropy(**options) for name in (MASKED_LM, NEXT_SENTENCE)}

    def default_metrics(self) -> Any:
        """The `"accuracy"` and `"perplexity"` of the masked tokens, and the `"accuracy"` of the pairs."""
        return {MASKED_LM: [MaskedAccuracy(), Perplexity()], NEXT_SENTENCE: [MaskedAccuracy()]}

    def onnx_functions(self) -> onnx.Functions:
        """The signature `serving_default`."""
        return onnx_functions(self)

    def serve(self, *texts: Tensor) -> dict[str, Any]:
        """Pairs of texts to `is_next_probability`, and to `token` and `probability` for the masks in both."""
        outputs, filled = fill_masks(self, *texts)
        probabilities = tf.nn.softmax(tf.cast(outputs[NEXT_SENTENCE], tf.float32), axis=-1)
        return {"is_next_probability": probabilities[:, 0], **filled}
