"""Losses that Keras does not have: of vectors that are compared, and of documents that are ranked."""

from keras_bert_layers._internal.lazy import make_lazy

make_lazy(__name__, __file__)
