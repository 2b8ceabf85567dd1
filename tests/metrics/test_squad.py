import re
import string
from functools import cache

import numpy as np
import pytest

from keras_bert_layers.metrics import best_no_answer_threshold, squad_scores

# Sums of some ten float64 numbers in another order, in percent.
FLOAT64 = 1e-9
NUM_CASES = 1000
# What evaluate-v1.1.py and evaluate-v2.0.py give for all questions of `random_cases` as one collection.
OFFICIAL = {
    "1.1": {"exact_match": 44.91302920905809, "f1": 37.18083360682645},
    "2.0": {
        "exact_match": 33.377092221857566,
        "f1": 34.60523231281357,
        "has_answer_exact_match": 38.465594516214075,
        "has_answer_f1": 40.43877820044444,
        "no_answer_exact_match": 24.989135158626684,
        "no_answer_f1": 24.989135158626684,
    },
}
OFFICIAL_THRESHOLDS = {
    "exact_match": (0.9997618217665282, 61.700032819166395),
    "f1": (0.9997618217665282, 62.928172910122306),
}
WORDS = [
    "the",
    "The",
    "an",
    "A",
    "Norman",
    "Normans'",
    "10th",
    "century",
    "über",
    "Über",
    ".",
    "--",
    "U.S.",
    "a.b",
    "«x»",
]
WORDS += ["\u00a0", "theatre", "İ", "it's", "the\n", ""]


def clean(text):
    """An independent reading: character by character, then word by word."""
    kept = "".join(character for character in text.lower() if character not in string.punctuation)
    words, word = [], ""
    for character in kept + " ":
        is_word = character.isalnum() or character == "_"
        if word and is_word != (word[-1].isalnum() or word[-1] == "_"):
            words.append(word)
            word = ""
        word += character
    words.append(word)
    return "".join(" " if word in ("a", "an", "the") else word for word in words).split()


def overlap(words, gold):
    """F1 of two lists of words; words are crossed out one by one."""
    left, same = list(gold), 0
    for word in words:
        if word in left:
            left.remove(word)
            same += 1
    return 2 * same / (len(words) + len(gold)) if same else 0.0


def reference(answer, golds, version):
    """Exact match and F1 of one answer."""
    words, golds = clean(answer), [clean(gold) for gold in golds]
    if version == "2.0":
        golds = [gold for gold in golds if gold] or [[]]
    exact_match = float(any(words == gold for gold in golds))
    f1 = max(overlap(words, gold) for gold in golds)
    return exact_match, float(version == "2.0" and [] in golds) if not words else f1


def random_text(generator):
    count = generator.integers(0, 5)
    blank = (" ", "  ", "", "-")[generator.integers(4)]
    return blank.join(WORDS[word] for word in generator.integers(0, len(WORDS), count))


@cache
def random_cases(has_no_answers):
    """Answers, gold answers and scores of "no answer" of a few questions."""
    return list(_random_cases(has_no_answers))


def _random_cases(has_no_answers):
    generator = np.random.default_rng(21)
    for _ in range(NUM_CASES):
        num_questions = generator.integers(1, 12)
        texts = [[random_text(generator) or "x" for _ in range(generator.integers(1, 4))] for _ in range(num_questions)]
        answers = [text[0] if generator.random() < 0.4 else random_text(generator) for text in texts]
        empty = generator.random(num_questions) < (0.4 if has_no_answers else 0)
        golds = [[] if none else text for none, text in zip(empty, texts, strict=True)]
        yield answers, golds, generator.random(num_questions) + 2 * empty


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_random_cases(version):
    for answers, golds, _ in random_cases(version == "2.0"):
        expected = np.array([reference(*pair, version) for pair in zip(answers, golds, strict=True)])
        found = squad_scores(answers, golds, version=version)
        has_answer = np.array([bool(gold) for gold in golds])
        parts = {"": has_answer | True}
        if not has_answer.all():
            parts.update({"has_answer_": has_answer, "no_answer_": ~has_answer})
        names = {f"{part}{name}" for part, rows in parts.items() if rows.any() for name in ("exact_match", "f1")}
        assert set(found) == names
        for part, rows in parts.items():
            if rows.any():
                scores = [found[f"{part}exact_match"], found[f"{part}f1"]]
                np.testing.assert_allclose(scores, 100 * expected[rows].mean(axis=0), atol=FLOAT64)


def kept(answers, scores, threshold):
    return [answer if score <= threshold else "" for answer, score in zip(answers, scores, strict=True)]


@pytest.mark.parametrize(("metric", "column"), [("exact_match", 0), ("f1", 1)])
def test_thresholds_of_random_cases(metric, column):
    for row, (answers, golds, drawn) in enumerate(random_cases(True)):
        scores = drawn.round(1) - 0.5 if row % 2 else drawn  # ties, and scores that are not probabilities
        rights = [reference(answer, gold, "2.0")[column] for answer, gold in zip(answers, golds, strict=True)]
        # Of a question that has no answer, "" alone is right.
        gains = np.array(
            [right if gold else -bool(text) for right, text, gold in zip(rights, answers, golds, strict=True)]
        )
        tried = {
            threshold: 100 * (golds.count([]) + gains[scores <= threshold].sum()) / len(answers)
            for threshold in (scores.min() - 1, *scores)
        }
        threshold, best = best_no_answer_threshold(answers, scores, golds, metric=metric)
        assert best == pytest.approx(max(tried.values()), abs=FLOAT64)
        if threshold in tried:
            assert tried[threshold] == pytest.approx(best, abs=FLOAT64)
        else:
            assert threshold == 0
            assert scores.min() > 0


