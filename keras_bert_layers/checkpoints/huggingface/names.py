"""The names of weights in HuggingFace's files, and the tensors that may be ignored."""

from __future__ import annotations

import re

# The prefix of the encoder's tensors in every BertFor...; BertModel has none.
PREFIX = "bert."

# Checkpoints converted from TF1 before 2019 keep TensorFlow's names for the two.
_OLD_NAMES = {".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"}

_BUFFERS = {
    "embeddings.position_ids": "a buffer: the integers 0, 1, 2, ...",
    "embeddings.token_type_ids": "a buffer: zeros",
}
_HEADS = {
    "cls.": "a pretraining head",
    "classifier.": "a classification head",
    "qa_outputs.": "a question answering head",
    "dense.": "the dense layer of a sentence encoder",
}
# Tensors that other programs store beside a BERT, after or outside its encoder.
_OTHERS = {
    "crf.": "a conditional random field over the tags",
    "fit_dense": "a layer of TinyBERT's distillation",
    "lm_head.": "another model's language modelling head",
    "logit_scale": "a scale of contrastive training",
    "loss_fct.": "a weight of the loss",
}
# The rule for tensors about which nothing is known: what stands inside the encoder, and what by its name is added to
# its layers, changes what the encoder computes. All others can only come after it.
_INSIDE = (PREFIX, "embeddings.", "encoder.", "pooler.")
_ADDED = re.compile(r"lora_|adapter|(^|[._])ia3|prefix_|prompt|distance_embedding|rotary|relative_")


def table_name(name: str) -> str:
    """The table's name for a tensor of a file: without the prefix `bert.`, and not `gamma` and `beta`.

    Examples:
        >>> table_name("bert.embeddings.LayerNorm.gamma")
        'embeddings.LayerNorm.weight'
    """
    name = name.removeprefix(PREFIX)
    for old, new in _OLD_NAMES.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def ignored_reason(name: str) -> str | None:
    """Why a tensor without a row may be ignored; None if it may not.

    Args:
        name: the table's name.

    Examples:
        >>> ignored_reason("cls.seq_relationship.bias")
        'a pretraining head'
        >>> ignored_reason("encoder.layer.0.adapter.weight") is None
        True
    """
    if _ADDED.search(name):
        return None
    if name in _BUFFERS:
        return _BUFFERS[name]
    return next((reason for head, reason in {**_HEADS, **_OTHERS}.items() if name.startswith(head)), None)


def changes_numbers(stored: str) -> bool:
    """Whether an unknown tensor could be part of the encoder's computation, by its name in the file.

    Examples:
        >>> changes_numbers("bert.encoder.layer.0.output.adapters.en.down.weight"), changes_numbers("mlp.dense.weight")
        (True, False)
    """
    return stored.startswith(_INSIDE) or _ADDED.search(stored) is not None
