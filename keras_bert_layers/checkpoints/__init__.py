"""Checkpoints in and out: other people's files, read strictly and without running anything, and written whole."""

from typing import TYPE_CHECKING

from keras_bert_layers._internal.lazy import make_lazy

if TYPE_CHECKING:
    from keras_bert_layers.checkpoints.backbone_loader import load_backbone
    from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
    from keras_bert_layers.checkpoints.preprocessor_loader import load_preprocessor
    from keras_bert_layers.checkpoints.reports import LoadReport, load_report
    from keras_bert_layers.checkpoints.save_google import save_google
    from keras_bert_layers.checkpoints.save_huggingface import save_huggingface
    from keras_bert_layers.checkpoints.save_kerashub import save_kerashub
    from keras_bert_layers.checkpoints.task_loader import load_task
    from keras_bert_layers.checkpoints.tokenizer_loader import load_tokenizer

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

# Checkpoints are looked at without Keras.
make_lazy(
    __name__,
    {
        "CheckpointError": "checkpoint_error",
        "LoadReport": "reports",
        "load_backbone": "backbone_loader",
        "load_preprocessor": "preprocessor_loader",
        "load_report": "reports",
        "load_task": "task_loader",
        "load_tokenizer": "tokenizer_loader",
        "save_google": "save_google",
        "save_huggingface": "save_huggingface",
        "save_kerashub": "save_kerashub",
    },
)
