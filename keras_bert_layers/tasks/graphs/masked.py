"""The graph of masked language modelling, and its answers."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.decoding import decode_masks
from keras_bert_layers.export import onnx
from keras_bert_layers.export.text_task import TextTask
from keras_bert_layers.layers import MaskedLMHead, NextSentenceHead
from keras_bert_layers.preprocessing.masking.masked_lm_generator import check_tokenizer
from keras_bert_layers.preprocessing.masking.masking import Masking
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.tasks.graphs.heads import check_parts, head_options
from keras_bert_layers.tasks.inputs.masked import POSITIONS
from keras_bert_layers.tasks.inputs.written_masks import preprocessor_with_masks, read_masks


def checked_masking(
    owner: str,
    backbone: BertBackbone,
    preprocessor: TextLayer | None,
    *,
    top_k: Any,
    masking: Masking | None,
    keywords: Mapping[str, Any],
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
    make: Callable[..., Any] = MaskedLMHead,
) -> Any:
    """A newly initialized head; what is None is taken from the backbone's config, and `make` is its class."""
    config = backbone.config
    return make(
        backbone,
        activation=config.activation if activation is None else activation,
        layer_norm_epsilon=config.layer_norm_epsilon if layer_norm_epsilon is None else layer_norm_epsilon,
        tie_weights=tie_weights,
        use_bias=backbone.parts.use_bias,
        **head_options(backbone, "masked_lm_head"),
    )


def onnx_functions(task: TextTask) -> onnx.Functions:
    """The signature `serving_default` of a masked language model, or of one with next-sentence prediction."""
    return {"serving_default": functools.partial(_onnx_answers, task)}


def onnx_outputs(task: TextTask, model: onnx.OnnxModel, rows: onnx.Rows) -> dict[str, onnx.Answer]:
    """`logits` for rows of ids in an ONNX file, of all tokens."""
    hidden = model.hidden(rows)
    logits = onnx_logits(task.get_layer("masked_lm_head"), hidden.reshape(-1, hidden.size(2)))
    size = task.backbone.config.vocabulary_size
    return {"logits": onnx.Answer(logits.reshape(hidden.size(0), hidden.size(1), size), (None, None, size))}


def _onnx_answers(task: keras.Model, model: onnx.OnnxModel, *texts: onnx.Tensor) -> dict[str, onnx.Answer]:
    preprocessor = preprocessor_with_masks(task.preprocessor)
    tokenizer, graph = preprocessor.tokenizer, model.graph
    tokens = [model.tokenizer(tokenizer).tokens(text) for text in texts]
    rows = model.framed(tokens, preprocessor)
    hidden, is_mask = model.hidden(rows), rows.ids.equals(tokenizer.mask_id)
    place = graph.range(rows.ids.size()).compress(is_mask.reshape(-1), 0)  # [N], masks of all rows
    logits = onnx_logits(task.get_layer("masked_lm_head"), hidden.reshape(-1, hidden.size(2)).take(place))
    logits = logits.slice(0, tokenizer.vocabulary_size(), 1)
    # Which of the masks that are written in a row each one is: truncation leaves the first ones of each text.
    written = [onnx.counts_of(each, tokenizer.mask_id) for each in tokens]  # [B]
    row, counted = place // rows.ids.size(1), is_mask.cast(onnx.INT64)
    column = (counted.cumsum(1) - 1).reshape(-1).take(place)
    second = counted * 0 if rows.segments is None else counted * rows.segments.cast(onnx.INT64)  # [B, S]
    is_second = second.reshape(-1).take(place)
    kept = [(counted - second).reduced("Sum", 1), second.reduced("Sum", 1)]
    column = column + is_second * (written[0] - kept[0]).take(row)
    if preprocessor.truncation_side == "left":
        lost = [(each - left).take(row) for each, left in zip(written, kept, strict=False)]
        column = column + is_second.equals(1).where(lost[-1], lost[0])
    num_columns = sum(written[1:], written[0]).reduced("Max")
    best, ids = graph.add("TopK", logits, graph.constant([task.top_k]), outputs=[onnx.FLOAT, onnx.INT64], axis=-1)
    shape = graph.concat([written[0].size().column(0), num_columns.column(0)])
    places = graph.add("Expand", graph.constant(-1), shape).reshape(-1)
    places = places.scattered(row * num_columns + column, graph.range(place.size()))
    places = places.reshape(shape)  # [B, columns]
    probability = graph.add("Exp", best - logits.reduced("LogSumExp", -1, keepdims=True))
    none = [graph.constant([[value] * task.top_k], values.kind) for value, values in ((-1, ids), (-1, probability))]
    names = graph.constant([*tokenizer.readable_tokens(), ""])
    values = [graph.concat([part, empty]).take(places) for part, empty in zip((ids, probability), none, strict=True)]
    answers = {"token": names.take(values[0]), "probability": values[1]}
    found = {name: onnx.Answer(value, (None, None, task.top_k)) for name, value in answers.items()}
    if (head := next((layer for layer in task.layers if isinstance(layer, NextSentenceHead)), None)) is not None:
        is_next = onnx.softmax(onnx.dense(model.pooler(hidden), head.dense)).take(0, 1)
        found = {"is_next_probability": onnx.Answer(is_next, (None,)), **found}
    return found


def onnx_logits(head: MaskedLMHead, hidden: onnx.Tensor) -> onnx.Tensor:
    """The logits `[N, V]` of hidden states `[N, H]`."""
    hidden = onnx.layer_norm(onnx.activation(onnx.dense(hidden, head.dense), head.activation), head.layer_norm)
    matrix = head.token_embedding.token_embedding if head.tie_weights else head.decoder
    weights = hidden.graph.weight(matrix, onnx.array(matrix)), hidden.graph.constant(onnx.array(head.bias))
    return hidden.graph.add("Gemm", hidden, *weights, transB=1)


def fill_masks(task: keras.Model, *texts: Any) -> tuple[Any, dict[str, Any]]:
    """The outputs of a task for a batch of texts or of pairs, and the most probable tokens for the masks in them."""
    tokenizer = task.preprocessor.tokenizer
    _check_top_k(task.pipeline.owner, task.top_k, tokenizer.vocabulary_size())
    masks = read_masks(task.pipeline.tokens(*texts), task.preprocessor, texts)
    outputs = task.run(masks.ids)
    filled = decode_masks(
        outputs["masked_lm"] if isinstance(outputs, dict) else outputs,
        masks.columns,
        tokenizer.readable_tokens(),
        num_columns=masks.num_columns,
        top_k=task.top_k,
    )
    return outputs, filled
