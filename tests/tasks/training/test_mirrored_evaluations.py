"""`evaluate` and `predict` under `tf.distribute.MirroredStrategy`: two devices of TensorFlow find what one finds."""

import functools
import json
from pathlib import Path

import numpy as np
import pytest

from tests.tasks.training.processes import run
from tests.tasks.training.step_kinds import KINDS

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).with_name("mirrored_evaluations.py")
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


@functools.cache
def found(kinds):
    (code,), (text,) = run([[PROGRAM, *kinds]], [{"TF_CPP_MIN_LOG_LEVEL": "3"}])
    assert code == 0
    return json.loads(text.splitlines()[-1])


def of_one_and_two(kind, name):
    kinds = IN_CI if kind in IN_CI else tuple(kind for kind in KINDS if kind not in IN_CI)
    return [side[name] for side in found(kinds)[kind]]


def cases(kinds):
    return [pytest.param(kind, marks=[] if kind in IN_CI else [pytest.mark.exhaustive]) for kind in kinds]


@pytest.mark.parametrize("kind", cases(KINDS))
def test_two_devices_predict_as_one(kind):
    one, two = map(np.concatenate, of_one_and_two(kind, "predictions"))
    assert one.size > 0
    np.testing.assert_allclose(two, one, **CLOSE)


@pytest.mark.parametrize("kind", cases(kind for kind in KINDS if kind not in REFUSED))
def test_two_devices_evaluate_as_one(kind):
    one, two = of_one_and_two(kind, "evaluation")
    assert one.keys() == two.keys() >= {"loss", "tokens"}
    for name, value in two.items():
        if name in CORRELATIONS:
            assert np.isnan(value)
        elif name not in OF_OUTPUTS and not (name == "loss" and kind in OF_MASKS):
            np.testing.assert_allclose(value, one[name], err_msg=name, **CLOSE)


@pytest.mark.parametrize("kind", cases(REFUSED))
def test_tasks_that_compare_rows_are_refused(kind):
    one, two = of_one_and_two(kind, "evaluation")
    assert one["tokens"] > 0
    assert "must have one device" in two
