"""A small backbone for the tests that change a vocabulary."""

import keras

from keras_bert_layers import BertBackbone, BertConfig


def array(weight):
    return keras.ops.convert_to_numpy(weight)


def make_backbone(size=18, **options):
    keras.utils.set_random_seed(5)
    return BertBackbone(
        BertConfig(
            vocabulary_size=size,
            hidden_dim=8,
            num_layers=1,
            num_heads=2,
            intermediate_dim=7,
            max_sequence_length=13,
            **options,
        )
    )
