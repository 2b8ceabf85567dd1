import re

import keras
import numpy as np
import pytest

from keras_bert_layers.metrics import EntityF1

# One float32 division.
FLOAT32 = 1e-6
NAMES = ["O", "B-a", "I-a", "B-b", "I-b", "I-c", "E-a", "S-b", "B", "I"]
IGNORED = -100
NUM_CASES = 1000


def entities(tags):
    """An independent reading: walk along the row, open and close one entity at a time."""
    found, opened = set(), None
    for place, tag in enumerate([*tags, "O"]):
        letter, _, kind = tag.partition("-")
        goes_on = opened is not None and letter in "IE" and kind == opened[0]
        if opened is not None and not goes_on:
            found.add((*opened, place))
            opened = None
        if letter != "O" and opened is None:
            opened = (kind, place)
        if letter in "ES":
            found.add((*opened, place + 1))
            opened = None
    return found


def scores(gold_rows, predicted_rows):
    """Precision, recall, F1."""
    gold = {(row, *entity) for row, tags in enumerate(gold_rows) for entity in entities(tags)}
    predicted = {(row, *entity) for row, tags in enumerate(predicted_rows) for entity in entities(tags)}
    correct = len(gold & predicted)
    return [correct / max(whole, 1) for whole in (len(predicted), len(gold), (len(gold) + len(predicted)) / 2)]


def names_of(ids, counted):
    return [[NAMES[tag] for tag in row[keep]] for row, keep in zip(ids, counted, strict=True)]


def random_cases():
    """Tag ids, predictions that are often right, weights; short rows, from few tags or from all."""
    generator = np.random.default_rng(8)
    for _ in range(NUM_CASES):
        shape, num_tags = (generator.integers(1, 4), generator.integers(1, 12)), generator.integers(2, len(NAMES) + 1)
        y_true, other = generator.integers(0, num_tags, (2, *shape))
        y_pred = np.where(generator.random(shape) < 0.6, y_true, other)
        y_true = np.where(generator.random(shape) < 0.1, IGNORED, y_true)
        yield y_true, y_pred, (generator.random(shape) < 0.8).astype("float32")


@pytest.fixture(scope="module")
def found():
    """Precision, recall and F1 of all random cases: each padded to one shape, so that all go through one program."""
    metric = EntityF1(NAMES)
    compute = _compiled(metric)
    results = []
    for y_true, y_pred, weight in random_cases():
        room = [(0, 3 - y_true.shape[0]), (0, 11 - y_true.shape[1])]
        padded = (np.pad(part, room).astype("int32") for part in (y_true, y_pred, weight))
        results.append(np.asarray(compute(*padded)))
    return results


def _compiled(metric):
    def compute(*data):
        metric.reset_state()
        metric.update_state(*data)
        return keras.ops.stack([metric.precision(), metric.recall(), metric.result()])

    if keras.backend.backend() != "tensorflow":
        return compute
    import tensorflow as tf

    return tf.function(compute, autograph=False)


def test_contract(check_metric):
    generator = np.random.default_rng(3)
    y_true = generator.integers(0, 5, (7, 11)).astype("int32")
    y_pred = generator.normal(size=(7, 11, 10)).astype("float32") + 3 * np.eye(10, dtype="float32")[y_true]
    weight = (generator.random((7, 11)) < 0.7).astype("float32")
    y_true[2, 4] = y_true[3, :] = IGNORED
    counted = (weight > 0) & (y_true != IGNORED)
    *_, expected = scores(names_of(y_true, counted), names_of(y_pred.argmax(-1), counted))
    assert 0.1 < expected < 0.9
    check_metric(lambda **kwargs: EntityF1(NAMES, **kwargs), y_true, y_pred, weight, expected=expected, atol=FLOAT32)


