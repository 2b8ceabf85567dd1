import re

import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertConfig
from keras_bert_layers.layers import EncoderParts, ScalarMix
from keras_bert_layers.tasks.graphs.hidden_states import checked_layers, feature_model

# The same float32 sums in another order.
ROUNDING = 2e-6


@pytest.mark.parametrize(
    ("given", "found"),
    [(-1, (3,)), ([0, -1, 1], (0, 3, 1)), ("all", (0, 1, 2, 3)), (range(2), (0, 1)), (-4, (0,)), ((2, 2), (2, 2))],
    ids=str,
)
def test_layers(given, found):
    assert checked_layers("Owner", given, 3) == found


@pytest.mark.parametrize(
    ("given", "error"),
    [(4, ValueError), ([0, -5], ValueError), ([], TypeError), ("last", TypeError), (True, TypeError), (1.0, TypeError)],
    ids=str,
)
def test_layers_that_are_refused(given, error):
    rule = '`Owner`: `layers` must be "all", or indices from -4 to 3, with 0 for the output of the embedding. Received:'
    with pytest.raises(error, match=re.escape(rule)):
        checked_layers("Owner", given, 3)


@pytest.mark.parametrize(
    "options", [{}, {"return_attention_scores": True}, {"parts": EncoderParts(normalize_first=True)}]
)
def test_states_are_those_of_the_backbone(vocabulary, preprocessor, options):
    config = BertConfig(vocabulary_size=len(vocabulary), hidden_dim=15, num_layers=2, num_heads=3, intermediate_dim=21)
    backbone = BertBackbone(config, return_hidden_states=True, **options)
    ids = preprocessor(["a good film", "bad"])
    expected = np.stack([np.asarray(state) for state in backbone(ids)["hidden_states"]], axis=-2)
    stack = np.asarray(feature_model(backbone, [0, 1, 2], "stack")(ids))
    real = np.asarray(ids["padding_mask"], bool)
    np.testing.assert_allclose(stack[real], expected[real], atol=ROUNDING)
    for combine, found in {
        "concat": expected[..., [2, 0], :].reshape(*expected.shape[:2], 30),
        "sum": expected[..., [2, 0], :].sum(axis=-2),
        "mean": expected[..., [2, 0], :].mean(axis=-2),
        ScalarMix(): expected[..., [2, 0], :].mean(axis=-2),
    }.items():
        values = np.asarray(feature_model(backbone, [2, 0], combine)(ids))
        np.testing.assert_allclose(values[real], found[real], atol=2 * ROUNDING)


def test_no_block_runs_above_the_highest_layer(new_backbone):
    model = feature_model(new_backbone(num_layers=3), [0, 1], "concat")
    assert [layer.name for layer in model.layers if "block" in layer.name] == ["encoder_block_0"]
