"""`write_sentence_transformers`: writes the files that sentence-transformers adds to a BERT."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.files.json_file import write_json
from keras_bert_layers.checkpoints.files.safetensors_file import write_safetensors
from keras_bert_layers.checkpoints.sentence_transformers.modules import (
    ACTIVATIONS,
    ENCODER_FILE,
    MODEL_FILE,
    MODULES_FILE,
    POOLING_FLAGS,
    ROUTER_FILE,
    TOKEN_VECTORS,
    written_activation,
)
from keras_bert_layers.checkpoints.weights.table import QUERY_ROWS, TOKEN_PROJECTION_ROWS, Layout, dense_projection_rows
from keras_bert_layers.checkpoints.written_model import WrittenModel

if TYPE_CHECKING:
    import keras

# The import paths up to release 5.3, which later releases read too.
_MODULE, _SPARSE_MODULE = "sentence_transformers.models", "sentence_transformers.sparse_encoder.models"
_TOKEN_MODULES = {
    "": "base.modules.transformer.Transformer",
    "1_Dense": "base.modules.dense.Dense",
    "2_MultiVectorMask": "multi_vector_encoder.modules.multi_vector_mask.MultiVectorMask",
    "3_Normalize": "base.modules.normalize.Normalize",
}


def checked_projections(owner: str, model: keras.Model) -> list[tuple[int, str]]:
    """Width and activation of each dense layer of a model; ValueError if torch has no class for an activation."""
    widths, activations = getattr(model, "projection_dim", None), getattr(model, "projection_activation", None)
    widths = () if widths is None else (widths,) if isinstance(widths, int) else widths
    activations = (activations,) * len(widths) if isinstance(activations, str) else activations or ()
    for activation in activations:
        checks.one_of(owner, "model.projection_activation", activation, list(ACTIVATIONS.values()))
    return list(zip(widths, activations, strict=True))


def write_sentence_transformers(directory: Path, model: keras.Model, *, max_length: int | None) -> None:
    """Writes the modules after the encoder: pooling, the dense layers, normalization.

    Args:
        directory: the directory of the encoder's own files.
        model: a `BertSentenceEncoder`, or a `BertDualEncoder` with one encoder.
        max_length: the maximum length in tokens, special tokens included; None if it is not known.

    References:
        sentence-transformers 2 to 6 read these files.
    """
    modules = [("Transformer", ""), ("Pooling", "1_Pooling")]
    (directory / "1_Pooling").mkdir()
    poolings = (model.pooling,) if isinstance(model.pooling, str) else model.pooling
    width = model.backbone.config.hidden_dim
    write_json(directory / "1_Pooling" / "config.json", _pooling(poolings, width))
    width *= len(poolings)
    for index, (dim, activation) in enumerate(checked_projections("save_huggingface", model)):
        modules.append(("Dense", f"{len(modules)}_Dense"))
        _write_dense(directory / modules[-1][1], model, index, {"in_features": width, "out_features": dim}, activation)
        width = dim
    if model.normalize:
        modules.append(("Normalize", f"{len(modules)}_Normalize"))
        (directory / modules[-1][1]).mkdir()
    settings: dict[str, Any] = {"model_type": "SentenceTransformer"}
    # As our models compare two vectors.
    settings["similarity_fn_name"] = "cosine" if model.normalize or not hasattr(model, "symmetric") else "dot"
    if getattr(model, "truncate_dim", None) is not None:
        settings["truncate_dim"] = model.truncate_dim
    chain = [(f"{_MODULE}.{kind}", path) for kind, path in modules]
    _write_chain(directory, chain, model, _encoder_settings(max_length), settings)


def write_sparse_encoder(directory: Path, model: keras.Model, *, max_length: int | None) -> None:
    """Writes the files beside a masked language model; releases from 5.0 on read them. Arguments as above.

    A model whose queries are looked up has a Router of two sides, which copies the tokenizer's files.
    """
    (directory / "1_SpladePooling").mkdir()
    values = {"pooling_strategy": model.pooling, "activation_function": model.activation}
    values["word_embedding_dimension"] = model.output.shape[-1]
    write_json(directory / "1_SpladePooling" / "config.json", values)
    settings = {"model_type": "SparseEncoder", "similarity_fn_name": "dot", "max_active_dims": model.max_active_dims}
    modules = [(f"{_SPARSE_MODULE}.MLMTransformer", ""), (f"{_SPARSE_MODULE}.SpladePooling", "1_SpladePooling")]
    if model.query_weights is not None:
        _write_queries(directory, model, modules)
        modules = [("sentence_transformers.models.Router", "")]
    _write_chain(directory, modules, model, _encoder_settings(max_length), settings)


def _write_queries(directory: Path, model: keras.Model, modules: Sequence[tuple[str, str]]) -> None:
    """Writes the weights of queries that no encoder reads, with the tokenizer, and the Router of both sides."""
    size = None if model.preprocessor is None else model.preprocessor.tokenizer.vocabulary_size()
    if size != model.output.shape[-1]:
        rule = f"have as many tokens as the model, {model.output.shape[-1]}, which is what sentence-transformers takes"
        raise ValueError(checks.message("save_huggingface", "model.preprocessor.tokenizer", rule, size))
    folder = "query_0_SparseStaticEmbedding"
    (directory / folder).mkdir()
    for path in directory.glob("*token*"):
        shutil.copyfile(path, directory / folder / path.name)
    write_json(directory / folder / "config.json", {"frozen": model.query_weights == "frozen"})
    written = WrittenModel(model, Layout.HUGGINGFACE, owner="save_huggingface")
    tensors = written.tensors(QUERY_ROWS, lambda name: name.removeprefix("queries."))
    write_safetensors(directory / folder / "model.safetensors", tensors)
    types = {folder: kind for kind, folder in modules} | {folder: f"{_SPARSE_MODULE}.SparseStaticEmbedding"}
    structure = {"query": [folder], "document": [folder for _, folder in modules]}
    parameters = {"default_route": "document", "allow_empty_key": True}
    write_json(directory / ROUTER_FILE, {"types": types, "structure": structure, "parameters": parameters})


def write_multi_vector_encoder(directory: Path, model: keras.Model, *, max_length: int | None) -> None:
    """Writes the modules after the encoder, in the form that sentence-transformers reads from 6.0 on.

    Args:
        directory: the directory of the encoder's own files.
        model: a `BertMultiVectorEncoder`.
        max_length: the maximum length in tokens, special tokens included; None if it is not known.
    """
    names = {"module_input_name": TOKEN_VECTORS, "module_output_name": TOKEN_VECTORS}
    widths = {"in_features": model.backbone.config.hidden_dim, "out_features": model.projection_dim}
    dense = {**widths, "bias": False, "activation_function": written_activation("linear"), **names}
    skiplist = {"skiplist_words": list(model.skiplist), "skiplist_tasks": ["document"], "keep_only_token_ids": None}
    for folder, values in zip(list(_TOKEN_MODULES)[1:], (dense, skiplist, names), strict=True):
        (directory / folder).mkdir()
        write_json(directory / folder / "config.json", values)
    written = WrittenModel(model, Layout.HUGGINGFACE, owner="save_huggingface")
    tensors = written.tensors(TOKEN_PROJECTION_ROWS, lambda name: name.removeprefix("dense."))
    write_safetensors(directory / "1_Dense" / "model.safetensors", tensors)
    expansion, length = model.query_expansion, model.query_length
    settings = _encoder_settings(max_length) | {
        "query_length": length,
        "document_length": model.document_length,
        "query_expansion": None,
    }
    if expansion is not None:
        fixed = {"strategy": "fixed", "attend": expansion == "attended", "token": None, "length": length}
        settings |= {"query_length": None, "query_expansion": fixed}
    chain = [(f"sentence_transformers.{kind}", folder) for folder, kind in _TOKEN_MODULES.items()]
    _write_chain(
        directory, chain, model, settings, {"model_type": "MultiVectorEncoder", "similarity_fn_name": "maxsim"}
    )


def _encoder_settings(max_length: int | None) -> dict[str, Any]:
    """The settings of the encoder's file: its maximum length, if it is known."""
    return {} if max_length is None else {"max_seq_length": max_length, "do_lower_case": False}


