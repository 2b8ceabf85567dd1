"""Readers of the files in which people keep their texts."""

from keras_bert_layers.data.csv_file import read_csv

__all__ = ["read_csv"]
