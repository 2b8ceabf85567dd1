"""Checkpoints in and out: other people's files, read strictly and without running anything, and written whole."""

from keras_bert_layers._internal.lazy import make_lazy

# `inspect` reads checkpoints without Keras.
make_lazy(__name__, __file__)
