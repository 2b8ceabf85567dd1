"""Encoders trained with `losses`: what `fit`, `evaluate` and a file give them, and what they refuse."""

import itertools

import keras
import numpy as np
import pytest

from keras_bert_layers import BertClassifier, BertDualEncoder, BertPreprocessor, BertSentenceEncoder, losses
from keras_bert_layers._internal.lazy import tf

QUERIES = ["good", "a bad film ?", "night", "un", "happy night"]
DOCUMENTS = ["a good good film !", "bad", "night night . a night", "unhappy film .", "a happy ! happy night"]
NEGATIVES = [["night !", "!"], ["good film"], [], ["a", "film"], ["? ? ?"]]
SCORES = [[3, 1, 2], [2, 0.5], [1], [0, 4, 1], [1, 1]]
MARGINS = [[2, 1], [1.5], [], [-4, -1], [0]]
GRADES = [3, 0, 5, 1, 2]
NAN = np.nan
TABLE = np.array([[3, 1, 2], [2, 0.5, NAN], [1, NAN, NAN], [0, 4, 1], [1, 1, NAN]], "float32")
TEXT_IDS = np.array([[0, 1, 2, 3], [4, 5, 6, -1], [7, 8, -1, -1], [9, 10, 11, 12], [13, 14, 15, -1]])
TRIPLES = (QUERIES, DOCUMENTS, NEGATIVES)
PAIRS = (QUERIES, DOCUMENTS)
#: The loss, `x` and `y` of `fit`, and the labels that the loss compares.
CASES = {
    "in batch": (losses.MultipleNegativesRanking(), TRIPLES, None, TEXT_IDS),
    "triplets": (losses.Triplet(0.5), TRIPLES, None, TEXT_IDS),
    "scores": (losses.MarginMSE(), TRIPLES, SCORES, TABLE),
    "margins": (losses.MarginMSE(), TRIPLES, MARGINS, TABLE),
    "divergence": (losses.DistillKLDiv(), TRIPLES, SCORES, TABLE),
    "grades": (losses.CoSENT(), PAIRS, GRADES, np.array(GRADES, "float32")[:, None]),
    "widths": (losses.Matryoshka(losses.AnglE(), [15, 4]), PAIRS, GRADES, np.array(GRADES, "float32")[:, None]),
}
# Float32 vectors of several lengths, a loss scaled by 20.
TOLERANCE = 2e-4


@pytest.fixture(scope="module")
def encoders(new_backbone, tokenizer):
    kinds, preprocessor = (BertSentenceEncoder, BertDualEncoder), BertPreprocessor(tokenizer, max_length=13)
    return {kind: kind(new_backbone(), preprocessor=preprocessor) for kind in kinds}


@pytest.fixture(params=[BertSentenceEncoder, BertDualEncoder])
def encoder(request, encoders):
    return encoders[request.param]


def vectors(encoder, x):
    """`(rows, texts, width)`, where an absent text has any vector."""
    columns = [[[text] if isinstance(text, str) else text for text in column] for column in x]
    rows = [list(itertools.chain(*parts)) for parts in zip(*columns, strict=True)]
    longest = max(map(len, rows))
    texts = [text for row in rows for text in row + ["a"] * (longest - len(row))]
    return encoder.encode_queries(texts, verbose=0).reshape(len(rows), longest, -1)


@pytest.mark.parametrize(
    ("kind", "case"),
    [*((BertSentenceEncoder, case) for case in CASES), *((BertDualEncoder, case) for case in ("margins", "widths"))],
)
def test_evaluated(encoders, kind, case):
    encoder = encoders[kind]
    loss, x, y, labels = CASES[case]
    encoder.compile(loss=loss, run_eagerly=True)
    found = encoder.evaluate(x, y, verbose=0, return_dict=True)
    assert found.pop("loss") == pytest.approx(float(loss(labels, vectors(encoder, x))), abs=TOLERANCE)
    assert set(found) <= {"accuracy", "mean_absolute_error", "spearman_correlation"}


def test_trained(encoder):
    loss, x, y, _ = CASES["scores"]
    before = encoder.get_weights()
    encoder.compile(keras.optimizers.Adam(1e-2), loss, run_eagerly=True)
    first, *_, last = encoder.fit(x, y, epochs=5, verbose=0).history["loss"]
    encoder.set_weights(before)
    assert last < 0.5 * first