def test_the_score_of_a_threshold_is_what_the_scores_are_with_it():
    answers, golds = ["x", "y", "z", "u"], [["x"], [], [], ["v"]]
    scores = [0.5, 0.5, 0.75, 0.25]
    threshold, best = best_no_answer_threshold(answers, scores, golds)
    assert (threshold, best) == (0.0, 50.0)  # to answer the first alone cannot be done
    threshold, best = best_no_answer_threshold(answers, [0.5, 0.625, 0.75, 0.25], golds)
    assert (threshold, best) == (0.5, 75.0)
    assert squad_scores(kept(answers, [0.5, 0.625, 0.75, 0.25], threshold), golds)["f1"] == best


@pytest.mark.parametrize(
    ("answer", "golds", "exact_match", "f1"),
    [
        ("The Normans!", ["normans"], 1, 1),
        ("a  Norman\tking", ["Norman king"], 1, 1),
        ("king of Normans", ["x y", "the Norman king of Normans"], 0, 6 / 7),
        ("theatre", ["atre"], 0, 0),  # an article is a whole word
        ("U.S.", ["us"], 1, 1),
        ("«x»", ["x"], 0, 0),  # only ASCII punctuation goes
        ("to be or not to be", ["to be"], 0, 0.5),
        ("", ["x"], 0, 0),
        ("", [], 1, 1),
        ("x", [], 0, 0),
        ("the", [], 1, 1),  # nothing is left of it
        (b"\xc3\xbcber", ["Über"], 1, 1),
        (b"\xff", ["x"], 0, 0),
        ("", [""], 1, 1),
    ],
)
def test_hand_checked_answers(answer, golds, exact_match, f1):
    found = squad_scores([answer], [golds])
    assert found["exact_match"] == 100 * exact_match
    assert found["f1"] == pytest.approx(100 * f1, abs=FLOAT64)


def test_versions_differ_where_nothing_is_left():
    assert squad_scores(["a"], [["the", "x"]], version="1.1") == {"exact_match": 100, "f1": 0}
    assert squad_scores(["a"], [["the", "x"]], version="2.0") == {"exact_match": 0, "f1": 0}
    assert squad_scores(["a"], [["the"]], version="2.0") == {"exact_match": 100, "f1": 100}


def test_numbers_of_the_official_scripts():
    """Their totals over all random questions as one collection, the scripts run apart from this package."""
    for version, expected in OFFICIAL.items():
        cases = random_cases(version == "2.0")
        answers, golds = ([item for case in cases for item in case[part]] for part in (0, 1))
        found = squad_scores(answers, golds, version=version)
        assert found == pytest.approx(expected, abs=FLOAT64)
    scores = np.concatenate([case[2] for case in cases])
    for metric, best in OFFICIAL_THRESHOLDS.items():
        assert best_no_answer_threshold(answers, scores, golds, metric=metric) == pytest.approx(best, abs=FLOAT64)


def test_never_to_answer_can_be_best():
    assert best_no_answer_threshold(["x", "y"], [0.2, 0.3], [[], ["z"]]) == (0.0, 50.0)
    assert best_no_answer_threshold(["x", "y"], [-2.0, 0.3], [[], ["z"]]) == (-3.0, 50.0)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (([], []), ValueError, "`answers` must be a list of answers, one for each question and at least one. Received"),
        (("x", ["x"]), ValueError, "`answers` must be a list of answers, one for each question"),
        (
            (["x", "y"], [["x"]]),
            ValueError,
            "`gold_answers` must hold one list for each of the 2 answers. Received: 1 lists.",
        ),
        (
            (["x"], ["x"]),
            TypeError,
            "`gold_answers[0]` must be a list of answers. Received: gold_answers[0]='x'. Write ['x'].",
        ),
        (([3], [["x"]]), TypeError, "`answers[0]` must be a string. Received: answers[0]=3."),
        ((["x"], [[None]]), TypeError, "`gold_answers[0]` must be a string. Received: gold_answers[0]=None."),
    ],
)
def test_errors(arguments, error, text):
    with pytest.raises(error, match=re.escape(f"`squad_scores`: {text}")):
        squad_scores(*arguments)


def test_errors_of_versions():
    text = "`squad_scores`: `version` must be one of ['1.1', '2.0']. Received: version='3'."
    with pytest.raises(ValueError, match=re.escape(text)):
        squad_scores(["x"], [["x"]], version="3")
    text = '`squad_scores`: `gold_answers[1]` must hold an answer for every question in version "1.1". Received'
    with pytest.raises(ValueError, match=re.escape(text)):
        squad_scores(["x", "y"], [["x"], []], version="1.1")


@pytest.mark.parametrize("scores", [[0.1], [0.1, np.nan], [[0.1, 0.2]]])
def test_errors_of_scores(scores):
    text = "`best_no_answer_threshold`: `no_answer_scores` must be one finite number for each of the 2 questions. Rec"
    with pytest.raises(ValueError, match=re.escape(text)):
        best_no_answer_threshold(["x", "y"], scores, [["x"], []])


def test_errors_of_metrics():
    text = "`best_no_answer_threshold`: `metric` must be one of ['exact_match', 'f1']. Received: metric='em'."
    with pytest.raises(ValueError, match=re.escape(text)):
        best_no_answer_threshold(["x"], [0.1], [["x"]], metric="em")
