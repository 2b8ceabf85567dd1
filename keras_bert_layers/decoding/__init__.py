"""Decodes model outputs to answers, in the TensorFlow graph."""

from keras_bert_layers.decoding.choices import decode_choices
from keras_bert_layers.decoding.entities import decode_entities
from keras_bert_layers.decoding.labels import decode_label_sets, decode_labels
from keras_bert_layers.decoding.masks import decode_masks, find_masks
from keras_bert_layers.decoding.spans import choose_answers, decode_spans

__all__ = [
    "choose_answers",
    "decode_choices",
    "decode_entities",
    "decode_label_sets",
    "decode_labels",
    "decode_masks",
    "decode_spans",
    "find_masks",
]
