import math

import numpy as np
import pytest

from keras_bert_layers.layers import BertEmbedding, SinusoidalPositions

# Sines of float64 angles, rounded to float32.
FLOAT32 = 1e-7


@pytest.mark.parametrize("width", [6, 7])
def test_values(width):
    table = SinusoidalPositions().embedding_table(5, width)
    assert (table.shape, table.dtype) == ((5, width), "float32")
    for position in range(5):
        for column in range(width):
            angle = position / 10000 ** ((column - column % 2) / width)
            expected = math.cos(angle) if column % 2 else math.sin(angle)
            assert abs(table[position, column] - expected) < FLOAT32


def test_embedding_contract(check_layer, tmp_path):
    check_layer(
        lambda **kwargs: BertEmbedding(
            19, 6, num_segments=0, dropout=0.0, max_sequence_length=9, positions=SinusoidalPositions(), **kwargs
        ),
        {"token_ids": np.arange(14, dtype="int32").reshape(2, 7)},
        output_shape=(2, 7, 6),
        num_weights=3,
        tmp_path=tmp_path,
    )
