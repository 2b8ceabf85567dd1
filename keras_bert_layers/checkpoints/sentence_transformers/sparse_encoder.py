"""Reads and writes the files of sentence-transformers' `SparseEncoder`: a masked language model and its pooling."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keras_bert_layers.checkpoints.checkpoint import TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files import json_file
from keras_bert_layers.checkpoints.sentence_transformers.modules import (
    MODEL_FILE,
    MODULES_FILE,
    check_encoder,
    module_config,
    other_chain,
    read_modules,
    read_prompts,
)

if TYPE_CHECKING:
    import keras

_KIND, _FOLDER = "SparseEncoder", "1_SpladePooling"
_CHAIN = ["Transformer", "SpladePooling"]


def is_sparse_encoder(root: Path) -> bool:
    """Whether a directory with a `modules.json` is a `SparseEncoder`."""
    stated = json_file.optional_json(root / MODEL_FILE).get("model_type") == _KIND
    return stated or any(kind == _CHAIN[1] for kind, _ in read_modules(root))


def sparse_encoder_heads(root: Path, heads: Iterable[TrainedHead]) -> tuple[TrainedHead, ...]:
    """The sparse encoder of a directory, and the heads of its weights, which the files do not state.

    Args:
        root: the checkpoint's directory; it has a `modules.json`.
        heads: the heads that the weights hold.

    Raises:
        CheckpointError: `BertSparseEncoder` does not have this chain of modules or these settings; the weights have no
            masked language model.
    """
    modules = [("Transformer" if kind == "MLMTransformer" else kind, folder) for kind, folder in read_modules(root)]
    if (kinds := [kind for kind, _ in modules]) != _CHAIN:
        raise other_chain(root, kinds)
    check_encoder(root / modules[0][1] / "sentence_bert_config.json", "fill-mask", "logits")
    values = module_config(root / modules[1][1] / "config.json", "pooling")
    options: dict[str, Any] = {
        "pooling": values.get("pooling_strategy", "max"),
        "activation": values.get("activation_function", "relu"),
        **read_prompts(root),
    }
    most = json_file.optional_json(root / MODEL_FILE).get("max_active_dims")
    if most is not None:
        options["max_active_dims"] = json_file.check_integer(root / MODEL_FILE, "max_active_dims", most, least=1)
    heads = [dataclasses.replace(head, stated=False) for head in heads]
    masked = next((head for head in heads if head.name == "masked_lm"), None)
    if masked is None:
        raise CheckpointError(f"{root}: the weights must hold the head of a masked language model.")
    own = dataclasses.replace(masked, name="sparse_encoder", options={**masked.options, **options}, stated=True)
    return own, *heads


def write_sparse_encoder(directory: Path, model: keras.Model, *, max_length: int | None) -> None:
    """Writes the files beside those of the masked language model, in the form that releases from 5.0 on read.

    Args:
        directory: the directory of the model's own files.
        model: a `BertSparseEncoder`.
        max_length: the maximum length in tokens, special tokens included; None if it is not known.
    """
    package = "sentence_transformers.sparse_encoder.models"
    kinds = {"": f"{package}.MLMTransformer", _FOLDER: f"{package}.SpladePooling"}
    chain = [
        {"idx": index, "name": str(index), "path": path, "type": kind}
        for index, (path, kind) in enumerate(kinds.items())
    ]
    json_file.write_json(directory / MODULES_FILE, chain)
    (directory / _FOLDER).mkdir()
    pooling = {"pooling_strategy": model.pooling, "activation_function": model.activation}
    size = {"word_embedding_dimension": model.output.shape[-1]}
    json_file.write_json(directory / _FOLDER / "config.json", {**pooling, **size})
    if max_length is not None:
        path = directory / "sentence_bert_config.json"
        json_file.write_json(path, {"max_seq_length": max_length, "do_lower_case": False})
    settings = {"model_type": _KIND, "prompts": model.prompts or {}, "default_prompt_name": model.default_prompt}
    settings |= {"similarity_fn_name": "dot"}
    settings |= {} if model.max_active_dims is None else {"max_active_dims": model.max_active_dims}
    json_file.write_json(directory / MODEL_FILE, settings)