def _write_chain(
    directory: Path,
    modules: Sequence[tuple[str, str]],
    model: keras.Model,
    encoder: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> None:
    """Writes the modules, by import path and folder, the settings of the encoder, and the model's with the prompts."""
    keys = ("idx", "name", "path", "type")
    chain = [dict(zip(keys, (n, str(n), path, kind), strict=True)) for n, (kind, path) in enumerate(modules)]
    write_json(directory / MODULES_FILE, chain)
    if encoder:
        write_json(directory / ENCODER_FILE, encoder)
    prompts = {"prompts": model.prompts or {}, "default_prompt_name": getattr(model, "default_prompt", None)}
    write_json(directory / MODEL_FILE, {**settings, **prompts})


def _pooling(poolings: tuple[str, ...], width: int) -> dict[str, Any]:
    """The pooling's config: a flag for each mode, or, in an order that the flags do not have, a list of modes."""
    if list(poolings) != [mode for mode in POOLING_FLAGS.values() if mode in poolings]:
        # Releases before 5.4 do not know the list, and raise an error.
        return {"embedding_dimension": width, "pooling_mode": list(poolings), "include_prompt": True}
    flags = {flag: mode in poolings for flag, mode in POOLING_FLAGS.items()}
    return {"word_embedding_dimension": width, **flags, "include_prompt": True}


def _write_dense(folder: Path, model: keras.Model, index: int, widths: dict[str, int], activation: str) -> None:
    folder.mkdir()
    values = {**widths, "bias": True, "activation_function": written_activation(activation)}
    write_json(folder / "config.json", values)
    written = WrittenModel(model, Layout.HUGGINGFACE, owner="save_huggingface")
    rows = dense_projection_rows(index + 1)[-2:]
    tensors = written.tensors(rows, lambda name: name[name.index("linear.") :])
    write_safetensors(folder / "model.safetensors", tensors)
