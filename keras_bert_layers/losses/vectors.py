"""Losses of texts that are compared, computed from the vectors of all texts of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import keras
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.registration import register
from keras_bert_layers._internal.types import Tensor
from keras_bert_layers.losses.in_batch import (
    ABSENT,
    EXCLUDED,
    by_column,
    cosine,
    in_batch_logits,
    in_both_directions,
    row_indices,
    unit,
)

#: What a loss compares with vectors: ids of the texts, one similarity of each pair, or one score of each document.
TEXTS, SIMILARITY, SCORES = "texts", "similarity", "scores"

_DISTANCES = {
    # Not the length of 0, whose gradient is not finite.
    "euclidean": lambda first, other: ops.sqrt(ops.maximum(ops.sum((first - other) ** 2, axis=-1), 1e-12)),
    "manhattan": lambda first, other: ops.sum(ops.abs(first - other), axis=-1),
    "cosine": lambda first, other: 1.0 - cosine(first, other),
}


class VectorLoss(keras.losses.Loss):
    """A loss of `BertSentenceEncoder` and `BertDualEncoder` that reads the vectors of all texts of a row.

    Args:
        mini_batch_size: the most texts that the encoder computes at a time in training. Each of these parts is computed
            once for its vectors and, when the loss of the whole batch is known, once more for its gradients, with the
            same dropout (GradCache). So memory does not grow with the batch, for a third more time. None computes the
            batch at once.
        name: the loss's name.
        **kwargs: `reduction` and `dtype`, as in Keras.

    Call arguments:
        y_true: what `labels` names: int `(batch, texts)`, equal ids for equal texts and -1 for an absent one;
            similarities `(batch, 1)`; or scores of all texts but the first `(batch, texts - 1)`, NaN for an absent one.
        y_pred: float32 `(batch, texts, width)`: the vector of a text (a query), of its partner, and of negatives.
        sample_weight: a weight for each row.

    References:
        Gao et al. 2021, Scaling deep contrastive learning batch size under memory limited setup, arXiv:2101.06983.
    """

    #: What the loss compares: `"texts"` for rows without `y`, `"similarity"` for pairs, or `"scores"` of documents.
    labels: ClassVar[str] = TEXTS
    #: Whether only the order of similarities counts, so that they may be of any range.
    reads_order: ClassVar[bool] = False

    def __init__(self, *, mini_batch_size: int | None = None, name: str | None = None, **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.mini_batch_size = checks.optional(
            checks.positive_integer, type(self).__name__, "mini_batch_size", mini_batch_size
        )

    def _documents(self, vectors: Tensor) -> tuple[Any, Any]:
        """The vectors of queries `(batch, 1, width)`, and of documents `(batch, documents, width)`, at least two."""
        if vectors.shape[1] is not None and vectors.shape[1] < 3:
            cure = "Give negatives too: `x = (queries, documents, negatives)`; `tasks.mine_negatives` finds some."
            found = checks.Shown(f"{vectors.shape[1]} texts")
            raise ValueError(checks.message(type(self).__name__, "x", "have at least 3 texts a row", found, cure))
        return vectors[:, :1], vectors[:, 1:]

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "mini_batch_size": self.mini_batch_size}


@register
class MultipleNegativesRanking(VectorLoss):
    """The cross entropy of each text's own partner among the partners and negatives of the whole batch.

    This is what a `BertSentenceEncoder` learns from rows without `y` by default. As an object it can be part of a
    `Matryoshka`, or have a `mini_batch_size`.

    Args:
        temperature: divides the cosines.
        symmetric: whether the loss also finds each partner's own text, and is the mean of both directions.
        normalize: whether the loss compares cosines; False for dot products, as of a `BertSparseEncoder`.
        **kwargs: as for `VectorLoss`.

    References:
        Henderson et al. 2017, arXiv:1705.00652, section 4.4; `MultipleNegativesRankingLoss` of sentence-transformers.
        Equal texts are not negatives of each other, as `BertDualEncoder` explains.
    """

    def __init__(self, temperature: float = 0.05, symmetric: bool = False, normalize: bool = True, **kwargs: Any):
        super().__init__(**kwargs)
        self.temperature = checks.positive_number("MultipleNegativesRanking", "temperature", temperature)
        self.symmetric = checks.boolean("MultipleNegativesRanking", "symmetric", symmetric)
        self.normalize = checks.boolean("MultipleNegativesRanking", "normalize", normalize)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """The loss of each row."""
        vectors = unit(y_pred) if self.normalize else y_pred
        logits = in_batch_logits(vectors[:, 0], by_column(vectors), temperature=self.temperature, texts=y_true)
        rows = row_indices(logits)
        if not self.symmetric:
            return ops.sparse_categorical_crossentropy(rows, logits, from_logits=True)
        rows, logits = ops.concatenate([rows, rows]), in_both_directions(logits)
        losses = ops.sparse_categorical_crossentropy(rows, logits, from_logits=True)
        return ops.mean(ops.reshape(losses, (2, -1)), axis=0)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        own = {"temperature": self.temperature, "symmetric": self.symmetric, "normalize": self.normalize}
        return {**super().get_config(), **own}


@register
class Triplet(VectorLoss):
    """How much farther than `margin` a text's partner is from it than its negatives are: `max(0, d+ - d- + margin)`.

    Args:
        margin: how much farther a negative must be; 5 suits vectors that are not normalized.
        distance: `"euclidean"`, `"manhattan"` or `"cosine"` (1 minus the cosine).
        **kwargs: as for `VectorLoss`.

    References:
        Schroff et al. 2015, FaceNet, arXiv:1503.03832; `TripletLoss` of sentence-transformers.
    """

    def __init__(self, margin: float = 5.0, distance: str = "euclidean", **kwargs: Any):
        super().__init__(**kwargs)
        self.margin = checks.positive_number("Triplet", "margin", margin)
        self.distance = checks.one_of("Triplet", "distance", distance, tuple(_DISTANCES))

    def call(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """The loss of each row, the mean of its negatives."""
        distances = _DISTANCES[self.distance](*self._documents(y_pred))
        losses = ops.maximum(distances[:, :1] - distances[:, 1:] + self.margin, 0.0)
        return _mean_of_present(losses, y_true[:, 2:] != ABSENT)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "margin": self.margin, "distance": self.distance}


@register
class MarginMSE(VectorLoss):
    """The squared difference of margins: of the partner's dot product above each negative's, here and of a teacher.

    `y` has the teacher's scores of a row's partner and negatives, such as the logits of a cross-encoder, or one margin
    for each negative.

    Args:
        **kwargs: as for `VectorLoss`.

    References:
        Hofstätter et al. 2020, Improving efficient neural ranking models with cross-architecture knowledge
        distillation, arXiv:2010.02666; `MarginMSELoss` of sentence-transformers.
    """

    labels = SCORES

    def call(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """The loss of each row, the mean of its negatives."""
        query, documents = self._documents(y_pred)
        scores, is_present = ops.sum(query * documents, axis=-1), ~ops.isnan(y_true)
        teacher = ops.where(is_present, y_true, 0.0)
        errors = (scores[:, :1] - scores[:, 1:]) - (teacher[:, :1] - teacher[:, 1:])
        return _mean_of_present(errors * errors, is_present[:, 1:])


@register
class DistillKLDiv(VectorLoss):
    """The Kullback-Leibler divergence of the softmax over a row's documents from that of a teacher's scores.

    `y` has the teacher's scores of a row's partner and negatives, such as the logits of a cross-encoder, or one margin
    for each negative.

    Args:
        temperature: divides the dot products of vectors; the loss is multiplied by its square.
        teacher_temperature: divides the teacher's scores; None for the same.
        **kwargs: as for `VectorLoss`.

    References:
        Lin et al. 2020, Distilling dense representations for ranking using tightly-coupled teachers, arXiv:2010.11386;
        `DistillKLDivLoss` of sentence-transformers.
    """

    labels = SCORES

    def __init__(self, temperature: float = 1.0, teacher_temperature: float | None = None, **kwargs: Any):
        super().__init__(**kwargs)
        self.temperature = checks.positive_number("DistillKLDiv", "temperature", temperature)
        self.teacher_temperature = checks.positive_number(
            "DistillKLDiv", "teacher_temperature", teacher_temperature or temperature
        )

    def call(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """The loss of each row."""
        query, documents = self._documents(y_pred)
        is_present = ~ops.isnan(y_true)
        logits = ops.sum(query * documents, axis=-1) / self.temperature
        teacher = ops.where(is_present, y_true, 0.0) / self.teacher_temperature
        own, taught = (ops.log_softmax(ops.where(is_present, rows, EXCLUDED), axis=-1) for rows in (logits, teacher))
        return ops.sum(ops.where(is_present, ops.exp(taught) * (taught - own), 0.0), axis=-1) * self.temperature**2

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        own = {"temperature": self.temperature, "teacher_temperature": self.teacher_temperature}
        return {**super().get_config(), **own}


@register
class CoSENT(VectorLoss):
    """A loss of the order of pairs: `log(1 + sum(exp(scale * (lower - higher))))`, over pairs of the batch.

    The sum is over all two pairs of the batch of which one has the higher similarity in `y`, and of their cosines. Only
    the order of the values in `y` counts, so that these may be grades of any range.

    Args:
        scale: multiplies the cosines.
        **kwargs: as for `VectorLoss`.

    Raises:
        ValueError: weights of rows; the loss of a batch is no mean of rows.

    References:
        Huang et al. 2024, CoSENT, https://doi.org/10.1109/TASLP.2024.3402087; `CoSENTLoss` of sentence-transformers.
    """

    labels = SIMILARITY
    reads_order = True

    def __init__(self, scale: float = 20.0, **kwargs: Any):
        super().__init__(**kwargs)
        self.scale = checks.positive_number(type(self).__name__, "scale", scale)

    def __call__(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None) -> Any:
        """The loss of a batch."""
        if sample_weight is not None:
            rule, cure = "be None: rows of this loss have no weight", "Leave out the rows that should not count."
            raise ValueError(checks.message(type(self).__name__, "sample_weight", rule, sample_weight, cure))
        return super().__call__(y_true, y_pred)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """The loss of the batch."""
        scores, grades = self.scale * self._similarity(y_pred[:, 0], y_pred[:, 1]), ops.reshape(y_true, (-1,))
        is_wrong = grades[None, :] > grades[:, None]  # [lower, higher]
        differences = ops.where(is_wrong, scores[:, None] - scores[None, :], EXCLUDED)
        return ops.logsumexp(ops.concatenate([ops.zeros((1,), scores.dtype), ops.reshape(differences, (-1,))]))

    def _similarity(self, first: Tensor, second: Tensor) -> Any:
        return cosine(first, second)

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        return {**super().get_config(), "scale": self.scale}


@register
class AnglE(CoSENT):
    """`CoSENT` of an angle in place of the cosine, whose gradient does not vanish where vectors are alike.

    The two halves of a vector are the real and the imaginary parts of complex numbers.

    Args:
        scale: multiplies the similarities.
        **kwargs: as for `VectorLoss`.

    References:
        Li and Li 2023, AnglE-optimized text embeddings, arXiv:2309.12871; `AnglELoss` of sentence-transformers, on
        pairs.
    """

    def _similarity(self, first: Tensor, second: Tensor) -> Any:
        first, second = unit(first), unit(second)
        half = (first.shape[-1] + 1) // 2
        odd = ((0, 0), (0, 2 * half - first.shape[-1]))
        real, imaginary = first[:, :half], ops.pad(first[:, half:], odd)
        other, other_imaginary = second[:, :half], ops.pad(second[:, half:], odd)
        return ops.abs(ops.sum(first * second, axis=-1) + ops.sum(imaginary * other - real * other_imaginary, axis=-1))


@register
class Matryoshka(VectorLoss):
    """A loss of the first features of vectors, for several numbers of them: such vectors can be cut.

    The first features are scaled to length 1 before the loss reads them, for each of the widths, the full one too.

    Args:
        loss: another loss of `losses` for vectors, or a loss of Keras for pairs with similarities, which reads cosines.
        widths: how many features to keep.
        weights: the weight of each width; None for 1.
        **kwargs: as for `VectorLoss`; a `mini_batch_size` of `loss` itself does not count.

    Raises:
        ValueError: no widths, one that is wider than the vectors, or not a weight for each.

    References:
        Kusupati et al. 2022, Matryoshka representation learning, arXiv:2205.13147; `MatryoshkaLoss` of
        sentence-transformers.
    """

    def __init__(
        self,
        loss: keras.losses.Loss,
        widths: Sequence[int],
        weights: Sequence[float] | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        cure = "Such as `losses.CoSENT()`, or `keras.losses.MeanSquaredError()`."
        self.loss = checks.instance("Matryoshka", "loss", loss, keras.losses.Loss, cure)
        self.labels = getattr(self.loss, "labels", SIMILARITY)  # type: ignore[misc]
        self.reads_order = getattr(self.loss, "reads_order", False)  # type: ignore[misc]
        self.widths = [checks.positive_integer("Matryoshka", "widths", width) for width in widths]
        self.weights = [1.0] * len(self.widths) if weights is None else [float(weight) for weight in weights]
        if not self.widths:
            raise ValueError(checks.message("Matryoshka", "widths", "hold a width", widths))
        rule = "be one for each width"
        checks.length("Matryoshka", "weights", self.weights, len(self.widths), rule=rule, unit="weights")

    def __call__(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None) -> Any:
        """The weighted sum of the losses of all widths."""
        if max(self.widths) > y_pred.shape[-1]:
            rule = f"be at most the vectors' {y_pred.shape[-1]}"
            raise ValueError(checks.message("Matryoshka", "widths", rule, self.widths))
        total = 0.0
        for width, weight in zip(self.widths, self.weights, strict=True):
            vectors = unit(y_pred[..., :width])
            if not isinstance(self.loss, VectorLoss):
                vectors = cosine(vectors[:, 0], vectors[:, 1])[:, None]
            total = total + weight * self.loss(y_true, vectors, sample_weight)
        return total

    def get_config(self) -> dict[str, Any]:
        """Every constructor argument."""
        own = {"loss": keras.losses.serialize(self.loss), "widths": self.widths, "weights": self.weights}
        return {**super().get_config(), **own}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Matryoshka:
        """The loss of a `get_config` dictionary."""
        return cls(**{**config, "loss": keras.losses.deserialize(config["loss"])})


def _mean_of_present(losses: Tensor, is_present: Tensor) -> Any:
    """The mean of the losses `(batch, negatives)` of each row that are present; 0 without any."""
    weights = ops.cast(is_present, losses.dtype)
    return ops.sum(losses * weights, axis=-1) / ops.maximum(ops.sum(weights, axis=-1), 1.0)
