"""Metrics that Keras does not have: streaming `keras.metrics.Metric`, and scores of whole collections."""

from keras_bert_layers.metrics.entity_f1 import EntityF1
from keras_bert_layers.metrics.entity_scores import entity_scores
from keras_bert_layers.metrics.f1score import F1Score
from keras_bert_layers.metrics.masked_accuracy import MaskedAccuracy
from keras_bert_layers.metrics.matthews_correlation import MatthewsCorrelation
from keras_bert_layers.metrics.pearson_correlation import PearsonCorrelation
from keras_bert_layers.metrics.perplexity import Perplexity
from keras_bert_layers.metrics.spearman_correlation import SpearmanCorrelation
from keras_bert_layers.metrics.squad import best_no_answer_threshold, squad_scores

__all__ = [
    "EntityF1",
    "F1Score",
    "MaskedAccuracy",
    "MatthewsCorrelation",
    "PearsonCorrelation",
    "Perplexity",
    "SpearmanCorrelation",
    "best_no_answer_threshold",
    "entity_scores",
    "squad_scores",
]
