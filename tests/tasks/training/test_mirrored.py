"""Tasks under `tf.distribute.MirroredStrategy`: two devices of TensorFlow find what one finds, and train as it does."""

import functools
import json
from pathlib import Path

import numpy as np
import pytest

from tests.tasks.training.step_kinds import KINDS

pytestmark = pytest.mark.slow
FOLDER = Path(__file__).parent
IN_CI = ("classes", "numbers", "answers", "masks and next sentences", "vectors", "queries")
REFUSED = ("tags", "tags by a field", "vectors", "queries")
# Sums of float32 in another order.
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
# Means of batches' means, in which a part of a batch counts as much as a whole one: Keras's losses of single outputs.
OF_OUTPUTS = ("start_logits_loss", "end_logits_loss", "masked_lm_loss", "next_sentence_loss")
# The loss of a part is the mean over its masks, of which rows have one or two, and counts as many times as it has rows.
OF_MASKS = ("masks", "masks and next sentences")
# From moments of all rows, which sums over devices are not: NaN, and not a wrong number.
CORRELATIONS = ("pearson_correlation",)


# Weights after training, from gradients in another order; measured 3e-8, and 1e-2 where each device clips its own.
CLOSE_WEIGHTS = 1e-6


@pytest.fixture(scope="module")
def printed(on_tensorflow):
    """A function that returns what a program prints, run once for all tests."""

    @functools.cache
    def printed(program, *arguments):
        (code,), (text,) = on_tensorflow([(FOLDER / program, *arguments)], [{}])
        assert code == 0
        return json.loads(text.splitlines()[-1])

    return printed


@pytest.fixture
def of_one_and_two(printed, kind):
    """A function that returns what one device and two found for a kind of task."""
    kinds = IN_CI if kind in IN_CI else tuple(kind for kind in KINDS if kind not in IN_CI)
    return lambda name: [side[name] for side in printed("mirrored_evaluations.py", *kinds)[kind]]


def cases(kinds):
    return [pytest.param(kind, marks=[] if kind in IN_CI else [pytest.mark.exhaustive]) for kind in kinds]


@pytest.mark.parametrize("kind", cases(KINDS))
def test_two_devices_predict_as_one(of_one_and_two):
    one, two = map(np.concatenate, of_one_and_two("predictions"))
    assert one.size > 0
    np.testing.assert_allclose(two, one, **CLOSE)


@pytest.mark.parametrize("kind", cases(kind for kind in KINDS if kind not in REFUSED))
def test_two_devices_evaluate_as_one(kind, of_one_and_two):
    one, two = of_one_and_two("evaluation")
    assert one.keys() == two.keys() >= {"loss", "tokens"}
    for name, value in two.items():
        if name in CORRELATIONS:
            assert np.isnan(value)
        elif name not in OF_OUTPUTS and not (name == "loss" and kind in OF_MASKS):
            np.testing.assert_allclose(value, one[name], err_msg=name, **CLOSE)


@pytest.mark.parametrize("kind", cases(REFUSED))
def test_tasks_that_compare_rows_are_refused(of_one_and_two):
    one, two = of_one_and_two("evaluation")
    assert one["tokens"] > 0
    assert "must have one device" in two


def test_two_devices_train_as_one(printed):
    """Gradients are added before they are clipped."""
    differences = printed("mirrored_trainings.py")
    assert differences.keys() == {"AdamW", "LAMB", "Keras's Adam"}
    assert max(differences.values()) < CLOSE_WEIGHTS, differences
