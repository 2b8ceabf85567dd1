"""Metrics that Keras does not have: streaming `keras.metrics.Metric`, and scores of whole collections."""

from keras_bert_layers._internal.lazy import make_lazy

make_lazy(__name__, __file__)
