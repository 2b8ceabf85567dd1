"""Losses of vectors beside NumPy in float64, and beside sentence-transformers."""

import keras
import numpy as np
import pytest

from keras_bert_layers import losses
from keras_bert_layers._internal.lazy import tf

# Sums of a few hundred float32 products, scaled by 20.
TOLERANCE = 1e-4
GENERATOR = np.random.default_rng(5)
PAIRS = GENERATOR.normal(size=(6, 2, 7)).astype("float32")
ROWS = GENERATOR.normal(size=(6, 4, 7)).astype("float32")
GRADES = np.array([[1], [3], [0], [3], [2], [0.5]], "float32")
TEACHER = GENERATOR.normal(size=(6, 3)).astype("float32")
DIFFERENT = np.arange(24).reshape(6, 4)
# The second row has no second negative, the third none at all.
ABSENT = np.array([[False] * 3, [False, False, True], [False, True, True], *[[False] * 3] * 3])
SHORT = np.where(np.hstack([np.zeros((6, 1), bool), ABSENT]), -1, DIFFERENT)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def log_softmax(rows):
    return rows - np.log(np.sum(np.exp(rows), axis=-1, keepdims=True))


def in_batch(rows, symmetric=False):
    rows = unit(rows)
    logits = 20 * rows[:, 0] @ rows[:, 1:].transpose(1, 0, 2).reshape(-1, rows.shape[-1]).T
    loss = -np.diag(log_softmax(logits))
    return np.mean((loss - np.diag(log_softmax(logits[:, : len(rows)].T))) / 2 if symmetric else loss)


def triplet(rows, distance, margin, absent=ABSENT):
    found = []
    for row, left_out in zip(rows, absent, strict=True):
        negatives = [text for text, is_absent in zip(row[2:], left_out[1:], strict=True) if not is_absent]
        margins = [max(0, distance(row[0], row[1]) - distance(row[0], negative) + margin) for negative in negatives]
        found.append(np.mean(margins) if margins else 0)
    return np.mean(found)


def cosent(pairs, similarity=lambda first, second: np.dot(*unit(np.stack([first, second])))):
    scores = [20 * similarity(*pair) for pair in pairs]
    terms = [
        np.exp(lower - higher)
        for lower, grade in zip(scores, GRADES, strict=True)
        for higher, other in zip(scores, GRADES, strict=True)
        if other > grade
    ]
    return np.log(1 + sum(terms))


def angle(first, second):
    """The real part of a product of complex numbers, and its imaginary part, of vectors padded to an even width."""
    first, second = (np.append(row / np.linalg.norm(row), 0) for row in (first, second))
    product = np.vdot(second[:4] + 1j * second[4:], first[:4] + 1j * first[4:])
    return abs(product.real + product.imag)


def margins(rows, absent):
    scores = np.einsum("bh,bdh->bd", rows[:, 0], rows[:, 1:])
    errors = (scores[:, :1] - scores[:, 1:] - (TEACHER[:, :1] - TEACHER[:, 1:])) ** 2
    return np.mean(
        [row[~left_out[1:]].mean() if not left_out[1] else 0 for row, left_out in zip(errors, absent, strict=True)]
    )


def divergence(rows, absent, temperature=1.0, teacher_temperature=1.0):
    found = []
    for row, scores, left_out in zip(rows, TEACHER, absent, strict=True):
        own = log_softmax((row[1:] @ row[0])[~left_out] / temperature)
        taught = log_softmax(scores.astype("float64")[~left_out] / teacher_temperature)
        found.append(np.sum(np.exp(taught) * (taught - own)) * temperature**2)
    return np.mean(found)


def euclidean(first, second):
    return np.linalg.norm(first - second)


def one_minus_cosine(first, second):
    return 1 - np.dot(*unit(np.stack([first, second])))


