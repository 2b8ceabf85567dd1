"""Losses of rankings: the candidates of a query are one row, and each has a grade."""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.losses.in_batch import EXCLUDED

#: The grade of what only pads a row; every other grade is at least 0.
ABSENT_GRADE = -1.0
_LEAST_GAIN = 1e-10


class RankingLoss(keras.losses.Loss):
    """A loss of `BertCrossEncoder` that compares the candidates of a query; a subclass computes `of_rows`.

    `name`, `dtype` and `reduction`, which is that of one value per query, are Keras's.

    Call arguments:
        y_true: grades `(queries, candidates)`, from 0 on; -1 for a candidate that is absent.
        y_pred: logits `(queries, candidates)`.
        sample_weight: a weight for each query.

    Raises:
        ValueError: single candidates.
    """

    def call(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """One value per query `(queries,)`, of grades and logits, both `(queries, candidates)`.

        Raises:
            ValueError: single candidates.
        """
        if len(y_true.shape) != 2 or y_true.shape[1] == 1:
            cure = (
                "Give the candidates of each query as one row: `x = (queries, lists of candidates)`, `y` their grades."
            )
            rule = "have several candidates in a row"
            received = checks.Shown(f"shape {tuple(y_true.shape)}")
            raise ValueError(checks.message(type(self).__name__, "y_true", rule, received, cure))
        return self.of_rows(y_true, y_pred, ops.greater_equal(y_true, 0))

    def of_rows(self, grades: Tensor, scores: Tensor, present: Tensor) -> Any:
        """One value per query; arguments `(queries, candidates)`, `present` bool."""
        raise NotImplementedError


@register
class ListNet(RankingLoss):
    """Cross entropy of two distributions over the candidates of a query: the softmax of grades, and that of logits.

    Grades and logits are as for `RankingLoss`. As `ListNetLoss` of sentence-transformers 6.2.

    Args:
        name: the loss's name.
        **kwargs: `reduction` and `dtype`, as in Keras.

    Raises:
        ValueError: single candidates.

    Examples:
        >>> import numpy as np
        >>> grades, logits = np.array([[1.0, 0.0, -1.0]]), np.array([[2.0, 0.0, 9.0]])
        >>> round(float(ListNet()(grades, logits)), 3)
        0.665

    References:
        Cao et al. 2007, Learning to Rank: From Pairwise Approach to Listwise Approach, section 4.2.
    """

    def __init__(self, *, name: str = "list_net", **kwargs: Any):
        super().__init__(name=name, **kwargs)

    def of_rows(self, grades: Tensor, scores: Tensor, present: Tensor) -> Any:
        """The cross entropy of each query."""
        wanted = ops.softmax(ops.where(present, grades, EXCLUDED), axis=-1)
        return -ops.sum(wanted * ops.log_softmax(ops.where(present, scores, EXCLUDED), axis=-1), axis=-1)


@register
class RankNet(RankingLoss):
    """Cross entropy of pairs of candidates: of two grades, the higher one should have the higher logit.

    It is the mean over all such pairs of a batch, with the logarithm to base 2. Grades and logits are as for
    `RankingLoss`. As `RankNetLoss` of sentence-transformers 6.2.

    Args:
        sigma: multiplies the differences of logits.
        top_k: leaves out pairs of which neither is among the `top_k` highest logits; None leaves out none.
        name: the loss's name.
        **kwargs: `reduction` and `dtype`, as in Keras.

    Raises:
        TypeError, ValueError: `sigma` that is not above 0, `top_k` below 1; single candidates.

    Examples:
        >>> import numpy as np
        >>> grades, logits = np.array([[1.0, 0.0, -1.0]]), np.array([[2.0, 0.0, 9.0]])
        >>> round(float(RankNet()(grades, logits)), 3)
        0.183

    References:
        Burges et al. 2005, Learning to Rank using Gradient Descent, section 3.
    """

    def __init__(
        self,
        *,
        sigma: float = 1.0,
        top_k: int | None = None,
        name: str = "rank_net",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        self.sigma = checks.positive_number(type(self).__name__, "sigma", sigma)
        self.top_k = checks.optional(checks.positive_integer, type(self).__name__, "top_k", top_k)

    def of_rows(self, grades: Tensor, scores: Tensor, present: Tensor) -> Any:
        """The sum over the pairs of each query, times queries per pair of the batch."""
        ranks = ops.cast(
            ops.argsort(ops.argsort(ops.where(present, ops.negative(scores), -EXCLUDED))), grades.dtype
        )  # from 0 on
        counts = (grades[:, :, None] > grades[:, None, :]) & present[:, None, :]
        if self.top_k is not None:
            is_high = ranks < self.top_k
            counts &= is_high[:, :, None] | is_high[:, None, :]
        losses = -ops.log_sigmoid(self.sigma * (scores[:, :, None] - scores[:, None, :])) / math.log(2)
        losses = ops.where(counts, self.weights(ops.maximum(grades, 0), ranks) * losses, 0)
        num_pairs = ops.maximum(ops.sum(ops.cast(counts, losses.dtype)), 1)
        return ops.sum(losses, axis=(1, 2)) * (ops.cast(ops.shape(grades)[0], losses.dtype) / num_pairs)

    def weights(self, grades: Tensor, ranks: Tensor) -> Any:
        """The weight of each pair of candidates, which broadcasts to `(queries, candidates, candidates)`."""
        return 1.0

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "sigma": self.sigma, "top_k": self.top_k}


@register
class LambdaRank(RankNet):
    """`RankNet`, with pairs weighted by what their order changes in nDCG: NDCG-Loss2++, or LambdaRank with `mu=0`.

    Grades and logits are as for `RankingLoss`; a grade `g` has the gain `2**g - 1`. As `LambdaLoss` of
    sentence-transformers 6.2, whose default scheme this is too.

    Args:
        mu: multiplies the weights of NDCG-Loss2, to which those of LambdaRank are added.
        sigma: multiplies the differences of logits.
        top_k: the rank to which nDCG is read; as in `RankNet`.
        name: the loss's name.
        **kwargs: `reduction` and `dtype`, as in Keras.

    Raises:
        TypeError, ValueError: `mu` below 0; what `RankNet` refuses.

    Examples:
        >>> import numpy as np
        >>> grades, logits = np.array([[1.0, 0.0, -1.0]]), np.array([[2.0, 0.0, 9.0]])
        >>> round(float(LambdaRank()(grades, logits)), 3)
        0.743

    References:
        Wang et al. 2018, The LambdaLoss Framework for Ranking Metric Optimization, sections 4 and 5.
    """

    def __init__(
        self,
        *,
        mu: float = 10.0,
        sigma: float = 1.0,
        top_k: int | None = None,
        name: str = "lambda_rank",
        **kwargs: Any,
    ):
        super().__init__(sigma=sigma, top_k=top_k, name=name, **kwargs)
        self.mu = checks.positive_number(type(self).__name__, "mu", mu) if mu else 0.0

    def weights(self, grades: Tensor, ranks: Tensor) -> Any:
        """`(queries, candidates, candidates)`."""
        ideal = ops.flip(ops.sort(ops.power(2.0, grades) - 1, axis=-1), axis=-1)
        places = ops.arange(ops.shape(grades)[1], dtype=grades.dtype)
        ideal = ideal * _discount(places)
        if self.top_k is not None:
            ideal = ideal * ops.cast(places < self.top_k, ideal.dtype)
        ideal = ops.maximum(ops.sum(ideal, axis=-1, keepdims=True), _LEAST_GAIN)
        gaps = _distances((ops.power(2.0, grades) - 1) / ideal)
        between = ops.maximum(_distances(ranks), 1)
        return gaps * (self.mu * (_discount(between - 1) - _discount(between)) + _distances(_discount(ranks)))

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "mu": self.mu}


def _discount(ranks: Tensor) -> Any:
    """The discount of nDCG at ranks from 0 on."""
    return math.log(2) / ops.log(ranks + 2)


def _distances(values: Tensor) -> Any:
    """How far any two values of a row are apart, `(rows, columns, columns)`."""
    return ops.abs(values[:, :, None] - values[:, None, :])
