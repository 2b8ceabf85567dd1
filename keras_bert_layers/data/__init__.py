"""Readers of GLUE, SQuAD and CoNLL files, and of documents to pretrain on."""

from keras_bert_layers.data.columns import Columns
from keras_bert_layers.data.conll_file import read_conll
from keras_bert_layers.data.documents_file import read_documents
from keras_bert_layers.data.glue_file import read_glue
from keras_bert_layers.data.squad_file import read_squad

__all__ = ["Columns", "read_conll", "read_documents", "read_glue", "read_squad"]
