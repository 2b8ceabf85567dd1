"""Readers of the files in which people keep their texts."""

from keras_bert_layers.data.codah_file import read_codah
from keras_bert_layers.data.columns import Columns
from keras_bert_layers.data.conll_file import read_conll
from keras_bert_layers.data.csv_file import read_csv
from keras_bert_layers.data.documents_file import read_documents
from keras_bert_layers.data.glue_file import read_glue
from keras_bert_layers.data.jsonl_file import read_jsonl
from keras_bert_layers.data.squad_file import read_squad
from keras_bert_layers.data.swag_file import read_swag

__all__ = [
    "Columns",
    "read_codah",
    "read_conll",
    "read_csv",
    "read_documents",
    "read_glue",
    "read_jsonl",
    "read_squad",
    "read_swag",
]
