"""`mine_negatives` beside all pairs in NumPy and beside sentence-transformers, in any order, and in `fit`."""

import random
import re
import sys

import numpy as np
import pytest

from keras_bert_layers import (
    BertClassifier,
    BertCrossEncoder,
    BertDualEncoder,
    BertSentenceEncoder,
    BertStaticEncoder,
)
from keras_bert_layers.tasks import StaticBackbone, mine_negatives
from keras_bert_layers.tasks.feeding.columns import as_columns
from keras_bert_layers.tasks.recipes import mined_negatives as module
from keras_bert_layers.tasks.recipes.rankings import ranked

pytestmark = [pytest.mark.usefixtures("traces_nothing"), pytest.mark.filterwarnings("ignore:.*have no negative")]
TOLERANCE = 1e-5  # float32 in two orders of operations
DOCUMENTS = [f"d{number:02}" for number in range(40)]
QUERIES = [f"q{number}" for number in range(7)]
POSITIVES = [[f"d{number:02}", f"d{20 + number}", "only here"][: 1 + number % 3] for number in range(7)]
WORDS = "a good bad film night unhappy . ! ?".split()


def take_vectors_from(table, monkeypatch):
    """Lets `mine_negatives` encode by a table."""

    def vectors(encoder, queries, documents, *_):
        return [np.stack([table[text] for text in texts]) for texts in (queries, documents)]

    monkeypatch.setattr(module, "_vectors", vectors)


@pytest.fixture
def vectors(monkeypatch):
    """Vectors of all texts by name; each third document has the vector of the one before. Small blocks."""
    texts = [*DOCUMENTS, *QUERIES, "only here"]
    table = dict(zip(texts, np.random.default_rng(4).normal(size=(len(texts), 4)).astype(np.float32), strict=True))
    for number in range(2, 40, 3):
        table[DOCUMENTS[number]] = table[DOCUMENTS[number - 1]]
    table = {text: vector / np.linalg.norm(vector) for text, vector in table.items()}
    take_vectors_from(table, monkeypatch)
    monkeypatch.setattr(module, "_BLOCK", 3)
    monkeypatch.setattr(module, "_SPARE", 1)
    return table


@pytest.fixture(scope="module")
def static_encoder(preprocessor, vocabulary):
    return BertStaticEncoder(StaticBackbone(len(vocabulary), 5), preprocessor=preprocessor)


@pytest.fixture(scope="module")
def encoder(new_backbone, preprocessor):
    return BertSentenceEncoder(new_backbone(), preprocessor=preprocessor)


def expected(table, query, right, *, range_min=0, range_max=50, num_negatives=5, highest=9.0, lowest=-9.0):
    """The candidates of a query in float64, with equal scores in the order of the texts."""
    scores = {text: round(float(table[query].astype(float) @ table[text]), 5) for text in [*DOCUMENTS, "only here"]}
    order = sorted(scores, key=lambda text: (-scores[text], text))
    candidates = [text for text in order if text not in right][:range_max]
    passed = [text for text in candidates if lowest <= scores[text] <= highest]
    return passed[range_min : range_min + num_negatives], min(scores[text] for text in right)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_negatives": 3, "range_min": 2, "range_max": 6},
        {"num_negatives": 41, "range_max": 100},
        {"range_max": 11, "max_score": 0.3, "min_score": -0.1},
        {"absolute_margin": 0.2},
        {"relative_margin": 0.3, "range_min": 1},
        {"absolute_margin": 0.0, "relative_margin": 0.1, "max_score": 0.2},
    ],
)
def test_all_pairs_in_numpy(vectors, static_encoder, options):
    (queries, positives, negatives), scores = mine_negatives(
        static_encoder, QUERIES, DOCUMENTS, POSITIVES, verbose=0, return_scores=True, **options
    )
    rows = [(query, text) for query, own in zip(QUERIES, POSITIVES, strict=True) for text in own]
    assert list(zip(queries, positives, strict=True)) == rows
    given = {name: value for name, value in options.items() if name in ("num_negatives", "range_min", "range_max")}
    for query, positive, own, row in zip(queries, positives, negatives, scores, strict=True):
        right = POSITIVES[QUERIES.index(query)]
        _, least = expected(vectors, query, right)
        bounds = [options.get("max_score", 9), least - options.get("absolute_margin", -9)]
        bounds.append(least - options["relative_margin"] * abs(least) if "relative_margin" in options else 9)
        limits = {"highest": min(bounds), "lowest": options.get("min_score", -9)}
        assert own == expected(vectors, query, right, **{**given, **limits})[0]
        products = [vectors[query] @ vectors[text] for text in (positive, *own)]
        assert row[: len(products)] == pytest.approx(products, abs=TOLERANCE)
        assert np.isnan(row[len(products) :]).all()
    assert scores.dtype == np.float32
    assert scores.shape[1] == 1 + max(map(len, negatives))


