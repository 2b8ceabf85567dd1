"""The tasks that a directory of a `SentenceTransformer` serves."""

from __future__ import annotations

from pathlib import Path

from keras_bert_layers.checkpoints.checkpoint import TrainedHead
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.sentence_transformers.modules import dense_folders, sentence_encoder_options
from keras_bert_layers.checkpoints.sentence_transformers.settings import side_prompts, unused_prompts
from keras_bert_layers.checkpoints.weights.table import dense_projection_rows


def encoder_heads(root: Path, *, hidden_dim: int) -> tuple[TrainedHead, ...]:
    """The sentence encoder, and the dual encoder if it has the same vectors; see `sentence_encoder_options`."""
    options = sentence_encoder_options(root, hidden_dim=hidden_dim)
    doubts = unused_prompts(root, options.get("prompts", {}))
    rows = dense_projection_rows(len(dense_folders(root)))
    sentence_encoder = TrainedHead("sentence_encoder", options, rows, doubts=doubts)
    if "projection_dim" in options or "truncate_dim" in options:
        return (sentence_encoder,)
    shared = {name: options[name] for name in ("pooling", "normalize")}
    return sentence_encoder, TrainedHead("dual_encoder", {**shared, **side_prompts(options)}, doubts=doubts)


def refuse_new_encoder(root: Path, task: str) -> None:
    """Refuses a dual encoder where `encoder_heads` has none; CheckpointError."""
    if task == "dual_encoder":
        raise CheckpointError(
            f"{root}: the vectors have a dense layer or are cut, which a BertDualEncoder does not have. Load the "
            'task "sentence_encoder", whose `encode_queries` and `encode_documents` are the same.'
        )