@pytest.mark.parametrize(
    ("gold", "predicted", "correct", "num_gold", "num_predicted"),
    [
        ("B-a I-a O", "B-a I-a O", 1, 1, 1),
        ("B-a I-a O", "B-a O O", 0, 1, 1),
        ("B-a I-a O", "O B-a O", 0, 1, 1),
        ("B-a I-a O", "I-a I-a O", 1, 1, 1),  # an I after O starts an entity
        ("B-a I-b O", "B-a B-b O", 2, 2, 2),  # and so does an I of another type
        ("B-a B-a O", "B-a I-a O", 0, 2, 1),
        ("B-a I-a B-b", "B-a I-a I-b", 2, 2, 2),
        ("B-a I-a I-a", "B-a B-a I-a", 0, 1, 2),
        ("O O O", "O B-a O", 0, 0, 1),
        ("B-b S-b I-b", "B-b S-b I-b", 3, 3, 3),
        ("B-a E-a I-a", "B-a E-a B-a", 2, 2, 2),
        ("B I O", "I I O", 1, 1, 1),
    ],
)
def test_hand_checked_rows(gold, predicted, correct, num_gold, num_predicted):
    metric = EntityF1(NAMES)
    metric.update_state(*([[NAMES.index(tag) for tag in tags.split()]] for tags in (gold, predicted)))
    counts = [float(count.value) for count in (metric.correct, metric.gold, metric.predicted)]
    assert counts == [correct, num_gold, num_predicted]


def test_random_cases_against_a_walk_along_each_row(found):
    for (y_true, y_pred, weight), result in zip(random_cases(), found, strict=True):
        counted = (weight > 0) & (y_true != IGNORED)
        expected = scores(names_of(y_true, counted), names_of(y_pred, counted))
        np.testing.assert_allclose(result, expected, atol=FLOAT32)


# The form of tags in seqeval, the scheme that tests it strictly, and the same in ours.
SCHEMES = {
    "bio": ("IOB2", "{letter}-{label}", "BI"),
    "iob1": ("IOB1", "{letter}-{label}", "BI"),
    "ioe": ("IOE2", "{letter}-{label}", "IE"),
    "bioes": ("IOBES", "{letter}-{label}", "BIES"),
    "bilou": ("BILOU", "{letter}-{label}", "BILU"),
    "suffixes": ("IOBES", "{label}-{letter}", "BIES"),
}


def row_of_entities(generator, scheme, form):
    """A row of tags that keeps to its scheme."""
    tags, before = [], None
    while len(tags) < 9:
        label, size = generator.choice(["a", "b", "c"]), int(generator.integers(1, min(3, 9 - len(tags)) + 1))
        if generator.random() < 0.4:
            tags, before = [*tags, "O"], None
            continue
        letters = {
            "bio": "B" + "I" * (size - 1),
            "iob1": ("B" if before == label else "I") + "I" * (size - 1),
            "ioe": "I" * (size - 1) + "E",
            "bioes": "S" if size == 1 else "B" + "I" * (size - 2) + "E",
            "bilou": "U" if size == 1 else "B" + "I" * (size - 2) + "L",
        }["bioes" if scheme == "suffixes" else scheme]
        tags, before = [*tags, *(form.format(letter=letter, label=label) for letter in letters)], label
    return tags


@pytest.mark.peers
@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_of_each_scheme_against_seqevals_strict_mode(scheme):
    seqeval = pytest.importorskip("seqeval.metrics")
    strict, form, letters = SCHEMES[scheme]
    names = ["O", *(form.format(letter=letter, label=label) for label in "abc" for letter in letters)]
    generator = np.random.default_rng(4)
    gold, other = ([row_of_entities(generator, scheme, form) for _ in range(60)] for _ in range(2))
    predicted = [ours if generator.random() < 0.3 else theirs for ours, theirs in zip(gold, other, strict=True)]
    metric = EntityF1(names)
    metric.update_state(*([[names.index(tag) for tag in tags] for tags in rows] for rows in (gold, predicted)))
    options = {"mode": "strict", "scheme": getattr(pytest.importorskip("seqeval.scheme"), strict)}
    expected = seqeval.f1_score(gold, predicted, suffix=scheme == "suffixes", **options)
    assert 0.2 < expected < 0.9
    assert float(metric.result()) == pytest.approx(expected, abs=FLOAT32)


