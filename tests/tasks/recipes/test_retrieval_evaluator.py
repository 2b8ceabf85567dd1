"""`RetrievalEvaluator`: measures by hand and beside trec_eval; tasks, candidates and the logs of `fit`."""

import math
import random

import keras
import numpy as np
import pytest

from keras_bert_layers import (
    BertClassifier,
    BertCrossEncoder,
    BertDualEncoder,
    BertSentenceEncoder,
    BertStaticEncoder,
)
from keras_bert_layers.tasks import RetrievalEvaluator, StaticBackbone

TOLERANCE = 1e-12  # float64 in two orders of operations
TEXTS = ["good film", "bad", "a good night", "unhappy films , bad", "night !", "happy", "good good film ?"]
DOCUMENTS = {f"d{place}": text for place, text in enumerate(TEXTS)}
QUERIES = {"q1": "a good film", "q0": "bad night", "unjudged": "happy"}
JUDGEMENTS = {"q0": {"d1": 2, "d4": 1, "d0": 0}, "q1": {"d0": 3, "d6": 1, "d2": 1}}


@pytest.fixture(scope="module")
def encoder(new_backbone, preprocessor):
    return BertSentenceEncoder(new_backbone(), preprocessor=preprocessor)


def test_measures_by_hand():
    evaluator = RetrievalEvaluator(QUERIES, DOCUMENTS, {**JUDGEMENTS, "unjudged": {"d5": 0, "d1": -1}})
    ranking = {"q0": {"d3": 0.9, "d4": 0.8, "d1": 0.7}, "q1": {"d5": 2.0, "d4": 1.0}, "unjudged": {"d5": 1.0}}
    gain = (1 / math.log2(3) + 2 / math.log2(4)) / (2 / math.log2(2) + 1 / math.log2(3))
    measures = evaluator.measure(ranking)
    assert measures == pytest.approx({"ndcg@10": gain / 3, "mrr@10": 0.5 / 3, "recall@100": 1 / 3}, abs=TOLERANCE)
    assert evaluator.measure({}) == {"ndcg@10": 0, "mrr@10": 0, "recall@100": 0}


def random_case(seed):
    """Documents, judgements with all kinds of grades, and a ranking with many equal scores."""
    draw = random.Random(seed)
    documents = {f"d{number}": "a" for number in range(150)}
    judgements = {
        f"q{number}": {f"d{draw.randrange(170)}": draw.choice([-1, 0, 0, 1, 2, 3]) for _ in range(draw.randint(1, 30))}
        for number in range(12)
    }
    ranking = {
        query: {name: draw.randint(0, 40) / 8 for name in draw.sample(sorted(documents), draw.randint(1, 150))}
        for query in judgements
    }
    return documents, judgements, ranking


@pytest.mark.parametrize("seed", range(5))
def test_measures_of_trec_eval(seed):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    documents, judgements, ranking = random_case(seed)
    measures = ["ndcg@10", "mrr@10", "recall@100", "map@20", "precision@5", "accuracy@3", "ndcg@7", "map@150"]
    evaluator = RetrievalEvaluator(dict.fromkeys(judgements, "a"), documents, judgements, measures=measures)
    # Its ties are by the greater id, ours by the lesser one, so it is given ranks.
    ranks = {
        query: {name: -float(rank) for rank, name in enumerate(sorted(own, key=lambda name: (-own[name], name)))}
        for query, own in ranking.items()
    }
    first = {query: {name: rank for name, rank in own.items() if rank > -10} for query, own in ranks.items()}
    names = {"ndcg_cut.7,10", "recall.100", "map_cut.20,150", "P.5", "success.3"}
    theirs = pytrec_eval.RelevanceEvaluator(judgements, names).evaluate(ranks)
    reciprocal = pytrec_eval.RelevanceEvaluator(judgements, {"recip_rank"}).evaluate(first)
    keys = ["ndcg_cut_10", "recip_rank", "recall_100", "map_cut_20", "P_5", "success_3", "ndcg_cut_7", "map_cut_150"]
    rows = [{**row, **reciprocal[query]} for query, row in theirs.items()]
    wanted = {name: np.mean([row[key] for row in rows]) for name, key in zip(measures, keys, strict=True)}
    assert evaluator.measure(ranking) == pytest.approx(wanted, abs=TOLERANCE)


def test_all_documents_are_ranked(encoder):
    found = RetrievalEvaluator(QUERIES, DOCUMENTS, JUDGEMENTS).search(encoder)
    assert list(found) == ["q0", "q1"]
    for query, scores in found.items():
        cosines = encoder.similarity(QUERIES[query], TEXTS)[0]
        assert list(scores) == [f"d{place}" for place in np.argsort(-cosines)]
        assert list(scores.values()) == pytest.approx(sorted(cosines, reverse=True), abs=1e-5)


def test_order_of_dictionaries_does_not_matter(encoder):
    documents = {**DOCUMENTS, "d00": TEXTS[0], "d9": TEXTS[0]}
    found = RetrievalEvaluator(QUERIES, documents, JUDGEMENTS).search(encoder)
    assert [name for name in found["q1"] if name in ("d0", "d00", "d9")] == ["d0", "d00", "d9"]
    shuffled = [
        dict(random.Random(1).sample(list(texts.items()), len(texts))) for texts in (QUERIES, documents, JUDGEMENTS)
    ]
    assert RetrievalEvaluator(*shuffled).search(encoder) == found


