"""What the tasks are measured by: streaming `keras.metrics.Metric`, and scores of whole collections."""

from keras_bert_layers.metrics.entity_f1 import EntityF1
from keras_bert_layers.metrics.squad import best_no_answer_threshold, squad_scores

__all__ = ["EntityF1", "best_no_answer_threshold", "squad_scores"]
