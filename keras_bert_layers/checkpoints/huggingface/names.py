"""The names of weights in HuggingFace's files, and the tensors that may be ignored."""

from __future__ import annotations

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


def file_name(name: str) -> str:
    """The name of a tensor of the table in a file with a head: `bert.` is the prefix of the encoder, not of heads.

    Examples:
        >>> file_name("pooler.dense.bias"), file_name("classifier.bias")
        ('bert.pooler.dense.bias', 'classifier.bias')
    """
    return name if name.startswith(tuple(_HEADS)) else PREFIX + name


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
    if name in _BUFFERS:
        return _BUFFERS[name]
    return next((reason for head, reason in _HEADS.items() if name.startswith(head)), None)
