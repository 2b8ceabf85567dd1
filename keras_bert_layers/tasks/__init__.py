"""Tasks: Keras models that take raw text and return answers."""

from keras_bert_layers._internal.lazy import make_lazy

make_lazy(__name__, __file__)
