"""SQuAD's exact match and F1, and the best threshold for "no answer"."""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_layers._internal import checks

METRICS = ("exact_match", "f1")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")

# Exact match and F1 of one answer, each in [0, 1].
_Scores = tuple[float, float]


def squad_scores(
    answers: Sequence[str | bytes], gold_answers: Sequence[Sequence[str | bytes]], *, version: str = "2.0"
) -> dict[str, float]:
    """SQuAD's exact match and F1 of a collection of answers, in percent.

    Both sides are lower-cased, and ASCII punctuation, the words "a", "an", "the" and extra whitespace are removed; F1
    is computed over the remaining words. The best of a question's gold answers counts.

    Args:
        answers: one answer for each question; bytes are UTF-8; "" for no answer.
        gold_answers: for each question all gold answers; `[]` or `[""]` if the text has no answer.
        version: the rules for answers of which no words remain. "2.0" ignores such a gold answer, and treats two such
            answers as equal; "1.1" keeps it, with an F1 of 0, and does not allow questions without an answer.

    Returns:
        `"exact_match"` and `"f1"`. If some questions have no answer, also the scores of the questions with an answer
        (`"has_answer_exact_match"`, `"has_answer_f1"`) and of those without (`"no_answer_exact_match"`,
        `"no_answer_f1"`), if there are any.

    Raises:
        TypeError: answers that are not strings; a string in place of a list of gold answers.
        ValueError: no questions; not one list of gold answers for each; in version "1.1", an empty list.

    Examples:
        >>> squad_scores(["the Norman", ""], [["Normans", "Norman"], []])["exact_match"]
        100.0
        >>> squad_scores([b"in the 10th century"], [["10th century"]])
        {'exact_match': 0.0, 'f1': 80.0}

    References:
        Rajpurkar et al. 2016, arXiv:1606.05250, section 6.1, and 2018, arXiv:1806.03822; the official scripts
        `evaluate-v1.1.py` and `evaluate-v2.0.py`.
    """
    owner = "squad_scores"
    checks.one_of(owner, "version", version, ("1.1", "2.0"))
    texts, golds = _read(owner, answers, gold_answers)
    if version == "1.1" and not all(golds):
        rule = 'hold an answer for every question in version "1.1"'
        raise ValueError(checks.message(owner, f"gold_answers[{golds.index([])}]", rule, [], 'Use version "2.0".'))
    scores = 100 * np.array([_score(*pair, version) for pair in zip(texts, golds, strict=True)])
    has_answer = np.array([bool(gold) for gold in golds])
    parts = {"": has_answer | True}
    if not has_answer.all():
        parts |= {"has_answer_": has_answer, "no_answer_": ~has_answer}
    return {
        f"{part}{metric}": float(scores[rows, column].mean())
        for part, rows in parts.items()
        for column, metric in enumerate(METRICS)
        if rows.any()
    }


def best_no_answer_threshold(
    answers: Sequence[str | bytes],
    no_answer_scores: Sequence[float] | np.ndarray,
    gold_answers: Sequence[Sequence[str | bytes]],
    *,
    metric: str = "f1",
) -> tuple[float, float]:
    """Finds the best threshold for "no answer" on data with known answers.

    Questions with a higher score get the answer "". All scores are tried, in one sorted sweep; of equally good
    thresholds the lowest wins. Questions of equal score are decided together, as they are when the threshold is used.

    Args:
        answers: for each question the best answer that is not "".
        no_answer_scores: the score of "no answer" for each question, a probability or any other finite number.
        gold_answers: for each question all gold answers; `[]` or `[""]` if the text has no answer.
        metric: the metric to maximize, "f1" or "exact_match".

    Returns:
        The threshold, and the metric in percent with that threshold. If it is best never to answer, the threshold is 0,
        or 1 below the lowest score if that is not above 0. The metric is that of `squad_scores`, except that an answer
        to a question without one is wrong here even if it is only an article or punctuation.

    Raises:
        TypeError, ValueError: as `squad_scores`; not one finite score for each question; another metric.

    Examples:
        >>> best_no_answer_threshold(["Normans", "10", "Rollo"], [0.1, 0.9, 0.3], [["Normans"], [], ["Rollo"]])
        (0.3, 100.0)

    References:
        `find_best_thresh` of the official `evaluate-v2.0.py`, which also tries thresholds between questions of equal
        score.
    """
    owner = "best_no_answer_threshold"
    checks.one_of(owner, "metric", metric, METRICS)
    texts, golds = _read(owner, answers, gold_answers)
    certainty = np.asarray(no_answer_scores, "float64")
    if certainty.shape != (len(texts),) or not np.isfinite(certainty).all():
        rule = f"be one finite number for each of the {len(texts)} questions"
        raise ValueError(checks.message(owner, "no_answer_scores", rule, no_answer_scores))
    column = METRICS.index(metric)
    # The gain, or loss, of giving an answer instead of "".
    pairs = zip(texts, golds, strict=True)
    gains = [_score(text, gold, "2.0")[column] if gold else -float(bool(text)) for text, gold in pairs]
    order = np.argsort(certainty, kind="stable")
    levels = certainty[order]
    totals = np.cumsum([golds.count([]), *np.array(gains)[order]])
    usable = np.append(True, np.append(levels[:-1] != levels[1:], True))
    best = int(np.argmax(np.where(usable, totals, -np.inf)))
    never = 0.0 if levels[0] > 0 else levels[0] - 1
    return float(levels[best - 1] if best else never), float(100 * totals[best] / len(texts))


def _read(owner: str, answers: Any, gold_answers: Any) -> tuple[list[str], list[list[str]]]:
    """Checks and decodes both sides; a question without an answer has an empty list."""
    if isinstance(answers, str | bytes) or not len(answers):
        rule = "be a list of answers, one for each question and at least one"
        raise ValueError(checks.message(owner, "answers", rule, answers))
    rule = f"hold one list for each of the {len(answers)} answers"
    checks.length(owner, "gold_answers", gold_answers, len(answers), rule=rule, unit="lists")
    texts = [_text(owner, f"answers[{row}]", answer) for row, answer in enumerate(answers)]
    golds = []
    for row, gold in enumerate(gold_answers):
        name = f"gold_answers[{row}]"
        if isinstance(gold, str | bytes):
            raise TypeError(checks.message(owner, name, "be a list of answers", gold, f"Write [{gold!r}]."))
        golds.append([text for text in (_text(owner, name, answer) for answer in gold) if text])
    return texts, golds


def _text(owner: str, argument: str, value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return checks.instance(owner, argument, value, str)


def _score(answer: str, golds: Sequence[str], version: str) -> _Scores:
    """The best exact match and the best F1 of one answer."""
    words = _words(answer)
    gold_words = [_words(gold) for gold in golds]
    if version == "2.0":
        gold_words = [gold for gold in gold_words if gold] or [[]]
    exact_match = float(words in gold_words)
    if version == "2.0" and not words:
        return exact_match, exact_match
    return exact_match, max(_f1(words, gold) for gold in gold_words)


def _words(answer: str) -> list[str]:
    """The words of an answer after normalization."""
    return _ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split()


def _f1(words: Sequence[str], gold: Sequence[str]) -> float:
    same = sum((Counter(words) & Counter(gold)).values())
    if not same:
        return 0.0
    precision, recall = same / len(words), same / len(gold)
    return 2 * precision * recall / (precision + recall)
