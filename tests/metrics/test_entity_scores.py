import re

import numpy as np
import pytest

from keras_bert_layers.metrics import EntityF1, entity_scores

# The same few float64 operations in another order; EntityF1's are float32.
FLOAT64, FLOAT32 = 1e-12, 1e-6
NAMES = ["O", "B-a", "I-a", "B-b", "I-b", "I-c", "E-a", "S-b"]
NUM_CASES = 1000


def random_cases():
    generator = np.random.default_rng(15)
    for _ in range(NUM_CASES):
        lengths = generator.integers(1, 9, generator.integers(1, 5))
        gold = [[NAMES[tag] for tag in generator.integers(0, len(NAMES), length)] for length in lengths]
        yield (
            gold,
            [
                [tag if generator.random() < 0.6 else NAMES[generator.integers(len(NAMES))] for tag in row]
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
    cases = list(random_cases())
    gold, predicted = ([row for case in cases for row in case[part]] for part in (0, 1))
    ids = [[[NAMES.index(tag) for tag in row] + [-100] * (8 - len(row)) for row in rows] for rows in (gold, predicted)]
    metric = EntityF1(NAMES)
    metric.update_state(*ids)
    found = entity_scores(gold, predicted)
    streamed = [float(value) for value in (metric.precision(), metric.recall(), metric.result())]
    assert [found[name] for name in ("precision", "recall", "f1")] == pytest.approx(streamed, abs=FLOAT32)


@pytest.mark.peers
def test_random_cases_against_seqeval():
    metrics = pytest.importorskip("seqeval.metrics")
    for gold, predicted in random_cases():
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


def test_nothing_gives_zero():
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
