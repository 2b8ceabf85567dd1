import re

import numpy as np
import pytest

from keras_bert_layers.metrics import mean_reciprocal_rank, ndcg_at_k, recall_at_k

# Sums of some twenty float64 numbers in another order.
FLOAT64 = 1e-12
NUM_CASES = 1000


def random_cases():
    """Rankings of part of the documents, gains of others, and a depth; some queries have no relevant document."""
    generator = np.random.default_rng(13)
    for _ in range(NUM_CASES):
        num_documents = generator.integers(2, 20)
        rankings, relevance = [], []
        for _ in range(generator.integers(1, 6)):
            length = generator.integers(1, num_documents + 1)
            rankings.append(generator.permutation(num_documents)[:length].tolist())
            judged = generator.permutation(num_documents)[: generator.integers(1, num_documents + 1)]
            relevance.append({int(document): int(generator.integers(-1, 4)) for document in judged})
        relevance[0][int(judged[0])] = 1
        yield rankings, relevance, int(generator.integers(1, 24))


def relevant(gains):
    return {document for document, gain in gains.items() if gain > 0}


def scores_of_query(ranking, gains, k):
    """Recall, reciprocal rank (all of the ranking, and its first k) and nDCG, as one would count them by hand."""
    hits = [place for place, document in enumerate(ranking) if document in relevant(gains)]
    reciprocal = 1 / (hits[0] + 1) if hits else 0.0
    gain, best = 0.0, 0.0
    for place, document in enumerate(ranking[:k]):
        gain += max(gains.get(document, 0), 0) / np.log2(place + 2)
    for place, value in enumerate(sorted(gains.values())[::-1][:k]):
        best += max(value, 0) / np.log2(place + 2)
    recall = len([place for place in hits if place < k]) / len(relevant(gains))
    return recall, reciprocal, reciprocal if reciprocal >= 1 / k else 0.0, gain / best


def found(rankings, relevance, k):
    return [
        recall_at_k(rankings, relevance, k),
        mean_reciprocal_rank(rankings, relevance),
        mean_reciprocal_rank(rankings, relevance, k=k),
        ndcg_at_k(rankings, relevance, k),
    ]


def test_random_cases():
    for rankings, relevance, k in random_cases():
        queries = [pair for pair in zip(rankings, relevance, strict=True) if relevant(pair[1])]
        expected = np.mean([scores_of_query(*query, k) for query in queries], axis=0)
        np.testing.assert_allclose(found(rankings, relevance, k), expected, atol=FLOAT64)


@pytest.mark.peers
def test_random_cases_against_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    for rankings, relevance, k in random_cases():
        expected = []
        for ranking, gains in zip(rankings, relevance, strict=True):
            if relevant(gains):
                # It takes a score for every document: one that is not ranked goes last, and gains nothing there.
                true, scores = np.zeros((2, 60))
                for document, gain in gains.items():
                    true[document] = max(gain, 0)
                scores[ranking] = 1 / np.arange(1, len(ranking) + 1)
                unranked = [document for document in range(30) if document not in ranking]
                true[30:], scores[30:] = 0, 1e-3
                scores[unranked] = -1
                expected.append(metrics.ndcg_score(true[None], scores[None], k=min(k, 30)))
        assert ndcg_at_k(rankings, relevance, k) == pytest.approx(np.mean(expected), abs=FLOAT64)


@pytest.mark.peers
def test_random_cases_against_trec_eval():
    trec_eval = pytest.importorskip("pytrec_eval")
    for rankings, relevance, k in random_cases():
        run = {
            str(row): {str(document): -float(place) for place, document in enumerate(ranking)}
            for row, ranking in enumerate(rankings)
        }
        judged = {
            str(row): {str(document): gain for document, gain in gains.items()}
            for row, gains in enumerate(relevance)
            if relevant(gains)
        }
        names = f"recall_{k}", "recip_rank", f"ndcg_cut_{k}"
        results = trec_eval.RelevanceEvaluator(judged, {f"recall.{k}", "recip_rank", f"ndcg_cut.{k}"}).evaluate(run)
        expected = np.mean([[scores[name] for name in names] for scores in results.values()], axis=0)
        recall, reciprocal, _, gain = found(rankings, relevance, k)
        np.testing.assert_allclose([recall, reciprocal, gain], expected, atol=FLOAT64)


def test_hand_checked_query():
    rankings, relevance = [["a", "b", "c", "d"]], [{"b": 3, "d": 1, "x": 2, "a": 0}]
    assert recall_at_k(rankings, relevance, k=1) == 0
    assert recall_at_k(rankings, relevance, k=4) == 2 / 3
    assert mean_reciprocal_rank(rankings, relevance) == 0.5
    assert mean_reciprocal_rank(rankings, relevance, k=1) == 0
    gain, best = 3 / np.log2(3) + 1 / np.log2(5), 3 + 2 / np.log2(3) + 1 / 2
    assert ndcg_at_k(rankings, relevance, k=4) == pytest.approx(gain / best, abs=FLOAT64)


def test_queries_without_a_relevant_document_are_left_out():
    rankings, relevance = [[1, 2], [3, 4], [5]], [{2: 1}, {3: 0}, {}]
    assert found(rankings, relevance, 2) == [1, 0.5, 0.5, pytest.approx(1 / np.log2(3))]


def test_arrays_of_ids():
    rankings = np.array([[4, 2], [3, 1]])
    assert recall_at_k(rankings, [{2: 1}, {7: 1}], k=2) == 0.5
    assert recall_at_k(np.array([["a", "b"]]), [{"b": np.int64(1)}], k=2) == 1


@pytest.mark.parametrize("function", [recall_at_k, mean_reciprocal_rank, ndcg_at_k])
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (([[1]], []), ValueError, "`relevance` must hold one dictionary for each of the 1 rankings. Received: 0."),
        (([[1, 2, 1]], [{1: 1}]), ValueError, "`rankings[0]` must hold no document twice. Received: rankings[0]=1."),
        (
            (["abc"], [{"a": 1}]),
            TypeError,
            "`rankings[0]` must be a list of document ids. Received: rankings[0]='abc'.",
        ),
        (
            ([[1], [2]], [{1: 1}, [2]]),
            TypeError,
            "`relevance[1]` must be a dictionary of document ids and gains. Received: relevance[1]=[2]. "
            "Write {id: gain}.",
        ),
        (([[1]], [{"a": "1"}]), TypeError, "`relevance[0]['a']` must be a finite number. Received"),
        (([[1]], [{1: np.nan}]), TypeError, "`relevance[0][1]` must be a finite number. Received"),
        (([[1]], [{1: 0}]), ValueError, "`relevance` must hold a relevant document for one query at least. Received"),
    ],
)
def test_errors(function, arguments, error, text):
    with pytest.raises(error, match=re.escape(f"`{function.__name__}`: {text}")):
        function(*arguments, k=5)


@pytest.mark.parametrize("function", [recall_at_k, mean_reciprocal_rank, ndcg_at_k])
def test_errors_of_depths(function):
    with pytest.raises(ValueError, match=re.escape(f"`{function.__name__}`: `k` must be at least 1. Received: k=0.")):
        function([[1]], [{1: 1}], k=0)
