"""The signature `attributions` of an exported model: a score for each token of a text."""

from __future__ import annotations

import types
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.export import Signature
from keras_bert_layers.tasks import attribution
from keras_bert_layers.tasks.prediction.length_batches import IDS
from keras_bert_layers.tasks.serving.answers import check_takes_text


def attribution_signature(task: Any) -> Signature:
    """The signature of what `attribute(texts, max_steps=32)` returns, in graph.

    Returns:
        A signature with the outputs `"target"`, the highest logit's class; `"token"`, `"score"`, `"start"` and `"end"`,
        `(batch, sequence)`, padded with `""`, 0, -1 and -1; and `"difference"` and `"error"`, `(batch,)`.

    Raises:
        ValueError: the task is neither a classifier nor a cross encoder; it has no preprocessor.
    """
    if getattr(task, "_rows_to_attribute", None) != types.MethodType(attribution.class_rows, task):
        rule = "name 'attributions' for a BertClassifier or a BertCrossEncoder only"
        raise ValueError(checks.message(type(task).__name__, "signatures", rule, ["attributions"]))
    check_takes_text(task)
    return Signature("attributions", types.MethodType(_serve, task), task.text_inputs())


def _serve(task: Any, *texts: Any) -> dict[str, Any]:
    tokenizer = task.preprocessor.tokenizer
    row = task.preprocessor.with_offsets(texts if len(texts) > 1 else texts[0], prompt=task.pipeline.prompt)
    inputs, ids = {name: row[name] for name in IDS}, row["token_ids"]
    is_special = tf.reduce_any(ids[:, :, None] == attribution.special_ids(tokenizer), axis=-1)
    baseline_ids = tf.where(is_special, ids, tokenizer.pad_id)
    highest = tf.argmax(task.run(inputs), axis=-1, output_type=tf.int32)
    path = tf.constant(attribution.path(attribution.FIRST_STEPS))
    scores, differences = attribution.integral(task, inputs, baseline_ids, highest[:, None], path)
    return {
        "target": tf.gather(attribution.class_names(task), highest),
        "token": tf.where(row["padding_mask"] > 0, tf.gather(tokenizer._tokens, ids), ""),
        "score": scores,
        "start": row["starts"],
        "end": row["ends"],
        "difference": differences,
        "error": tf.abs(tf.reduce_sum(scores, axis=1) - differences),
    }
