"""How BERT is trained: the optimizer with its exclusions, and the course of the learning rate."""

from keras_bert_layers.optimizers.adamw import adamw
from keras_bert_layers.optimizers.warmup_linear_decay import WarmupLinearDecay

__all__ = ["WarmupLinearDecay", "adamw"]
