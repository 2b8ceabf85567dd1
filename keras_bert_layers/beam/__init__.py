"""Batch inference on Apache Beam, with exported models; needs the extra `beam`."""

from keras_bert_layers._internal.lazy import make_lazy

make_lazy(__name__, __file__)
