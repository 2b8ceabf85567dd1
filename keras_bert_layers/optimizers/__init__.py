"""The optimizer of BERT, learning rate schedules, and a callback that tries learning rates."""

from keras_bert_layers.optimizers.adamw import adamw
from keras_bert_layers.optimizers.learning_rate_finder import LearningRateFinder
from keras_bert_layers.optimizers.warmup import Warmup
from keras_bert_layers.optimizers.warmup_linear_decay import WarmupLinearDecay

__all__ = ["LearningRateFinder", "Warmup", "WarmupLinearDecay", "adamw"]
