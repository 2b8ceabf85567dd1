"""Optimizers of BERT, learning rate schedules, and callbacks that log the rate and try rates."""

from keras_bert_layers._internal.lazy import make_lazy

make_lazy(__name__, __file__)
