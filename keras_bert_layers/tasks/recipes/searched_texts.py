"""Texts of a search: found by their ids, and encoded as queries and documents by any encoder of texts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeAlias

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.tasks.dual_encoder import BertDualEncoder
from keras_bert_layers.tasks.sentence_encoder import BertSentenceEncoder
from keras_bert_layers.tasks.static_encoder import BertStaticEncoder

Encoder: TypeAlias = BertSentenceEncoder | BertStaticEncoder | BertDualEncoder


def text_of(owner: str, argument: str, texts: Mapping[Hashable, str], name: Hashable) -> str:
    """The text of an id; ValueError if there is none."""
    if name not in texts:
        cure = "Ids are compared as they are: `1` is not `'1'`."
        raise ValueError(checks.message(owner, argument, f"hold the text of {name!r}", list(texts)[:3], cure))
    return texts[name]


def vectors_of(
    encoder: Encoder, queries: list[str], documents: list[str], batch_size: int | None = None, *, verbose: str | int
) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of queries and of documents, as the encoder makes them of each."""
    vectors = encoder.encode_queries(queries, batch_size, verbose=verbose)
    return vectors, encoder.encode_documents(documents, batch_size, verbose=verbose)