@pytest.mark.parametrize("steps", [0, 3, 40])
@pytest.mark.parametrize("num_texts", [1, 4, 35])
def test_one_query_at_a_time_in_plain_python(static_encoder, monkeypatch, num_texts, steps):
    """Scores are exact: query `n` reads column `n` of a table, of which many numbers are equal, or nearly."""
    draws, queries = np.random.default_rng(num_texts + steps), [f"q{number}" for number in range(9)]
    scores = 0.5 + 4e-6 * draws.integers(-steps, steps + 1, (num_texts, 9)).astype(np.float32)
    texts = [f"d{number:02}" for number in range(num_texts)]
    take_vectors_from(dict(zip([*texts, *queries], [*scores, *np.eye(9, dtype=np.float32)], strict=True)), monkeypatch)
    monkeypatch.setattr(module, "_BLOCK", 4)
    monkeypatch.setattr(module, "_SPARE", 1)
    right = [draws.choice(texts, 1 + number % 3).tolist() for number in range(9)]
    options = {"num_negatives": 6, "range_max": 6, "verbose": 0, "return_scores": True}
    (asked, _, negatives), found = mine_negatives(static_encoder, queries, [*texts, "q1"], right, **options)
    for query, own, row in zip(asked, negatives, found, strict=True):
        number = queries.index(query)
        column = {**dict(zip(texts, scores[:, number].tolist(), strict=True)), "q1": float(number == 1)}
        order = ranked(column, len(column))
        assert own == [text for text in order if text not in right[number] and text != query][:6]
        assert row[1 : 1 + len(own)].tolist() == np.float32([order[text] for text in own]).tolist()


def random_texts(number, seed):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 6))) for _ in range(number)]


@pytest.mark.parametrize("sampling", ["top", "random"])
def test_order_does_not_decide(encoder, sampling):
    documents = random_texts(150, seed=1)
    documents += [*documents[::3], "Good film", "good film", "GOOD film", ""]  # equal texts, and equal vectors
    queries, positives = [*random_texts(12, seed=2), "a good", "a good"], documents[20:34]
    wanted = None
    for seed in range(3):
        draw = random.Random(seed)
        pairs = draw.sample(list(zip(queries, positives, strict=True)), len(queries))
        shuffled = draw.sample(documents, len(documents))
        asked, right = (list(column) for column in zip(*pairs, strict=True))
        found, scores = mine_negatives(
            encoder, asked, shuffled, right, sampling=sampling, return_scores=True, verbose=0
        )
        rows = {(query, text): (own, row) for query, text, own, row in zip(*found, scores.tolist(), strict=True)}
        wanted = wanted or rows
        assert rows == wanted
    for (query, _), (own, _) in wanted.items():
        assert len(set(own)) == 5
        assert not {"", query, *(text for asked, text in wanted if asked == query)} & set(own)


def test_random_negatives_are_among_the_candidates(vectors, static_encoder):
    def mine(**options):
        return mine_negatives(static_encoder, QUERIES, DOCUMENTS, POSITIVES, range_max=9, verbose=0, **options)[2]

    all_nine, drawn = mine(num_negatives=9), mine(num_negatives=4, sampling="random")
    for own, candidates in zip(drawn, all_nine, strict=True):
        assert own == [text for text in candidates if text in own]
    assert drawn != [own[:4] for own in all_nine]
    assert drawn == mine(num_negatives=4, sampling="random")
    assert drawn != mine(num_negatives=4, sampling="random", seed=1)


