"""Pictures of a BERT: figures for papers, pages for a browser, and output for notebooks."""

from keras_bert_layers._internal.lazy import make_lazy

make_lazy(__name__, __file__)