@pytest.mark.parametrize(
    ("names", "scheme", "gold", "predicted", "correct", "num_gold", "num_predicted"),
    [
        ("O B-a I-a L-a U-a", None, "B-a L-a U-a", "B-a I-a U-a", 2, 2, 2),
        ("O a b", None, "a a b", "a b b", 0, 2, 2),
        ("NOUN VERB", None, "NOUN NOUN VERB", "NOUN VERB VERB", 2, 3, 3),
        ("NOUN VERB", "io", "NOUN NOUN VERB", "NOUN NOUN NOUN", 0, 2, 1),
        ("O X B-a I-a", None, "B-a X I-a", "B-a O I-a", 2, 2, 2),
    ],
)
def test_hand_checked_rows_of_other_schemes(names, scheme, gold, predicted, correct, num_gold, num_predicted):
    names = names.split()
    metric = EntityF1(names, scheme=scheme)
    metric.update_state(*([[names.index(tag) for tag in tags.split()]] for tags in (gold, predicted)))
    counts = [float(count.value) for count in (metric.correct, metric.gold, metric.predicted)]
    assert counts == [correct, num_gold, num_predicted]


@pytest.mark.peers
def test_random_cases_against_seqeval(found):
    metrics = pytest.importorskip("seqeval.metrics")
    for (y_true, y_pred, weight), result in zip(random_cases(), found, strict=True):
        counted = (weight > 0) & (y_true != IGNORED)
        if counted.any():  # it takes no data without any word
            rows = names_of(y_true, counted), names_of(y_pred, counted)
            functions = (metrics.precision_score, metrics.recall_score, metrics.f1_score)
            np.testing.assert_allclose(
                result, [function(*rows, zero_division=0) for function in functions], atol=FLOAT32
            )


def test_predictions_at_ignored_positions_change_nothing():
    metric = EntityF1(["O", "B-a", "I-a"])
    for prediction in (0, 1, 2, IGNORED):
        metric.reset_state()
        metric.update_state([[1, IGNORED, 2, IGNORED]], [[1, prediction, 2, prediction]])
        assert float(metric.result()) == 1


def test_weights_of_rows():
    metric = EntityF1(["O", "B-a", "I-a"])
    metric.update_state([[1], [1]], [[1], [0]], sample_weight=[1.0, 0.0])
    assert float(metric.result()) == 1


@pytest.mark.parametrize(("y_true", "y_pred"), [([[3]], [[1]]), ([[-1]], [[1]]), ([[1]], [[3]])])
def test_unknown_tags_give_nan(y_true, y_pred):
    metric = EntityF1(["O", "B-a", "I-a"])
    metric.update_state(y_true, y_pred)
    assert np.isnan(float(metric.result()))


def test_nothing_gives_zero():
    metric = EntityF1(["O", "B-a", "I-a"])
    assert [float(metric.result()), float(metric.precision()), float(metric.recall())] == [0, 0, 0]


@pytest.mark.parametrize(
    ("names", "error", "text"),
    [
        (["O", "B-a", "O"], ValueError, "`tag_names` must hold at least one name, each once. Received"),
        ([], ValueError, "`tag_names` must hold at least one name, each once. Received: tag_names=[]."),
        (["O", 3], TypeError, "`tag_names` must be a list of strings. Received: tag_names=['O', 3]."),
        ("O", TypeError, "`tag_names` must be a list of strings. Received: tag_names='O'."),
    ],
)
def test_errors_of_names(names, error, text):
    with pytest.raises(error, match=re.escape(f"`EntityF1`: {text}")):
        EntityF1(names)


@pytest.mark.parametrize(
    ("true_shape", "pred_shape", "text"),
    [
        ((5,), (5,), "`y_true` must be tag ids (batch, sequence). Received: y_true="),
        ((2, 5), (2, 5, 4), "`y_pred` must be logits (batch, sequence, 3) or tag ids (batch, sequence). Received"),
        ((2, 5), (10,), "`y_pred` must be logits (batch, sequence, 3) or tag ids (batch, sequence). Received"),
    ],
)
def test_errors_of_shapes(true_shape, pred_shape, text):
    metric = EntityF1(["O", "B-a", "I-a"])
    with pytest.raises(ValueError, match=re.escape(f"`EntityF1`: {text}")):
        metric.update_state(np.zeros(true_shape, "int32"), keras.ops.zeros(pred_shape))
