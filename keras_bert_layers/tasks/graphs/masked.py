"""The graph of masked language modelling, and its answers."""

from collections.abc import Mapping
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.decoding import decode_masks
from keras_bert_layers.layers import MaskedLMHead
from keras_bert_layers.preprocessing.masking.masked_lm_generator import check_tokenizer
from keras_bert_layers.preprocessing.masking.masking import Masking
from keras_bert_layers.tasks.graphs.parts import check_parts, head_options
from keras_bert_layers.tasks.inputs.masked import POSITIONS
from keras_bert_layers.tasks.inputs.written_masks import read_masks


def checked_masking(
    owner: str, backbone: Any, preprocessor: Any, *, top_k: Any, masking: Masking | None, keywords: Mapping[str, Any]
) -> Masking:
    """The masking of a task, from its argument or its keywords, with the other arguments checked too."""
    check_parts(owner, backbone, preprocessor)
    masking = Masking.from_arguments(owner, masking, keywords)
    size = backbone.config.vocabulary_size
    if preprocessor is not None:
        check_tokenizer(owner, preprocessor.tokenizer)
        size = preprocessor.tokenizer.vocabulary_size()
    _check_top_k(owner, top_k, size)
    return masking


def _check_top_k(owner: str, top_k: Any, size: int) -> None:
    if checks.positive_integer(owner, "top_k", top_k) > size:
        raise ValueError(checks.message(owner, "top_k", f"be at most {size}, the vocabulary's size", top_k))


def masked_inputs(backbone: BertBackbone) -> dict[str, Any]:
    """The backbone's inputs, and the positions to predict, int32 `(batch, masks)`."""
    return {**backbone.input, POSITIONS: keras.Input(shape=(None,), dtype="int32", name=POSITIONS)}


def masked_lm_head(
    backbone: BertBackbone,
    *,
    activation: str | None = None,
    layer_norm_epsilon: float | None = None,
    tie_weights: bool = True,
) -> MaskedLMHead:
    """A newly initialized head; what is None is taken from the backbone's config."""
    config = backbone.config
    return MaskedLMHead(
        backbone,
        activation=config.activation if activation is None else activation,
        layer_norm_epsilon=config.layer_norm_epsilon if layer_norm_epsilon is None else layer_norm_epsilon,
        tie_weights=tie_weights,
        **head_options(backbone, "masked_lm_head"),
    )


def fill_masks(task: Any, *texts: Any) -> tuple[Any, dict[str, Any]]:
    """The outputs of a task for a batch of texts or of pairs, and the most probable tokens for the masks in them."""
    tokenizer = task.preprocessor.tokenizer
    _check_top_k(task.pipeline.owner, task.top_k, tokenizer.vocabulary_size())
    masks = read_masks(task.pipeline.tokens(*texts), task.preprocessor, texts)
    outputs = task.run(masks.ids)
    filled = decode_masks(
        outputs["masked_lm"] if isinstance(outputs, dict) else outputs,
        masks.columns,
        tokenizer.all_tokens(),
        num_columns=masks.num_columns,
        top_k=task.top_k,
    )
    return outputs, filled
