"""Readers of GLUE, SQuAD and CoNLL files, and of documents; rows to pretrain on, from text or from shards."""

from typing import TYPE_CHECKING

from keras_bert_layers._internal.lazy import make_lazy
from keras_bert_layers.data.columns import Columns
from keras_bert_layers.data.conll_file import read_conll
from keras_bert_layers.data.documents_file import read_documents
from keras_bert_layers.data.glue_file import read_glue
from keras_bert_layers.data.pretraining.document_files import DocumentFiles
from keras_bert_layers.data.squad_file import read_squad

if TYPE_CHECKING:
    from keras_bert_layers.data.pretraining.row_source import RowSource
    from keras_bert_layers.data.pretraining.shard_writer import write_shards
    from keras_bert_layers.data.pretraining.text_corpus import TextCorpus
    from keras_bert_layers.data.pretraining.token_shards import TokenShards

__all__ = [
    "Columns",
    "DocumentFiles",
    "RowSource",
    "TextCorpus",
    "TokenShards",
    "read_conll",
    "read_documents",
    "read_glue",
    "read_squad",
    "write_shards",
]

# These import Keras, which the readers do not need.
make_lazy(
    __name__,
    {
        "RowSource": "pretraining.row_source",
        "TextCorpus": "pretraining.text_corpus",
        "TokenShards": "pretraining.token_shards",
        "write_shards": "pretraining.shard_writer",
    },
)
