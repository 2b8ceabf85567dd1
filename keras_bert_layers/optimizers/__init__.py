"""The optimizer and the learning rate schedule of BERT."""

from keras_bert_layers.optimizers.adamw import adamw
from keras_bert_layers.optimizers.warmup_linear_decay import WarmupLinearDecay

__all__ = ["WarmupLinearDecay", "adamw"]
