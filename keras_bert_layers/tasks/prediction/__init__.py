"""Many rows through a model: order by length, token budget, progress, streaming, traced functions."""

from keras_bert_layers.tasks.prediction.predictor import Predictor

__all__ = ["Predictor"]
