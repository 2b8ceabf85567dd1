"""Decodes model outputs to answers, in the TensorFlow graph."""

from keras_bert_layers._internal.lazy import make_lazy

make_lazy(__name__, __file__)
