"""Export to ONNX files that take strings."""

from keras_bert_layers.export.onnx._encoder_graph import activation, dense, first_tokens, pooled, unit_vectors
from keras_bert_layers.export.onnx._graph import FLOAT, INT32, INT64, STRING, Answer, Graph
from keras_bert_layers.export.onnx.onnx_file import write_onnx

__all__ = [
    "FLOAT",
    "INT32",
    "INT64",
    "STRING",
    "Answer",
    "Graph",
    "activation",
    "dense",
    "first_tokens",
    "pooled",
    "unit_vectors",
    "write_onnx",
]