def test_dual_encoder_ranks_by_the_dot_product(new_backbone, preprocessor):
    dual = BertDualEncoder(new_backbone(), new_backbone(seed=5), normalize=False, preprocessor=preprocessor)
    scores = RetrievalEvaluator(QUERIES, DOCUMENTS, JUDGEMENTS).search(dual)["q1"]
    vectors = dual.encode_documents(TEXTS, verbose=0)
    products = (dual.encode_queries([QUERIES["q1"]], verbose=0) @ vectors.T)[0]
    assert scores == pytest.approx(dict(zip(DOCUMENTS, products.tolist(), strict=True)), rel=1e-4)


def test_static_encoder(preprocessor, vocabulary):
    encoder = BertStaticEncoder(StaticBackbone(len(vocabulary), 5), preprocessor=preprocessor)
    assert set(RetrievalEvaluator(QUERIES, DOCUMENTS, JUDGEMENTS)(encoder)) == {"ndcg@10", "mrr@10", "recall@100"}


def test_candidates(encoder, new_backbone, preprocessor):
    candidates = {"q0": ["d4", "d1", "d4"], "q1": {"d5": 0.3, "d0": 0.1, "d6": 0.1}, "unjudged": ["d3"]}
    evaluator = RetrievalEvaluator(QUERIES, DOCUMENTS, JUDGEMENTS, candidates=candidates)
    everything = RetrievalEvaluator(QUERIES, DOCUMENTS, JUDGEMENTS).search(encoder)
    found = evaluator.search(encoder)
    for query, scores in found.items():
        kept = [name for name in everything[query] if name in candidates[query]]
        assert list(scores) == kept
        assert scores == pytest.approx({name: everything[query][name] for name in kept}, abs=1e-5)
    cross = BertCrossEncoder(new_backbone(), preprocessor)
    for query, scores in evaluator.search(cross).items():
        best = cross.rank(QUERIES[query], [DOCUMENTS[name] for name in scores])
        assert [row["corpus_id"] for row in best] == list(range(len(scores)))
        assert set(scores) == set(candidates[query])
    partial = RetrievalEvaluator(QUERIES, DOCUMENTS, JUDGEMENTS, candidates={"q0": ["d1"]})
    assert (
        partial(encoder)
        == partial(cross)
        == {"ndcg@10": pytest.approx(0.38, abs=0.01), "mrr@10": 0.5, "recall@100": 0.25}
    )


def test_logs_of_fit(new_backbone, preprocessor, tmp_path):
    encoder = BertSentenceEncoder(new_backbone(), preprocessor=preprocessor)
    encoder.compile(run_eagerly=True)
    evaluator = RetrievalEvaluator(QUERIES, DOCUMENTS, JUDGEMENTS)
    path = str(tmp_path / "{epoch}-{val_ndcg@10:.4f}.weights.h5")
    callbacks = [
        evaluator,
        RetrievalEvaluator(QUERIES, DOCUMENTS, {"q1": {"d5": 1}}, name="dev"),
        keras.callbacks.ModelCheckpoint(path, "val_dev_mrr@10", mode="max", save_weights_only=True),
        keras.callbacks.EarlyStopping("val_ndcg@10", mode="max", patience=5),
    ]
    history = encoder.fit((TEXTS[:4], TEXTS[3:]), epochs=2, verbose=0, callbacks=callbacks).history
    assert history["val_ndcg@10"][-1] == evaluator(encoder)["ndcg@10"]
    assert {"val_mrr@10", "val_recall@100", "val_dev_ndcg@10", "val_dev_recall@100"} <= set(history)
    names = [f"{epoch}-{value:.4f}.weights.h5" for epoch, value in enumerate(history["val_ndcg@10"], start=1)]
    assert sorted(file.name for file in tmp_path.iterdir()) == names


def test_errors(encoder, new_backbone, preprocessor):
    evaluator = RetrievalEvaluator(QUERIES, DOCUMENTS, JUDGEMENTS)
    with pytest.raises(
        TypeError, match="`RetrievalEvaluator`: `task` must be an encoder of sentences, or a cross-enco"
    ):
        evaluator(BertClassifier(new_backbone(), 2, preprocessor=preprocessor))
    with pytest.raises(ValueError, match="`candidates` must be given for a cross-encoder"):
        evaluator(BertCrossEncoder(new_backbone(), preprocessor))
    for measure in ("ndcg", "bleu@10", "map@0", "map@x"):
        with pytest.raises(ValueError, match="`measures` must be names of"):
            RetrievalEvaluator(QUERIES, DOCUMENTS, JUDGEMENTS, measures=[measure])
    with pytest.raises(ValueError, match="`top_k` must be at least 1"):
        evaluator.search(encoder, top_k=0)
    with pytest.raises(ValueError, match="`queries` must hold the text of 'q7'"):
        RetrievalEvaluator(QUERIES, DOCUMENTS, {**JUDGEMENTS, "q7": {"d0": 1}})
    with pytest.raises(ValueError, match="`documents` must hold the text of 'd77'"):
        RetrievalEvaluator(QUERIES, DOCUMENTS, JUDGEMENTS, candidates={"q0": ["d77"]})
    for judgements in ({}, {"q0": {0: 1}}):
        with pytest.raises(ValueError, match="`documents` must hold a judged document"):
            RetrievalEvaluator(QUERIES, DOCUMENTS, judgements)
    with pytest.raises(TypeError, match="`name` must be a string"):
        RetrievalEvaluator(QUERIES, DOCUMENTS, JUDGEMENTS, name=3)
