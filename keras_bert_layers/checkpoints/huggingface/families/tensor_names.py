"""`TensorNames`: the names of BERT's weights in the files of a model type of transformers."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

SEQUENCE_CLASS = "BertForSequenceClassification"
CHOICE_CLASS = "BertForMultipleChoice"
BARE_CLASS = "BertModel"
UNREAD = "unread."
"""What a name begins with if it is of a tensor that no class of transformers reads; see `unread_poolers`."""

_BLOCK = "encoder.layer."
_BIAS = "cls.predictions.bias"
_DECODER_BIAS = "cls.predictions.decoder.bias"


def _empty() -> Any:
    return dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TensorNames:
    """The names of tensors, as differences from transformers' BERT; the defaults are BERT's.

    Args:
        prefix: prefix of the encoder's tensors in classes with a head.
        block: beginning of the names of the blocks' tensors, before the index of the block.
        block_tensors: beginning of a name in a block -> BERT's.
        tensors: beginning of another tensor's name -> BERT's.
        class_tensors: the same of one class, by the name of BERT's class.
        has_one_bias: whether the masked language model's bias has one name, where BERT has a second for the decoder's.
        ignored: beginning of a tensor's name -> why it may be ignored.
    """

    prefix: str = "bert."
    block: str = _BLOCK
    block_tensors: Mapping[str, str] = _empty()
    tensors: Mapping[str, str] = _empty()
    class_tensors: Mapping[str, Mapping[str, str]] = _empty()
    has_one_bias: bool = False
    ignored: Mapping[str, str] = _empty()

    def table_name(self, name: str) -> str:
        """BERT's name, without a prefix, for the name of a tensor in a file.

        Examples:
            >>> TensorNames(prefix="electra.").table_name("electra.encoder.layer.0.output.dense.bias")
            'encoder.layer.0.output.dense.bias'
        """
        name = name.removeprefix(self.prefix)
        if name.startswith(self.block):
            index, _, rest = name.removeprefix(self.block).partition(".")
            return f"{_BLOCK}{index}.{_renamed(rest, self.block_tensors)}"
        renames = dict(self.tensors)
        for more in self.class_tensors.values():
            renames |= more
        return _renamed(name, renames)

    def unread_poolers(self, names: Collection[str]) -> set[str]:
        """The tensors of the encoder's pooler, if a head has a layer in its place: no class reads both."""
        poolers = {name for name in names if self.table_name(name).startswith("pooler.")}
        own = {name for name in poolers if name.removeprefix(self.prefix).startswith("pooler.")}
        return own if poolers > own else set()

    def may_have(self, bert_class: str, names: Iterable[str]) -> bool:
        """Whether tensors may be of a class with a `classifier`, by the names that only such classes have.

        Args:
            bert_class: the name of BERT's class.
            names: the tensors' names in the file.
        """
        beginnings = {beginning for renames in self.class_tensors.values() for beginning in renames}
        found = {beginning for beginning in beginnings for name in names if name.startswith(beginning)}
        return found == set(self.class_tensors.get(bert_class, ()))

    def ignored_reason(self, name: str) -> str | None:
        """Why a tensor that only this family has may be ignored, by its name in the table; None if it may not."""
        if name.startswith(UNREAD):
            return "the encoder's pooler, which the head does not read"
        return next((reason for beginning, reason in self.ignored.items() if name.startswith(beginning)), None)

    def file_name(self, name: str, bert_class: str) -> str:
        """The name in a file of a class, given by the name of BERT's, for a name of the table.

        Examples:
            >>> TensorNames().file_name("pooler.dense.bias", "BertForMultipleChoice")
            'bert.pooler.dense.bias'
        """
        if name.startswith(_BLOCK):
            index, _, rest = name.removeprefix(_BLOCK).partition(".")
            own = f"{self.block}{index}.{_renamed(rest, _inverse(self.block_tensors))}"
        else:
            renames = _inverse({**self.tensors, **self.class_tensors.get(bert_class, {})})
            # Only BERT and RoBERTa have the bias of a decoder that is not tied under a second name.
            own = _renamed(
                name, {_DECODER_BIAS: renames.get(_BIAS, _BIAS), **renames} if self.has_one_bias else renames
            )
        is_head = not own.startswith(("embeddings", self.block, "pooler."))
        return own if is_head or bert_class == BARE_CLASS else self.prefix + own


def _renamed(name: str, renames: Mapping[str, str]) -> str:
    """The name with another beginning, if one of them is its own."""
    for old, new in renames.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


def _inverse(renames: Mapping[str, str]) -> dict[str, str]:
    return {new: old for old, new in renames.items()}
