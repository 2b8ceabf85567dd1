import numpy as np

from keras_bert_layers.layers.initializers import truncated_normal


def test_standard_deviation_and_cut():
    values = np.asarray(truncated_normal(0.3)((200, 99)))
    # Cut at two standard deviations, a normal distribution keeps 0.880 of its own.
    assert abs(values.std() - 0.88 * 0.3) < 0.005
    assert np.abs(values).max() <= 0.6


def test_two_instances_draw_different_values():
    assert not np.array_equal(truncated_normal(0.3)((5, 3)), truncated_normal(0.3)((5, 3)))
