"""Reads the files of sentence-transformers' `SparseEncoder`: a masked language model and its pooling."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keras_bert_layers.checkpoints.checkpoint import TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.files import json_file
from keras_bert_layers.checkpoints.sentence_transformers.modules import (
    ENCODER_FILE,
    MODEL_FILE,
    check_encoder,
    module_config,
    other_chain,
    query_folder,
    read_modules,
    read_prompts,
)
from keras_bert_layers.checkpoints.weights.table import QUERY_ROWS, WeightRow

_CHAIN = ["Transformer", "SpladePooling"]
_TOKENIZER_FILE = "tokenizer.json"


def is_sparse_encoder(root: Path) -> bool:
    """Whether a directory with a `modules.json` is a `SparseEncoder`."""
    stated = json_file.optional_json(root / MODEL_FILE).get("model_type") == "SparseEncoder"
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
    check_encoder(root / modules[0][1] / ENCODER_FILE, "fill-mask", "logits")
    values = module_config(root / modules[1][1] / "config.json", "pooling")
    options: dict[str, Any] = {
        "pooling": values.get("pooling_strategy", "max"),
        "activation": values.get("activation_function", "relu"),
        **read_prompts(root),
    }
    rows: tuple[WeightRow, ...] = ()
    if (queries := query_folder(root)) is not None:
        options["query_weights"] = _query_weights(queries, root / modules[0][1])
        rows = QUERY_ROWS
    most = json_file.optional_json(root / MODEL_FILE).get("max_active_dims")
    if most is not None:
        options["max_active_dims"] = json_file.check_integer(root / MODEL_FILE, "max_active_dims", most, least=1)
    heads = [dataclasses.replace(head, stated=False) for head in heads]
    masked = next((head for head in heads if head.name == "masked_lm"), None)
    if masked is None:
        raise CheckpointError(f"{root}: the weights must hold the head of a masked language model.")
    values = {"options": {**masked.options, **options}, "rows": (*masked.rows, *rows), "stated": True}
    return dataclasses.replace(masked, name="sparse_encoder", **values), *heads


def _query_weights(folder: Path, encoder: Path) -> str:
    """How the weights of queries are trained; CheckpointError if they are not those of the encoder's tokens."""
    path = folder / "config.json"
    values = module_config(path, "query weights")
    cure = "Save the model with sentence-transformers 5.1 or newer, which writes them as a tensor."
    json_file.check_one_of(path, "path", values.get("path"), (None,), cure)
    own, other = (json_file.optional_json(place / _TOKENIZER_FILE) for place in (folder, encoder))
    for key in ("normalizer", "pre_tokenizer", "model") if own and other else ():
        if own.get(key) != other.get(key):
            rule = f"`{key}` must be that of the encoder's {encoder / _TOKENIZER_FILE}, as both share one vocabulary"
            raise CheckpointError(f"{folder / _TOKENIZER_FILE}: {rule}.")
    return "frozen" if json_file.check_boolean(path, "frozen", values.get("frozen", False)) else "trained"
