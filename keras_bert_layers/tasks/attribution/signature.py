"""The signature `attributions` of an exported model."""

from __future__ import annotations

import types
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.export import Signature
from keras_bert_layers.tasks.attribution.attribution import special_ids
from keras_bert_layers.tasks.attribution.methods import attribute_texts, check_has_highest, class_names
from keras_bert_layers.tasks.attribution.path_integral import (
    FIRST_STEPS,
    TOKENS_AT_ONCE,
    path_gradients,
    quadrature,
)
from keras_bert_layers.tasks.prediction.length_batches import IDS
from keras_bert_layers.tasks.serving.answers import check_takes_text


def attribution_signature(task: Any) -> Signature:
    """The signature of strings that returns a score for each token, `attribute(texts, max_steps=32)` in graph.

    Returns:
        A signature with the outputs `"target"`, the predicted class; `"token"`, `"score"`, `"start"`, `"end"`,
        `(batch, sequence)`, padded with `""`, 0 and -1; and `"difference"` and `"error"`, `(batch,)`.

    Raises:
        ValueError: the task is neither a classifier nor a cross encoder; it has no preprocessor, or several numbers.
    """
    if getattr(type(task), "attribute", None) is not attribute_texts:
        rule = "not hold 'attributions', which only a BertClassifier and a BertCrossEncoder export"
        raise ValueError(checks.message(type(task).__name__, "signatures", rule, ["attributions"]))
    check_takes_text(task)
    check_has_highest(task)
    return Signature("attributions", types.MethodType(_serve, task), task.text_inputs())


def _serve(task: Any, *texts: Any) -> dict[str, Any]:
    tokenizer = task.preprocessor.tokenizer
    tokens = task.preprocessor.with_offsets(texts if len(texts) > 1 else texts[0], prompt=task.pipeline.prompt)
    inputs = {name: tokens[name] for name in IDS}
    token_ids, is_real = inputs["token_ids"], inputs["padding_mask"] > 0
    is_special = tf.reduce_any(token_ids[:, :, None] == special_ids(tokenizer), axis=-1)
    baseline_ids = tf.where(is_special, token_ids, tokenizer.pad_id)
    target = tf.argmax(task.run(inputs), axis=-1, output_type=tf.int32)
    points, weights, ends = map(tf.constant, quadrature(FIRST_STEPS))
    shape = tf.shape(token_ids)
    at_once = tf.maximum(1, TOKENS_AT_ONCE // tf.maximum(1, tf.size(token_ids)))

    def add(start: Any, scores: Any, difference: Any) -> tuple[Any, ...]:
        chosen = slice(start, start + at_once)
        number = tf.size(points[chosen])
        rows = tf.nest.map_structure(
            lambda values: tf.tile(values, [number, 1]), (inputs, baseline_ids, target[:, None])
        )
        products, logits = path_gradients(task, *rows, tf.repeat(points[chosen], shape[0]))
        scores += tf.tensordot(weights[chosen], tf.reshape(products, [number, shape[0], shape[1]]), 1)
        difference += tf.tensordot(ends[chosen], tf.reshape(logits, [number, shape[0]]), 1)
        return start + at_once, scores, difference

    sums = (tf.constant(0), tf.zeros(shape), tf.zeros(shape[:1]))
    _, scores, difference = tf.while_loop(
        lambda start, *_: start < len(points), add, sums, parallel_iterations=1
    )
    return {
        "target": tf.gather(class_names(task), target),
        "token": tf.where(is_real, tf.gather(tokenizer._tokens, token_ids), ""),
        "score": scores,
        "start": tokens["starts"],
        "end": tokens["ends"],
        "difference": difference,
        "error": tf.abs(tf.reduce_sum(scores, axis=1) - difference),
    }
