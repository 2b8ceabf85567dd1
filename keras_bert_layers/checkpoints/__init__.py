"""Checkpoints in: HuggingFace and sentence-transformers directories, read strictly and without running anything."""

from keras_bert_layers.checkpoints.backbone_loader import load_backbone
from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError
from keras_bert_layers.checkpoints.preprocessor_loader import load_preprocessor
from keras_bert_layers.checkpoints.reports import LoadReport, load_report
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
]
