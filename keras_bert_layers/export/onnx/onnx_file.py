"""ONNX export: a task as one file that takes strings, for ONNX Runtime."""

import importlib
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.export.onnx._encoder_graph import PRODUCTS, Products, hidden_states
from keras_bert_layers.export.onnx._graph import INT32, Answer, Graph
from keras_bert_layers.export.onnx._tokenizer_graph import token_rows
from keras_bert_layers.preprocessing import BertPreprocessor, BertTokenizer

# A protocol buffer holds no more.
_MAX_BYTES = 2**31 - 1
_SUFFIX = ".onnx"
_TEXT, _NUM_TOKENS = "text", "num_tokens"
_CARD = "model_card"


def write_onnx(
    path: str | PathLike[str], task: Any, *, dtype: str = "float32", facts: Mapping[str, Any] = MappingProxyType({})
) -> Path:
    """Writes an ONNX file with the tokenizer and the weights inside: texts in, answers out.

    ONNX Runtime runs it with the operations of onnxruntime-extensions.

    Args:
        path: the file, `*.onnx`. It is written completely or not at all; a file there is replaced.
        task: a task of single texts, with a `BertPreprocessor` of a `BertTokenizer`.
        dtype: `"float32"`; or `"int8"` for weights of the encoder's blocks of 8 bits, a scale for every 32 of them, and
            products of integers. Embeddings and the head stay float32.
        facts: what the file states about itself, as JSON under the key `"model_card"` of its metadata.

    Returns:
        The path.

    Raises:
        ModuleNotFoundError: the package onnx is not installed.
        ValueError: the path has another suffix; the task has something that an ONNX file cannot hold, which the message
            names.
    """
    path = Path(path)
    if path.suffix != _SUFFIX:
        raise ValueError(checks.message("export", "filepath", f"end with {_SUFFIX!r}", str(path)))
    checks.one_of("export", "dtype", dtype, list(PRODUCTS))
    _check(task)  # before the extra is asked for, which would not help
    try:
        onnx = importlib.import_module("onnx")
    except ModuleNotFoundError as error:
        cure = 'Install it: `python -m pip install "keras-bert-layers[onnx]"`.'
        raise ModuleNotFoundError(f"`export`: an ONNX file needs the package onnx. {cure}") from error
    model = _model(task, PRODUCTS[dtype])
    onnx.helper.set_model_props(model, {_CARD: json.dumps(dict(facts), sort_keys=True)})
    if model.ByteSize() > _MAX_BYTES:
        rule = "have at most 2 GB of weights in an ONNX file"
        raise ValueError(checks.message("export", "task", rule, f"{model.ByteSize()} bytes", "Export a SavedModel."))
    with atomic_write(path, owner="export", argument="filepath") as unfinished:
        unfinished.write_bytes(model.SerializeToString(deterministic=True))
    return path


def _check(task: Any) -> None:
    cure = "Export a SavedModel."
    names = list(task.text_inputs()) if isinstance(task.preprocessor, BertPreprocessor) else ["token_ids"]
    if names != [_TEXT] or not isinstance(task.preprocessor.tokenizer, BertTokenizer):
        rule = f"take {_TEXT!r} alone, by a BertPreprocessor of a BertTokenizer, in an ONNX file"
        raise ValueError(checks.message("export", "task", rule, names, cure))
    if task.onnx_answers is None or not isinstance(task.backbone, BertBackbone):
        rule = "be a classifier or a sentence encoder, of a BertBackbone, in an ONNX file with strings"
        raise ValueError(checks.message("export", "task", rule, type(task).__name__, cure))
    rule = "be None in an ONNX file, which cuts long texts at their end"
    if task.long_texts is not None:
        raise ValueError(checks.message("export", "long_texts", rule, task.long_texts, cure))
    if (side := task.preprocessor.truncation_side) != "right":
        rule = "be 'right' in an ONNX file, which cuts long texts at their end"
        raise ValueError(checks.message("export", "preprocessor.truncation_side", rule, side, cure))


def _model(task: Any, products: Products) -> Any:
    graph = Graph()
    text = graph.add("StringConcat", graph.constant(task.pipeline.prompt), _TEXT) if task.pipeline.prompt else _TEXT
    ids, mask = token_rows(graph, text, task.preprocessor)
    hidden = hidden_states(graph, ids, mask, task.backbone, products)
    counts = graph.add("ReduceSum", mask, graph.constant([1]), keepdims=0)
    answers = {**task.onnx_answers(graph, hidden, mask), _NUM_TOKENS: Answer(counts, INT32, (None,))}
    return graph.model(_TEXT, answers)
