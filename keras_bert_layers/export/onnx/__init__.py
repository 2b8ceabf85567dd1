"""Export to ONNX files that take strings."""

from keras_bert_layers.export.onnx._answers_graph import (
    Words,
    argmax,
    best_spans,
    chosen_answers,
    entities,
    in_sight,
    outputs_of_tokens,
    softmax,
)
from keras_bert_layers.export.onnx._encoder_graph import activation, array, dense, layer_norm, pooled, unit_vectors
from keras_bert_layers.export.onnx._graph import BOOL, FLOAT, INT32, INT64, STRING, Answer, Graph, Tensor
from keras_bert_layers.export.onnx._rows_graph import Rows, Windows, windows_over
from keras_bert_layers.export.onnx._tokenizer_graph import Tokens, counts_of, sums
from keras_bert_layers.export.onnx.onnx_file import (
    Functions,
    OnnxModel,
    last_hidden_state,
    write_onnx,
    write_onnx_of_ids,
)

__all__ = [
    "BOOL",
    "FLOAT",
    "INT32",
    "INT64",
    "STRING",
    "Answer",
    "Functions",
    "Graph",
    "OnnxModel",
    "Rows",
    "Tensor",
    "Tokens",
    "Windows",
    "Words",
    "activation",
    "argmax",
    "array",
    "best_spans",
    "chosen_answers",
    "counts_of",
    "dense",
    "entities",
    "in_sight",
    "last_hidden_state",
    "layer_norm",
    "outputs_of_tokens",
    "pooled",
    "softmax",
    "sums",
    "unit_vectors",
    "windows_over",
    "write_onnx",
    "write_onnx_of_ids",
]