def test_dictionaries_are_judgements(vectors, static_encoder):
    options = {"num_negatives": 2, "absolute_margin": 0.1, "verbose": 0}
    ids = {f"id {text}": text for text in [*DOCUMENTS, "only here"]}
    judged = {query: {f"id {text}": 1 for text in own} | {"id d33": 0} for query, own in enumerate(POSITIVES)}
    judged[3] = [name for name, grade in judged[3].items() if grade]
    found = mine_negatives(static_encoder, dict(enumerate([*QUERIES, "not judged"])), ids, judged, **options)
    assert found == mine_negatives(static_encoder, QUERIES, DOCUMENTS, POSITIVES, **options)


def test_the_dot_product_of_a_dual_encoder(new_backbone, preprocessor):
    dual = BertDualEncoder(new_backbone(), new_backbone(seed=5), normalize=False, preprocessor=preprocessor)
    documents = sorted(set(random_texts(30, seed=1)))
    found, scores = mine_negatives(dual, ["a good night"], documents, documents[:1], return_scores=True, verbose=0)
    products = (dual.encode_queries(["a good night"], verbose=0) @ dual.encode_documents(documents, verbose=0).T)[0]
    order = [documents[row] for row in np.argsort(-products) if row]
    assert found[2] == [order[:5]]
    wanted = [products[documents.index(text)] for text in [documents[0], *order[:5]]]
    assert scores[0] == pytest.approx(wanted, rel=1e-4)


def test_a_cross_encoder_scores_the_candidates(encoder, new_backbone, preprocessor):
    documents = sorted(set(random_texts(60, seed=1)))
    queries, positives = ["a good night", "bad film"], [[documents[3], documents[4]], documents[5]]
    arguments = encoder, queries, documents, [documents[3:5], documents[5:6]]
    cross = BertCrossEncoder(new_backbone(seed=3), preprocessor)
    options = {"num_negatives": 4, "range_max": 20, "verbose": 0}
    candidates = mine_negatives(*arguments, **{**options, "num_negatives": 20})[2][::2]
    found, scores = mine_negatives(*arguments, **options, cross_encoder=cross, absolute_margin=0.0, return_scores=True)
    assert found[:2] == ([queries[0], *queries], [*positives[0], positives[1]])
    for query, own, row, among in zip(queries, found[2][::2], scores[::2], candidates, strict=True):
        texts = [*among, *documents[3:6]]
        ranks = {texts[each["corpus_id"]]: each["score"] for each in cross.rank(query, texts)}
        least = min(ranks[text] for text in (documents[3:5] if query == queries[0] else documents[5:6]))
        passed = [text for text, score in ranks.items() if text in among and score <= least]
        assert own == passed[:4]
        assert row[1 : 1 + len(own)] == pytest.approx([ranks[text] for text in own], abs=TOLERANCE)


def test_fit_takes_columns_and_the_file(encoder, new_backbone, preprocessor, train_eagerly, tmp_path):
    pandas = pytest.importorskip("pandas")
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow, from the extra `parquet`")
    documents, path = np.array(["bad", "good film", "night", "unhappy"]), tmp_path / "new" / "mined.parquet"
    arguments = encoder, ["a night", "a film"], pandas.Series(documents), [documents[:1], documents]
    with pytest.warns(UserWarning, match="`mine_negatives`: 4 of 5 rows have no negative. Raise `range_max`"):
        found, scores = mine_negatives(*arguments, num_negatives=2, to=path, return_scores=True, verbose=0)
    assert [len(own) for own in found[2]] == [2, 0, 0, 0, 0]
    assert np.isnan(scores).sum(axis=1).tolist() == [0, 2, 2, 2, 2]
    dual = BertDualEncoder(new_backbone(), preprocessor=preprocessor)
    (logs,) = train_eagerly(dual, found, None, steps=1)
    assert np.isfinite(logs["loss"])
    table = pandas.read_parquet(path)
    assert list(table) == ["query", "positive", "negatives", "scores"]
    kept = [row[~np.isnan(row)] for row in scores]
    assert all(np.array_equal(row.astype(np.float32), own) for row, own in zip(table["scores"], kept, strict=True))
    for read in (table, parquet.read_table(path)):
        rows = tuple(read[name] for name in ("query", "positive", "negatives"))
        columns = as_columns("fit", rows, most=3)
        assert [column.tolist() for column in columns[:2]] == list(found[:2])
        assert [[text for text in row if text] for row in columns[2]] == found[2]
    (logs,) = train_eagerly(BertSentenceEncoder(new_backbone(), preprocessor=preprocessor), rows, None, steps=1)
    assert np.isfinite(logs["loss"])


