"""BERT itself, as one of the families."""

from __future__ import annotations

from keras_bert_layers.checkpoints.huggingface.families.family import Family

BERT = Family()
