"""Optimizers of BERT, learning rate schedules, and callbacks that log the rate and try rates."""

from keras_bert_layers.optimizers.adamw import adamw
from keras_bert_layers.optimizers.google_adamw import google_adamw
from keras_bert_layers.optimizers.google_warmup_linear_decay import GoogleWarmupLinearDecay
from keras_bert_layers.optimizers.lamb import lamb
from keras_bert_layers.optimizers.learning_rate_finder import LearningRateFinder
from keras_bert_layers.optimizers.optimizer_logger import OptimizerLogger
from keras_bert_layers.optimizers.warmup import Warmup
from keras_bert_layers.optimizers.warmup_linear_decay import WarmupLinearDecay
from keras_bert_layers.optimizers.warmup_stable_decay import WarmupStableDecay

__all__ = [
    "GoogleWarmupLinearDecay",
    "LearningRateFinder",
    "OptimizerLogger",
    "Warmup",
    "WarmupLinearDecay",
    "WarmupStableDecay",
    "adamw",
    "google_adamw",
    "lamb",
]