NOTHING = np.zeros_like(ABSENT)
SCORES_OF_SHORT = np.where(ABSENT, np.nan, TEACHER)
SQUARES = np.mean([(np.dot(*unit(pair[:, :5])) - grade[0] / 3) ** 2 for pair, grade in zip(PAIRS, GRADES, strict=True)])
CASES = {
    "in batch": (losses.MultipleNegativesRanking(), DIFFERENT, ROWS, in_batch(ROWS)),
    "both directions": (
        losses.MultipleNegativesRanking(symmetric=True), DIFFERENT[:, :2], PAIRS, in_batch(PAIRS, symmetric=True)
    ),
    "euclidean": (losses.Triplet(2.0), SHORT, ROWS, triplet(ROWS, euclidean, 2)),
    "cosine": (losses.Triplet(0.3, "cosine"), SHORT, ROWS, triplet(ROWS, one_minus_cosine, 0.3)),
    "margins": (losses.MarginMSE(), TEACHER, ROWS, margins(ROWS, NOTHING)),
    "margins of short rows": (losses.MarginMSE(), SCORES_OF_SHORT, ROWS, margins(ROWS, ABSENT)),
    "divergence": (losses.DistillKLDiv(), TEACHER, ROWS, divergence(ROWS, NOTHING)),
    "temperatures": (losses.DistillKLDiv(2.0, 0.5), SCORES_OF_SHORT, ROWS, divergence(ROWS, ABSENT, 2, 0.5)),
    "cosent": (losses.CoSENT(), GRADES, PAIRS, cosent(PAIRS)),
    "angle": (losses.AnglE(), GRADES, PAIRS, cosent(PAIRS, angle)),
    "widths": (
        losses.Matryoshka(losses.MultipleNegativesRanking(), [7, 3], [1, 0.5]),
        DIFFERENT,
        ROWS,
        in_batch(ROWS) + in_batch(ROWS[..., :3]) / 2,
    ),
    "widths of cosines": (losses.Matryoshka(keras.losses.MeanSquaredError(), [5]), GRADES / 3, PAIRS, SQUARES),
    "widths of an order": (losses.Matryoshka(losses.CoSENT(), [4]), GRADES, PAIRS, cosent(PAIRS[..., :4])),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_equals_numpy(case):
    loss, labels, vectors, expected = CASES[case]
    assert float(loss(labels, vectors)) == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize("case", CASES)
def test_restored(case):
    loss, labels, vectors, expected = CASES[case]
    loss = keras.losses.deserialize(keras.losses.serialize(loss))
    assert float(loss(labels, vectors)) == pytest.approx(expected, abs=TOLERANCE)
    assert loss.labels == CASES[case][0].labels


@pytest.mark.usefixtures("in_graph")
@pytest.mark.parametrize("case", CASES)
def test_gradients_are_finite(case):
    """Also where vectors are 0 and where two are equal."""
    loss, labels, vectors, _ = CASES[case]
    vectors = vectors.copy()
    vectors[0] = 0
    vectors[1, 1] = vectors[1, 0]
    vectors = tf.Variable(vectors)
    with tf.GradientTape() as tape:
        value = loss(labels, vectors)
    assert np.isfinite(value)
    assert np.isfinite(np.asarray(tape.gradient(value, vectors))).all()


def test_weights_of_rows():
    weights = np.array([1, 0, 2, 0, 0, 3], "float32")
    each = losses.Triplet(2.0, reduction="none")(SHORT, ROWS)
    expected = np.sum(np.asarray(each) * weights) / len(weights)
    assert float(losses.Triplet(2.0)(SHORT, ROWS, weights)) == pytest.approx(expected, abs=TOLERANCE)
    with pytest.raises(ValueError, match="`CoSENT`: `sample_weight` must be None"):
        losses.CoSENT()(GRADES, PAIRS, weights)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: losses.Triplet(distance="far"), "distance"),
        (lambda: losses.CoSENT(scale=0), "scale"),
        (lambda: losses.Matryoshka(losses.CoSENT(), []), "widths"),
        (lambda: losses.Matryoshka(losses.CoSENT(), [4, 2], [1]), "weights"),
        (lambda: losses.Matryoshka("mse", [4]), "keras.losses.MeanSquaredError"),
        (lambda: losses.Matryoshka(losses.CoSENT(), [8])(GRADES, PAIRS), "at most the vectors' 7"),
        (lambda: losses.MarginMSE()(GRADES, PAIRS), "at least 3 texts a row.* Received: x=2 texts"),
        (lambda: losses.AnglE(mini_batch_size=0), "mini_batch_size"),
    ],
    ids=["distance", "scale", "no width", "weights", "function", "wide", "pairs", "mini-batch"],
)
def test_errors(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.peers
@pytest.mark.parametrize("case", [case for case in CASES if "short" not in case])
def test_equals_sentence_transformers(case):
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
    model = torch.nn.Module()
    model.get_embedding_dimension = lambda: 7
    distances = theirs.TripletDistanceMetric
    symmetric = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction"}
    made = {
        "in batch": lambda: theirs.MultipleNegativesRankingLoss(model),
        "both directions": lambda: theirs.MultipleNegativesRankingLoss(model, **symmetric),
        "euclidean": lambda: theirs.TripletLoss(model, distances.EUCLIDEAN, 2),
        "cosine": lambda: theirs.TripletLoss(model, distances.COSINE, 0.3),
        "margins": lambda: theirs.MarginMSELoss(model),
        "divergence": lambda: theirs.DistillKLDivLoss(model),
        "temperatures": lambda: theirs.DistillKLDivLoss(model, student_temperature=2, teacher_temperature=0.5),
        "cosent": lambda: theirs.CoSENTLoss(model),
        "angle": lambda: theirs.AnglELoss(model),
    }
    if case not in made:
        pytest.skip("sentence-transformers cuts vectors in the model")
    loss, labels, vectors, _ = CASES[case]
    if case in ("euclidean", "cosine"):
        vectors, labels = vectors[:, :3], DIFFERENT
    labels = np.nan_to_num(labels) if case == "temperatures" else labels
    columns = [torch.tensor(column) for column in vectors.transpose(1, 0, 2)]
    their_labels = torch.tensor(labels.reshape(-1) if labels.shape[1] == 1 else labels)
    expected = float(made[case]().compute_loss_from_embeddings(columns, their_labels))
    assert float(loss(labels, vectors)) == pytest.approx(expected, abs=TOLERANCE)
