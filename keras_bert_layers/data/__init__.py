"""Readers of the files in which people keep their texts."""

from keras_bert_layers.data.columns import Columns
from keras_bert_layers.data.conll_file import read_conll
from keras_bert_layers.data.csv_file import read_csv
from keras_bert_layers.data.jsonl_file import read_jsonl
from keras_bert_layers.data.squad_file import read_squad

__all__ = ["Columns", "read_conll", "read_csv", "read_jsonl", "read_squad"]
