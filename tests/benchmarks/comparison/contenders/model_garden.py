"""tf.text and the TensorFlow Model Garden: `FastBertTokenizer`, `BertPackInputs` and `BertEncoderV2` in one graph.

Batches are padded to their longest text, with XLA or without, whichever is faster here. `tf-models-official` needs
another TensorFlow than the rest, so an environment of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from comparison.batches import MAX_LENGTH, over_batches, versions_of

# What the variables of `BertEncoderV2` are called in a HuggingFace file, in order; the rest of a name stays.
NAMES = (
    (r"^[^/]*/", ""),
    (r":0$", ""),
    (r"^word_embeddings/embeddings$", "embeddings.word_embeddings.weight"),
    (r"^position_embedding/embeddings$", "embeddings.position_embeddings.weight"),
    (r"^type_embeddings/embeddings$", "embeddings.token_type_embeddings.weight"),
    (r"^embeddings/layer_norm/", "embeddings.LayerNorm."),
    (r"^transformer/layer_(\d+)/", r"encoder.layer.\1."),
    (r"self_attention/attention_output/", "attention.output.dense."),
    (r"self_attention/", "attention.self."),
    (r"self_attention_layer_norm/", "attention.output.LayerNorm."),
    (r"intermediate/", "intermediate.dense."),
    (r"output_layer_norm/", "output.LayerNorm."),
    (r"(\d\.)output/", r"\1output.dense."),
    (r"pooler_transform/", "pooler.dense."),
    (r"/", "."),
    (r"(kernel|gamma)$", "weight"),
    (r"beta$", "bias"),
)


def start() -> dict[str, str]:
    import tensorflow_text  # noqa: F401
    from official.nlp.modeling import layers, networks  # noqa: F401

    return versions_of("tf-models-official", "tensorflow-text", "tensorflow", "tf-keras")


def encoder_settings(dtype: str, longest: int) -> list[dict[str, Any]]:
    return [{"jit": False}, {"jit": True}]


def encoder(folder: Path, dtype: str, *, jit: bool) -> Callable:
    import tensorflow as tf
    import tensorflow_text as text
    from official.nlp.modeling import layers

    vocabulary = (folder / "huggingface/vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    numbers = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = text.FastBertTokenizer(vocabulary, lower_case_nfd_strip_accents=True, token_out_type=tf.int32)
    model = _load(folder / "huggingface", {"float32": "float32", "bfloat16": "mixed_bfloat16"}[dtype])

    @tf.function(jit_compile=jit, autograph=False)
    def vectors(ids: Any) -> Any:
        outputs = tf.cast(model(ids, training=False)["sequence_output"], tf.float32)
        weights = tf.cast(ids["input_mask"], tf.float32)[:, :, None]
        mean = tf.reduce_sum(outputs * weights, axis=1) / tf.reduce_sum(weights, axis=1)
        return tf.math.l2_normalize(mean, axis=-1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def serve(texts: Any) -> Any:
        tokens = tokenizer.tokenize(texts)
        longest = tf.minimum(tf.cast(tf.reduce_max(tokens.row_lengths()), tf.int32) + 2, MAX_LENGTH)
        ids = layers.BertPackInputs.bert_pack_inputs(
            tokens,
            seq_length=longest,
            start_of_sequence_id=numbers["[CLS]"],
            end_of_segment_id=numbers["[SEP]"],
            padding_id=numbers["[PAD]"],
        )
        return vectors(ids)

    return over_batches(lambda texts: serve(tf.constant(texts)).numpy())


def _load(source: Path, policy: str) -> Any:
    """`BertEncoderV2` with the weights of a HuggingFace directory."""
    import tensorflow as tf
    import tf_keras
    from official.nlp.modeling import networks
    from safetensors.numpy import load_file

    tf_keras.mixed_precision.set_global_policy(policy)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    model = networks.BertEncoderV2(
        vocab_size=config["vocab_size"],
        hidden_size=config["hidden_size"],
        num_layers=config["num_hidden_layers"],
        num_attention_heads=config["num_attention_heads"],
        max_sequence_length=config["max_position_embeddings"],
        type_vocab_size=config["type_vocab_size"],
        inner_dim=config["intermediate_size"],
        inner_activation=lambda inputs: tf.nn.gelu(inputs, approximate=False),
    )
    ids = tf.ones([1, 2], tf.int32)
    model({"input_word_ids": ids, "input_mask": ids, "input_type_ids": ids})
    tensors = load_file(source / "model.safetensors")
    for variable in model.weights:
        name = variable.name
        for pattern, replacement in NAMES:
            name = re.sub(pattern, replacement, name)
        if name.startswith("pooler") and name not in tensors:
            continue
        tensor = tensors[name]
        variable.assign((tensor.T if variable.name.endswith("kernel:0") else tensor).reshape(variable.shape))
    return model
