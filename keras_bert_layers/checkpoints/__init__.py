"""Reading and writing checkpoints of other libraries: read strictly, without running code, and written atomically."""

from keras_bert_layers._internal.lazy import make_lazy

# `inspect` reads checkpoints without Keras.
make_lazy(__name__, __file__)
