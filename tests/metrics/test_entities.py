"""`EntityF1` and `entity_scores` beside seqeval's rules."""

import re

import keras
import numpy as np
import pytest

from keras_bert_layers.metrics import EntityF1, entity_scores

# One float32 division.
FLOAT32 = 1e-6
NAMES = ["O", "B-a", "I-a", "B-b", "I-b", "I-c", "E-a", "S-b", "B", "I"]
IGNORED = -100
NUM_CASES = 1000
# The form of tags in seqeval, the scheme that tests it strictly, and the same in ours.
SCHEMES = {
    "bio": ("IOB2", "{letter}-{label}", "BI"),
    "iob1": ("IOB1", "{letter}-{label}", "BI"),
    "ioe": ("IOE2", "{letter}-{label}", "IE"),
    "bioes": ("IOBES", "{letter}-{label}", "BIES"),
    "bilou": ("BILOU", "{letter}-{label}", "BILU"),
    "suffixes": ("IOBES", "{label}-{letter}", "BIES"),
}
# The same few float64 operations in another order.
FLOAT64 = 1e-12
NAMES_SCORES = ["O", "B-a", "I-a", "B-b", "I-b", "I-c", "E-a", "S-b"]


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


def random_cases_scores():
    generator = np.random.default_rng(15)
    for _ in range(NUM_CASES):
        lengths = generator.integers(1, 9, generator.integers(1, 5))
        gold = [[NAMES_SCORES[tag] for tag in generator.integers(0, len(NAMES_SCORES), length)] for length in lengths]
        yield (
            gold,
            [
                [
                    tag if generator.random() < 0.6 else NAMES_SCORES[generator.integers(len(NAMES_SCORES))]
                    for tag in row
                ]
                for row in gold
            ],
        )


def test_hand_checked_texts():
    gold = [["B-a", "I-a", "O", "B-b"], ["B-a", "O"]]
    predicted = [["B-a", "I-a", "O", "I-b"], ["O", "B-b"]]
    assert entity_scores(gold, predicted) == {
        "precision": 2 / 3,
        "recall": 2 / 3,
        "f1": 2 / 3,
        "num_gold": 3,
        "num_predicted": 3,
        "by_type": {
            "a": {"precision": 1, "recall": 0.5, "f1": 2 / 3, "num_gold": 2, "num_predicted": 1},
            "b": {"precision": 0.5, "recall": 1, "f1": 2 / 3, "num_gold": 1, "num_predicted": 2},
        },
    }


def test_all_together_are_the_streaming_metric():
    cases = list(random_cases_scores())
    gold, predicted = ([row for case in cases for row in case[part]] for part in (0, 1))
    ids = [
        [[NAMES_SCORES.index(tag) for tag in row] + [-100] * (8 - len(row)) for row in rows]
        for rows in (gold, predicted)
    ]
    metric = EntityF1(NAMES_SCORES)
    metric.update_state(*ids)
    found = entity_scores(gold, predicted)
    streamed = [float(value) for value in (metric.precision(), metric.recall(), metric.result())]
    assert [found[name] for name in ("precision", "recall", "f1")] == pytest.approx(streamed, abs=FLOAT32)


@pytest.mark.peers
def test_scores_random_cases_against_seqeval():
    metrics = pytest.importorskip("seqeval.metrics")
    for gold, predicted in random_cases_scores():
        found = entity_scores(gold, predicted)
        if not found["num_gold"] + found["num_predicted"]:  # it makes no report of nothing
            continue
        expected = metrics.classification_report(gold, predicted, output_dict=True, zero_division=0)
        together = expected.pop("micro avg")
        assert [found["precision"], found["recall"], found["f1"], found["num_gold"]] == pytest.approx(
            [together[name] for name in ("precision", "recall", "f1-score", "support")], abs=FLOAT64
        )
        assert set(found["by_type"]) == set(expected) - {"macro avg", "weighted avg"}
        for kind, scores in found["by_type"].items():
            assert [scores["precision"], scores["recall"], scores["f1"], scores["num_gold"]] == pytest.approx(
                [expected[kind][name] for name in ("precision", "recall", "f1-score", "support")], abs=FLOAT64
            )


def test_tags_of_other_schemes():
    found = entity_scores([["person-B", "person-E", "place-S"]], [["person-B", "person-I", "place-S"]])
    assert {kind: scores["f1"] for kind, scores in found["by_type"].items()} == {"person": 1, "place": 1}
    found = entity_scores([["NOUN", "NOUN"]], [["NOUN", "VERB"]])
    assert (found["f1"], found["num_gold"]) == (0.5, 2)
    assert entity_scores([["NOUN", "NOUN"]], [["NOUN", "VERB"]], scheme="io")["num_gold"] == 1


def test_scores_nothing_gives_zero():
    assert entity_scores([], [])["f1"] == 0
    assert entity_scores([["O"]], [["O"]]) == {
        **dict.fromkeys(("precision", "recall", "f1", "num_gold", "num_predicted"), 0),
        "by_type": {},
    }


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (([["O"]], []), ValueError, "`predicted_tags` must hold one list for each of the 1 texts. Received: 0 lists."),
        (
            ([["O"], ["O", "O"]], [["O"], ["O"]]),
            ValueError,
            "`predicted_tags[1]` must hold 2 tags, as `gold_tags[1]` does. Received: 1 tags.",
        ),
        (([["O"]], [["O"]], "no"), ValueError, "`scheme` must be one of ["),
        (([["O"]], [[1]]), TypeError, "`predicted_tags[0]` must hold strings. Received: predicted_tags[0]=1."),
    ],
)
def test_errors(arguments, error, text):
    gold, predicted, *scheme = arguments
    with pytest.raises(error, match=re.escape(f"`entity_scores`: {text}")):
        entity_scores(gold, predicted, scheme=scheme[0] if scheme else None)