def test_loss_is_saved(encoders, tmp_path):
    encoder = encoders[BertDualEncoder]
    loss, x, y, _ = CASES["widths"]
    encoder.compile(loss=loss, run_eagerly=True)
    expected = encoder.evaluate(x, y, verbose=0)
    encoder.save(tmp_path / "x.keras")
    loaded = keras.models.load_model(tmp_path / "x.keras")
    assert loaded.loss.widths == [15, 4]
    loaded.run_eagerly = True
    assert loaded.evaluate(x, y, verbose=0) == pytest.approx(expected, abs=TOLERANCE)


def test_dataset(encoders):
    """Of ragged negatives and ragged scores."""
    encoder = encoders[BertSentenceEncoder]
    loss, x, y, _ = CASES["scores"]
    encoder.compile(loss=loss, run_eagerly=True)
    expected = encoder.evaluate(x, y, verbose=0)
    negatives = tf.ragged.constant(NEGATIVES, tf.string)
    dense = negatives.to_tensor(default_value="")
    data = tf.data.Dataset.from_tensors(((QUERIES, DOCUMENTS, dense), tf.ragged.constant(y, tf.float32)))
    assert encoder.evaluate(data, verbose=0) == pytest.approx(expected, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("loss", "x", "y", "message"),
    [
        (losses.MarginMSE(), TRIPLES, None, "must be texts, partners and negatives in a tuple, with scores"),
        (losses.MarginMSE(), PAIRS, GRADES, "`y` must be None beside pairs"),
        (losses.CoSENT(), PAIRS, None, "must be pairs of texts, with a similarity for each"),
        (losses.CoSENT(), TRIPLES, GRADES, "`y` must be None beside triplets"),
        (losses.CoSENT(), PAIRS, [1, 2, NAN, 3, 4], "every grade must be a finite number.* nan in row 2"),
        (losses.Matryoshka(keras.losses.MeanSquaredError(), [4]), PAIRS, GRADES, r"in \[-1, 1\].*3.0 in row 0"),
        (losses.Triplet(), TRIPLES, SCORES, "`y` must be None"),
        (losses.Triplet(), PAIRS, None, "at least 3 texts a row"),
        (losses.MarginMSE(), TRIPLES, [[1, NAN, 2], *SCORES[1:]], "must have a finite score.* in row 0"),
        (losses.MarginMSE(), TRIPLES, [[1]] * 5, "a score for each document of a row, or for each negative"),
    ],
    ids=["no scores", "no negatives", "no grades", "triples", "nan", "range", "labels", "pairs", "missing", "few"],
)
def test_refused(encoders, loss, x, y, message):
    encoder = encoders[BertDualEncoder if y is None else BertSentenceEncoder]
    encoder.compile(loss=loss, run_eagerly=True)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
        encoder.evaluate(x, y, verbose=0)


def test_other_tasks_and_xla_are_refused(encoders, new_backbone):
    classifier = BertClassifier(new_backbone(), 2)
    for task, loss in ((classifier, losses.Triplet()), (encoders[BertDualEncoder], losses.ListNet())):
        with pytest.raises(ValueError, match="`loss` must be one for this task.*(Triplet|ListNet)"):
            task.compile(loss=loss)
    with pytest.raises(ValueError, match="`jit_compile` must not be True for a loss with `mini_batch_size`"):
        encoders[BertSentenceEncoder].compile(loss=losses.Triplet(mini_batch_size=4), jit_compile=True)


def test_refused_arguments_leave_the_loss(encoder):
    encoder.compile(loss=losses.MultipleNegativesRanking(), run_eagerly=True)
    expected = encoder.evaluate(PAIRS, verbose=0)
    with pytest.raises(ValueError, match="no optimizer"):
        encoder.compile("no optimizer", losses.CoSENT())
    assert encoder.evaluate(PAIRS, verbose=0) == expected


def test_other_data_are_refused(encoders):
    encoder = encoders[BertSentenceEncoder]
    encoder.compile(loss=losses.CoSENT(), run_eagerly=True)
    with pytest.raises(ValueError, match="must be pairs of texts.*CoSENT"):
        encoder.fit(QUERIES, np.zeros((5, 15), "float32"), verbose=0)
    encoder = encoders[BertDualEncoder]
    encoder.compile(loss=losses.Triplet(), run_eagerly=True)
    with pytest.raises(ValueError, match="`y` must be None"):
        encoder.fit(TRIPLES, SCORES, verbose=0)