def test_progress(static_encoder, capsys):
    mine_negatives(static_encoder, ["a film", "bad"], WORDS, ["film", "unhappy"], verbose=1)
    assert "2/2" in re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize(
    ("given", "words", "error", "message"),
    [
        ((["a"], ["b"], ["c"]), {"num_negatives": 0}, ValueError, "`num_negatives` must be at least 1"),
        ((["a"], ["b"], ["c"]), {"range_min": -1}, ValueError, "`range_min` must be at least 0"),
        (
            (["a"], ["b"], ["c"]),
            {"range_min": 3, "range_max": 7},
            ValueError,
            "`range_max` must be at least 8, `range_min` and `num_negatives` together. Received: range_max=7",
        ),
        ((["a"], ["b"], ["c"]), {"absolute_margin": -0.1}, ValueError, "`absolute_margin` must be at least 0"),
        ((["a"], ["b"], ["c"]), {"relative_margin": 5}, ValueError, "`relative_margin` must be at least 0 and at most"),
        ((["a"], ["b"], ["c"]), {"sampling": "best"}, ValueError, r"`sampling` must be one of \['top', 'random'\]"),
        ((["a"], ["b"], ["c"]), {"seed": -1}, ValueError, "`seed` must be at least 0"),
        ((["a"], ["b"], ["c"]), {"to": "a.csv"}, ValueError, "`to` must end in .parquet. Received: to='a.csv'"),
        ((["a"], ["b"], ["c"]), {"cross_encoder": 1}, TypeError, "`cross_encoder` must be a BertCrossEncoder"),
        ((["a", "b"], ["b"], ["c"]), {}, ValueError, "`positives` must have 2 rows, as `queries`. Received: 1 rows"),
        ((["a"], ["b"], [[]]), {}, ValueError, "`positives` must hold a right answer"),
        ((["a"], "b", ["c"]), {}, TypeError, "`documents` must be a column of texts, or of lists of texts"),
        ((["a"], [["b", "c"]], ["c"]), {}, ValueError, r"`documents` must have one text in each row.*\(1, 2\)"),
        ((["a"], [7], ["c"]), {}, TypeError, "texts must be strings. Received: 7 in row 0"),
        (({"q": "a"}, ["b"], {"q": ["d"]}), {}, TypeError, "`documents` must be a dictionary, as the others"),
        (({"q": "a"}, {"d": "b"}, {"q": ["e"]}), {}, ValueError, "`documents` must hold the text of 'e'"),
        (({"q": "a"}, {1: "b"}, {"r": [1]}), {}, ValueError, "`queries` must hold the text of 'r'"),
    ],
)
def test_errors(static_encoder, given, words, error, message):
    with pytest.raises(error, match=f"`mine_negatives`: {message}"):
        mine_negatives(static_encoder, *given, verbose=0, **words)


def test_another_task_and_a_missing_package(backbone, static_encoder, monkeypatch):
    with pytest.raises(TypeError, match="`mine_negatives`: `encoder` must be an encoder of sentences"):
        mine_negatives(BertClassifier(backbone, 2), ["a"], ["b"], ["c"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"Parquet files need pyarrow. Install it with `pip install keras"):
        mine_negatives(static_encoder, ["a"], ["b"], ["c"], to="a.parquet")


@pytest.mark.peers
def test_negatives_of_sentence_transformers(monkeypatch):
    pytest.importorskip("datasets", reason="`mine_hard_negatives` needs it")
    pytest.importorskip("sentence_transformers", reason="the extra `benchmarks` brings it")
    import mined_negatives as benchmark

    names = [f"{number:03}" for number in range(230)]
    table = np.random.default_rng(5).normal(size=(230, 16)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    take_vectors_from(dict(zip(names, table, strict=True)), monkeypatch)
    pairs = [[query, text] for query, text in zip(names[:30], names[30:60], strict=True)]
    pairs += [[query, text] for query, text in zip(names[:30:2], names[60:90:2], strict=True)]
    encoder = BertStaticEncoder(StaticBackbone(5, 3))
    for options in benchmark.SETTINGS.values():
        ours = benchmark.mine(encoder, pairs, names[30:], options)
        theirs = benchmark.mine_by_peer(benchmark.Vectors(names, table), pairs, names[30:], options)
        assert benchmark.num_different(ours, theirs) == 0
