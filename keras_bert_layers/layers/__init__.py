"""BERT's layers, for every Keras backend.

They are written with `keras` and `keras.ops`. Four modules also call TensorFlow, only on its backend: `_packing` and
`_row_groups` skip padding, `_layer_norm` uses a fused operation, and `_summed_gradient` adds up gradients.
"""

from keras_bert_layers.layers.activations import gelu_erf, gelu_tanh
from keras_bert_layers.layers.bert_embedding import BertEmbedding
from keras_bert_layers.layers.classification_head import ClassificationHead
from keras_bert_layers.layers.conditional_random_field import ConditionalRandomField
from keras_bert_layers.layers.encoder_parts import EncoderParts
from keras_bert_layers.layers.feed_forward import FeedForward
from keras_bert_layers.layers.flatten_choices import FlattenChoices
from keras_bert_layers.layers.gated_feed_forward import GatedFeedForward
from keras_bert_layers.layers.masked_lm_head import MaskedLMHead
from keras_bert_layers.layers.multiple_choice_head import MultipleChoiceHead
from keras_bert_layers.layers.next_sentence_head import NextSentenceHead
from keras_bert_layers.layers.pooler import Pooler
from keras_bert_layers.layers.positions import Positions
from keras_bert_layers.layers.relative_position_bias import RelativePositionBias
from keras_bert_layers.layers.rotary_positions import RotaryPositions
from keras_bert_layers.layers.self_attention import SelfAttention
from keras_bert_layers.layers.sequence_pooling import SequencePooling
from keras_bert_layers.layers.sinusoidal_positions import SinusoidalPositions
from keras_bert_layers.layers.span_head import SpanHead
from keras_bert_layers.layers.token_classification_head import TokenClassificationHead
from keras_bert_layers.layers.transformer_encoder_block import TransformerEncoderBlock

__all__ = [
    "BertEmbedding",
    "ClassificationHead",
    "ConditionalRandomField",
    "EncoderParts",
    "FeedForward",
    "FlattenChoices",
    "GatedFeedForward",
    "MaskedLMHead",
    "MultipleChoiceHead",
    "NextSentenceHead",
    "Pooler",
    "Positions",
    "RelativePositionBias",
    "RotaryPositions",
    "SelfAttention",
    "SequencePooling",
    "SinusoidalPositions",
    "SpanHead",
    "TokenClassificationHead",
    "TransformerEncoderBlock",
    "gelu_erf",
    "gelu_tanh",
]
