"""Losses of rankings against slow ones, pair by pair, written from the definitions of sentence-transformers 6.2."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_layers.losses import LambdaRank, ListNet, RankNet

GRADES = np.array([[3, 0, 1, 2], [0, 1, -1, -1], [0.5, 0.5, 0, -1], [0, 0, 0, 0]], np.float32)
LOGITS = np.array([[0.2, 1.5, -1, 0.3], [4, -30, 50, 60], [1, 2, 3, 9], [1, 0, 2, 3]], np.float32)
ROWS = [(grades[grades >= 0], logits[grades >= 0]) for grades, logits in zip(GRADES, LOGITS, strict=True)]


def slow_list_net(grades, logits):
    softmax = [np.exp(values - values.max()) / np.exp(values - values.max()).sum() for values in (grades, logits)]
    return -sum(softmax[0] * np.log(softmax[1]))


def slow_pairs(grades, logits, *, weigh=lambda *_: 1.0, sigma=1.0, top_k=None):
    """The weighted losses of a row's pairs."""
    grades, logits = (values[np.argsort(-logits, kind="stable")].astype(float) for values in (grades, logits))
    last = len(grades) if top_k is None else top_k
    discounts = np.log2(np.arange(len(grades)) + 2)
    ideal = max(1e-10, sum(((2 ** np.sort(grades)[::-1] - 1) / discounts)[:last]))
    gains = (2**grades - 1) / ideal
    return [
        weigh(abs(gains[i] - gains[j]), i, j) * np.log2(1 + np.exp(-sigma * (logits[i] - logits[j])))
        for i in range(len(grades))
        for j in range(len(grades))
        if grades[i] > grades[j] and min(i, j) < last
    ]


def lambda_weights(mu):
    def inverse(rank):
        return 1 / np.log2(rank + 2)

    def weigh(gap, i, j):
        apart = abs(i - j)
        return gap * (mu * (inverse(apart - 1) - inverse(apart)) + abs(inverse(i) - inverse(j)))

    return weigh


def value(loss, grades=GRADES, logits=LOGITS, **options):
    return float(ops.convert_to_numpy(loss(grades, logits, **options)))


def test_list_net():
    rows = [slow_list_net(*row) for row in ROWS]
    assert value(ListNet()) == pytest.approx(np.mean(rows), rel=1e-5)
    weights = np.array([1.0, 0.5, 0, 2])
    assert value(ListNet(), sample_weight=weights) == pytest.approx(np.mean(weights * rows), rel=1e-5)


@pytest.mark.parametrize("options", [{}, {"top_k": 1}, {"sigma": 0.5, "top_k": 2}])
def test_rank_net(options):
    pairs = [pair for row in ROWS for pair in slow_pairs(*row, **options)]
    assert value(RankNet(**options)) == pytest.approx(np.mean(pairs), rel=1e-5)


@pytest.mark.parametrize("options", [{}, {"mu": 0}, {"mu": 3.0, "sigma": 2.0, "top_k": 2}])
def test_lambda_rank(options):
    mu = options.get("mu", 10.0)
    others = {name: value for name, value in options.items() if name != "mu"}
    pairs = [pair for row in ROWS for pair in slow_pairs(*row, weigh=lambda_weights(mu), **others)]
    assert value(LambdaRank(**options)) == pytest.approx(np.mean(pairs), rel=1e-5)


@pytest.mark.parametrize("make", [ListNet, RankNet, LambdaRank])
class TestEveryLoss:
    def test_absent_candidates_do_not_count(self, make):
        wider = [np.pad(values, [(0, 0), (0, 3)], constant_values=fill) for values, fill in ((GRADES, -1), (LOGITS, 7))]
        assert value(make(), *wider) == pytest.approx(value(make()), rel=1e-6)

    def test_the_order_of_candidates_does_not_count(self, make):
        order = [2, 0, 3, 1]
        assert value(make(), GRADES[:, order], LOGITS[:, order]) == pytest.approx(value(make()), rel=1e-6)

    def test_one_is_trained_to_rank_by_grades(self, make):
        logits = keras.layers.Embedding(4, 4)
        model = keras.Sequential([keras.Input((), dtype="int32"), logits])
        model.compile(keras.optimizers.Adam(1.0), loss=make(), run_eagerly=True)
        rows = np.arange(4)
        for _ in range(8):
            loss = model.train_on_batch(rows, GRADES)
        assert np.isfinite(loss)
        scores = ops.convert_to_numpy(model(rows))
        assert np.isfinite(scores).all()
        assert scores[0].argsort().tolist() == [1, 2, 3, 0]
        assert scores[1, 1] > scores[1, 0]

    def test_config(self, make):
        loss = make(reduction="sum", name="own", **({} if make is ListNet else {"sigma": 2.0, "top_k": 3}))
        again = keras.losses.deserialize(keras.losses.serialize(loss))
        assert type(again) is make
        assert again.get_config() == loss.get_config()

    def test_single_candidates(self, make):
        with pytest.raises(ValueError, match="several candidates in a row. Received: y_true=shape .4, 1.. Give the"):
            make()(GRADES[:, :1], LOGITS[:, :1])


def test_arguments():
    with pytest.raises(ValueError, match="`LambdaRank`: `mu` must be"):
        LambdaRank(mu=-1)
    with pytest.raises(ValueError, match="`RankNet`: `sigma` must be"):
        RankNet(sigma=0)
    with pytest.raises(ValueError, match="`RankNet`: `top_k` must be at least 1"):
        RankNet(top_k=0)
