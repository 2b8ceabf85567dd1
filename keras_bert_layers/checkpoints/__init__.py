"""Checkpoints in and out: other people's files, read strictly and without running anything, and written whole."""

from typing import TYPE_CHECKING

from keras_bert_layers._internal.lazy import make_lazy

if TYPE_CHECKING:
    from keras_bert_layers.checkpoints.backbone_loader import load_backbone
    from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
    from keras_bert_layers.checkpoints.google.writer import save_google
    from keras_bert_layers.checkpoints.huggingface.writer import save_huggingface
    from keras_bert_layers.checkpoints.kerashub.writer import save_kerashub
    from keras_bert_layers.checkpoints.preprocessor_loader import load_preprocessor
    from keras_bert_layers.checkpoints.task_loader import load_task
    from keras_bert_layers.checkpoints.tokenizer_loader import load_tokenizer
    from keras_bert_layers.checkpoints.weights.reports import LoadReport, load_report

__all__ = [
    "CheckpointError",
    "LoadReport",
    "load_backbone",
    "load_preprocessor",
    "load_report",
    "load_task",
    "load_tokenizer",
    "save_google",
    "save_huggingface",
    "save_kerashub",
]

# `inspect` reads checkpoints without Keras.
make_lazy(
    __name__,
    {
        "CheckpointError": "checkpoint_error",
        "LoadReport": "weights.reports",
        "load_backbone": "backbone_loader",
        "load_preprocessor": "preprocessor_loader",
        "load_report": "weights.reports",
        "load_task": "task_loader",
        "load_tokenizer": "tokenizer_loader",
        "save_google": "google.writer",
        "save_huggingface": "huggingface.writer",
        "save_kerashub": "kerashub.writer",
    },
)
