"""`replace_documents`: other documents in an exported search, encoded by the model in the file."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.files.atomic_write import atomic_write
from keras_bert_layers._internal.lazy import LazyModule, tf
from keras_bert_layers.export.model_card import CARD_FILE, read_model_card, write_with_weights
from keras_bert_layers.export.onnx import CARD, as_constant, needed, write_model
from keras_bert_layers.export.saved_model import GRAPH, NEXT, check_destination
from keras_bert_layers.export.search.corpus import (
    ENCODER,
    PREFIX,
    Arrays,
    Corpus,
    Documents,
    Postings,
    Tokens,
    corpus_arrays,
    cut_text,
    encoded_texts,
    read_corpus,
)
from keras_bert_layers.export.search.onnx_encoder import encode
from keras_bert_layers.export.search.onnx_graph import onnx_arrays

_OWNER = "replace_documents"
_VARIABLES, _OBJECTS = "variables", "_CHECKPOINTABLE_OBJECT_GRAPH"
onnx = LazyModule("onnx", "onnx")
objects_pb2 = LazyModule("tensorflow.core.protobuf.trackable_object_graph_pb2", "tensorflow")


def replace_documents(path: str | PathLike[str], documents: Documents, ids: Any = None) -> Path:
    """Puts other documents into what `export_search` wrote; the model in it encodes them, and its graph stays.

    Args:
        path: an ONNX file; or a SavedModel; or a folder of versions, as TensorFlow Serving has it, of which the newest
            is read and one more is written, which the server then loads.
        documents: texts, or a dictionary id -> text: all that the search is to find from now on. It may be empty.
        ids: as for `export_search`; of the type that the file has.

    Returns:
        What was written, completely or not at all.

    Raises:
        FileNotFoundError: there is no exported search.
        TypeError, ValueError: what `export_search` refuses; ids of another type than the file's.
        OSError: it cannot be written; what was there is unchanged.

    Examples:
        >>> import tempfile, keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=6, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
        >>> tokenizer = kbl.BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog"])
        >>> encoder = kbl.BertSentenceEncoder(kbl.BertBackbone(config), preprocessor=kbl.BertPreprocessor(tokenizer))
        >>> folder = encoder.export_search(tempfile.mkdtemp(), ["cat", "dog"], version=1, verbose=0)
        >>> replace_documents(folder.parent, ["cat cat", "dog dog", "cat dog"]).name
        '2'
    """
    path = Path(path)
    if path.is_file():
        return _in_onnx_file(path, documents, ids)
    versions = [child for child in path.glob("*") if child.name.isdecimal() and (child / GRAPH).is_file()]
    source = max(versions, key=lambda child: int(child.name), default=path)
    if not (source / GRAPH).is_file():
        rule = "be an exported search: an ONNX file, a SavedModel, or a folder of its versions"
        raise FileNotFoundError(checks.message(_OWNER, "path", rule, str(path)))
    card = read_model_card(source)
    corpus = _corpus(path, card, documents, ids)
    arrays = _arrays(corpus, card, _saved_model_encoder(source))
    target = check_destination(path, NEXT) if versions else path
    with atomic_write(target, owner=_OWNER, argument="path", replace=not versions) as unfinished:
        shutil.copytree(source, unfinished, ignore=shutil.ignore_patterns(_VARIABLES, CARD_FILE))
        _write_variables(source, unfinished, arrays)
        write_with_weights(unfinished, _with_facts(card, corpus))
    return target


def _corpus(path: Path, card: dict[str, Any], documents: Documents, ids: Any) -> Corpus:
    """The new documents; ids of the type that the graph has."""
    if "search" not in card:
        raise _no_search(path)
    corpus, kind = read_corpus(_OWNER, documents, ids), card["search"]["ids"]
    if not len(corpus.rows):
        return corpus._replace(ids=np.array([], object if kind == "string" else np.int64))
    if corpus.ids_are != kind:
        wanted = "strings" if kind == "string" else "whole numbers"
        cure = "The file has ids of that type. For others, export the search again."
        raise ValueError(checks.message(_OWNER, "ids", f"be {wanted}", corpus.ids[:3].tolist(), cure))
    return corpus


def _no_search(path: Path) -> ValueError:
    cure = "Write one with `encoder.export_search`."
    return ValueError(checks.message(_OWNER, "path", "be an exported search", str(path), cure))


def _arrays(corpus: Corpus, card: dict[str, Any], encode: Callable[[list[str]], Any]) -> Arrays:
    most = card["preprocessing"]["max_bytes"]
    found: Any = encode([cut_text(text, most) for text in corpus.texts or [""]])
    return corpus_arrays(corpus, found, card["search"]["vectors"])


def _with_facts(card: dict[str, Any], corpus: Corpus) -> dict[str, Any]:
    return {**card, "search": {**card["search"], **corpus.facts()}}


def _saved_model_encoder(source: Path) -> Callable[[list[str]], Any]:
    """What encodes documents, to what `corpus_arrays` reads: the signature `document`."""
    import tensorflow_text  # noqa: F401  registers the tokenizer's operations

    model = tf.saved_model.load(str(source))

    def embedding(texts: list[str]) -> np.ndarray:
        found = model.signatures["document"](text=tf.constant(texts, tf.string))
        if "embedding" in found and "span" not in found:
            return found["embedding"].numpy()
        rows = np.empty(len(texts), object)
        for row in range(len(texts)):
            each = {name: value[row].numpy() for name, value in found.items()}
            if "weights" in each:
                ids = np.flatnonzero(each["weights"])
                rows[row] = np.stack([ids, each["weights"][ids]], axis=1)
            else:
                both = np.concatenate([each["embedding"], each["span"]], axis=1)
                rows[row] = both[each["embedding"].any(axis=1)]
        return rows

    def encode_all(texts: list[str]) -> Any:
        found = encoded_texts(embedding, texts)
        if found.dtype != object:
            return found
        both, starts = np.concatenate(list(found)), np.cumsum([0, *(len(row) for row in found)])
        outputs = model.signatures["document"].structured_outputs
        if "weights" not in outputs:
            return Tokens(both[:, :-2].astype(np.float32), starts, both[:, -2:])
        ids, weights = both[:, 0].astype(np.int64), both[:, 1].astype(np.float32)
        return Postings.of(ids, weights, starts, outputs["weights"].shape[1])

    return encode_all


def _write_variables(source: Path, target: Path, arrays: Arrays) -> None:
    """Writes the variables of a SavedModel, with another corpus among them."""
    reader = tf.train.load_checkpoint(str(source / _VARIABLES / _VARIABLES))
    objects = objects_pb2.TrackableObjectGraph.FromString(reader.get_tensor(_OBJECTS))
    names = {each.checkpoint_key: each.full_name for node in objects.nodes for each in node.attributes}
    keys = sorted(reader.get_variable_to_shape_map())
    tensors = []
    for key in keys:
        new = arrays.get(names.get(key, "").removeprefix(PREFIX))
        value = reader.get_tensor(key) if new is None else new
        is_text = isinstance(value, np.ndarray) and value.dtype == object
        tensors.append(tf.constant(value.tolist(), tf.string) if is_text else tf.constant(value))
    (target / _VARIABLES).mkdir()
    prefix = str(target / _VARIABLES / _VARIABLES)
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=keys, shape_and_slices=[""] * len(keys), tensors=tensors)


def _in_onnx_file(path: Path, documents: Documents, ids: Any) -> Path:
    """Replaces an ONNX file; large tensors may be in a file beside it."""
    with needed("onnx"):
        decode = importlib.import_module("google.protobuf.message").DecodeError
        importlib.import_module("onnx")
    try:
        model = onnx.load(path)
    except decode as error:
        raise _no_search(path) from error
    cards = [entry.value for entry in model.metadata_props if entry.key == CARD]
    card = json.loads(cards[0]) if cards else {}
    corpus = _corpus(path, card, documents, ids)
    encoder = _encoding_model(model)
    arrays = onnx_arrays(_arrays(corpus, card, lambda texts: encode(encoder, texts)))
    for tensor in model.graph.initializer:
        if tensor.name.startswith(PREFIX):
            tensor.CopyFrom(as_constant(tensor.name, arrays[tensor.name.removeprefix(PREFIX)]))
    return write_model(path, lambda: model, _with_facts(card, corpus))


def _encoding_model(model: Any) -> Any:
    """The function that a file holds beside its graph, as a model."""
    (function,) = (function for function in model.functions if function.name == ENCODER)
    used, helper = set(function.input), onnx.helper
    inputs = [put for put in model.graph.input if put.name in used]
    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in function.output]
    constants = [tensor for tensor in model.graph.initializer if tensor.name in used]
    graph = helper.make_graph(list(function.node), ENCODER, inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=list(model.opset_import), ir_version=model.ir_version)
