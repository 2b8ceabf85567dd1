"""Readers of GLUE, SQuAD, CoNLL and BEIR files, and of documents; rows to pretrain on, from text or from shards."""

from keras_bert_layers._internal.lazy import make_lazy

make_lazy(__name__, __file__)
