"""A tiny untrained model for `--smoke`, whose vocabulary is the words of given texts."""

from __future__ import annotations

from collections.abc import Iterable

import keras

import keras_bert_layers as kbl

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def small_parts(texts: Iterable[str], max_length: int = 32) -> tuple[kbl.BertBackbone, kbl.BertPreprocessor]:
    """A backbone of one layer and a preprocessor that knows the words of `texts`."""
    keras.utils.set_random_seed(0)
    words = sorted({word for text in texts for word in text.lower().split()})
    tokenizer = kbl.BertTokenizer([*SPECIAL_TOKENS, *(word for word in words if word not in SPECIAL_TOKENS)])
    config = kbl.BertConfig(
        vocabulary_size=tokenizer.vocabulary_size(),
        hidden_dim=16,
        num_layers=1,
        num_heads=2,
        intermediate_dim=32,
        max_sequence_length=max_length,
    )
    return kbl.BertBackbone(config), kbl.BertPreprocessor(tokenizer, max_length=max_length)
