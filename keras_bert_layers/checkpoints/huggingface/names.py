"""The names of weights in HuggingFace's files, and the tensors that may be ignored."""

from __future__ import annotations

from collections.abc import Iterable

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError

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


def stored_names(stored: Iterable[str], *, source: str) -> dict[str, str]:
    """The table's names for a file's tensors.

    The prefix `bert.` is removed, and `gamma` and `beta` become `weight` and `bias`.

    Args:
        stored: the tensors' names in the file.
        source: the checkpoint's name in errors.

    Returns:
        Table name -> name in the file, in the file's order.

    Raises:
        CheckpointError: two tensors of the file have the same table name.

    Examples:
        >>> stored_names(["bert.embeddings.LayerNorm.gamma"], source="bert")
        {'embeddings.LayerNorm.weight': 'bert.embeddings.LayerNorm.gamma'}
    """
    names: dict[str, str] = {}
    for name in stored:
        canonical = name.removeprefix(PREFIX)
        for old, new in _OLD_NAMES.items():
            if canonical.endswith(old):
                canonical = canonical.removesuffix(old) + new
        if canonical in names:
            raise CheckpointError(f"{source}: the tensors {names[canonical]!r} and {name!r} are the same weight.")
        names[canonical] = name
    return names


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
