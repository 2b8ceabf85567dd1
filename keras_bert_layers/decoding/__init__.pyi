from keras_bert_layers.decoding.entities import decode_entities as decode_entities
from keras_bert_layers.decoding.labels import decode_choices as decode_choices
from keras_bert_layers.decoding.labels import decode_label_sets as decode_label_sets
from keras_bert_layers.decoding.labels import decode_labels as decode_labels
from keras_bert_layers.decoding.masks import decode_masks as decode_masks
from keras_bert_layers.decoding.masks import find_masks as find_masks
from keras_bert_layers.decoding.spans import choose_answers as choose_answers
from keras_bert_layers.decoding.spans import decode_spans as decode_spans
