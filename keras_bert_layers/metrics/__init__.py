"""What the tasks are measured by: streaming `keras.metrics.Metric`, and scores of whole collections."""

from keras_bert_layers.metrics.entity_f1 import EntityF1

__all__ = ["EntityF1"]
