"""BERT's layers, for every Keras backend.

They are written with `keras` and `keras.ops`. Four modules also call TensorFlow, only on its backend: `_packing` and
`_row_groups` skip padding, `_layer_norm` uses a fused operation, and `_summed_gradient` adds up gradients.
"""

from keras_bert_layers._internal.lazy import make_lazy

make_lazy(__name__, __file__)
