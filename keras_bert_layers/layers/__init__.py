"""BERT's layers, for every Keras backend.

They are written with `keras` and `keras.ops`. Some modules also call TensorFlow, only on its backend: `padding_free`
skips padding, also in `sparse_head`, `layer_norm` and `transformer_encoder_block` use fused operations,
`summed_gradient` adds up gradients, and `attention_kernels` computes long rows in turns.
"""

from keras_bert_layers._internal.lazy import make_lazy

make_lazy(__name__, __file__)
