"""Text to tokens to model inputs, in TensorFlow graph."""

from keras_bert_layers._internal.lazy import make_lazy

# Vocabularies are read without Keras.
make_lazy(__name__, __file__)
