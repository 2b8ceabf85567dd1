"""`BertMultiVectorEncoder`: vectors beside NumPy, scores, matches of tokens, losses, learning, answers."""

import contextlib

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers import BertMultiVectorEncoder
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.losses.in_batch import max_sim, unit
from keras_bert_layers.tasks import RetrievalEvaluator, TokenVectors, semantic_search

QUERIES = ["good film", "bad film , a bad night and a film", "", "unhappy", "\0[SEP] \u0301中 good"]
DOCUMENTS = ["a good night . !", "film", ".", "happy , unhappy", "bad ! bad night nights unhappy films a a"]
NEGATIVES = [["bad", "a"], ["!"], [], ["good good"], ["."]]
# Sums and lengths in float32, in another order.
TOLERANCE = 1e-5
OPTIONS = {"query_length": 7, "document_length": 8, "skiplist": ["[UNK]", ".", "!", "no such token"]}
OPTIONS |= {"query_expansion": "unattended", "prompts": {"query": "a ", "document": "film "}}


@pytest.fixture(scope="module")
def make(new_backbone, preprocessor):
    def make(*, backbone=None, **options):
        options = {**OPTIONS, **options}
        return BertMultiVectorEncoder(backbone or new_backbone(), 5, preprocessor=preprocessor, **options)

    return make


@pytest.fixture(scope="module")
def encoder(make):
    """One model for all tests that only read it."""
    return make()


@pytest.fixture(scope="module")
def reference(numpy_bert):
    """The vectors of one text at a time, from the weights of a model."""

    def vectors(encoder, side, text):
        weights = {weight.path: np.asarray(weight.value) for weight in encoder.weights}
        tokenizer, is_query = encoder.preprocessor.tokenizer, side == "query"
        read = tokenizer.tokenize([(encoder.prompts or {}).get(side, "") + text]).to_list()[0]
        length = (encoder.query_length if is_query else encoder.document_length) or encoder.preprocessor.max_length
        row = [tokenizer.start_id, *read[: length - 2], tokenizer.separator_id]
        mask = [1] * len(row)
        if is_query and encoder.query_expansion:
            mask += [int(encoder.query_expansion == "attended")] * (length - len(row))
            row += [tokenizer.mask_id] * (length - len(row))
        ids = {"token_ids": [row], "segment_ids": np.zeros((1, len(row)), int), "padding_mask": [mask]}
        ids = {name: np.array(values) for name, values in ids.items()}
        hidden = numpy_bert.bert(weights, ids, num_layers=1, num_heads=3)["sequence_output"][0]
        hidden = hidden @ weights["dense_projection/kernel"]
        skipped = [] if is_query else [tokenizer.unknown_id, *map(tokenizer.token_to_id, ".!")]
        kept = [index for index, token in enumerate(row) if not (encoder.skiplist and token in skipped)]
        return (hidden / np.linalg.norm(hidden, axis=-1, keepdims=True))[kept]

    return vectors


@pytest.fixture(scope="module")
def scores(reference):
    """The score of each pair of texts, from the weights of a model."""

    def scores(encoder, queries, documents):
        asked = [reference(encoder, "query", text) for text in queries]
        read = [reference(encoder, "document", text) for text in documents]
        return np.array([[(own @ other.T).max(axis=1).sum() for other in read] for own in asked])

    return scores


PLAIN = {"query_expansion": None, "prompts": None, "skiplist": (), "query_length": None, "document_length": None}


ATTENDED = {"query_expansion": "attended", "query_length": 13}


@pytest.mark.parametrize("options", [{}, ATTENDED, PLAIN], ids=str)
def test_vectors_are_those_of_numpy(make, reference, eagerly, options):
    encoder = make(**options)
    for side, texts in (("query", QUERIES), ("document", DOCUMENTS)):
        with eagerly() if options else contextlib.nullcontext():
            found = (encoder.encode_queries if side == "query" else encoder.encode_documents)(texts, verbose=0)
        assert (len(found), found.shape, found.vectors.dtype) == (5, (5, 5), np.float32)
        eager = encoder.predictor.part(side)(encoder.pipeline.side(side).ids(tf.constant(texts)))
        for own, padded, text in zip(found, np.asarray(eager), texts, strict=True):
            np.testing.assert_allclose(own, reference(encoder, side, text), atol=TOLERANCE)  # the first in a graph
            np.testing.assert_allclose(padded[padded.any(axis=-1)], own, atol=TOLERANCE)


def test_scores(encoder, scores):
    expected = scores(encoder, QUERIES, DOCUMENTS)
    corpus = encoder.encode_documents(DOCUMENTS, verbose=0)
    np.testing.assert_allclose(encoder.similarity(QUERIES, corpus), expected, atol=1e-4)
    np.testing.assert_allclose(encoder.similarity("unhappy", DOCUMENTS), expected[3:4], atol=1e-4)
    pairs = encoder.predict((QUERIES, DOCUMENTS), batch_size=2, verbose=0)
    np.testing.assert_allclose(pairs, np.diag(expected), atol=1e-4)
    asked = encoder.predict(QUERIES, verbose=0)
    for own, found in zip(asked, encoder.predict_stream(QUERIES), strict=True):
        np.testing.assert_allclose(own, found, atol=TOLERANCE)
    assert encoder.predict(QUERIES[0], verbose=0).shape == (7, 5)
    assert encoder.predict([], verbose=0).shape == encoder.encode_documents([], verbose=0).shape == (0, 5)
    assert encoder.predict(([], []), verbose=0).shape == (0,)
    found = semantic_search(asked, corpus, top_k=2)
    best = np.argsort(-expected, axis=1, kind="stable")[:, :2]
    assert [[row["corpus_id"] for row in rows] for rows in found] == best.tolist()


def test_token_vectors():
    rows = [np.eye(3)[:2], np.zeros((0, 3)), -np.eye(3)]
    vectors = TokenVectors.of(rows, 3)
    assert (len(vectors), vectors.shape, vectors.row_starts.tolist()) == (3, (3, 3), [0, 2, 2, 5])
    assert [row.tolist() for row in vectors[[2, 0]]] == [rows[2].tolist(), rows[0].tolist()]
    assert [len(row) for row in vectors[:2]] == [2, 0]
    assert vectors.scores(vectors).tolist() == [[2, 0, 0], [0, 0, 0], [0, 0, 3]]
    with pytest.raises(IndexError):
        vectors[3]
    with pytest.raises(ValueError, match="`queries` must be 3 wide"):
        vectors.scores(TokenVectors.of([], 4))


def test_pooled_vectors(encoder):
    angles = np.array([0, 0, 3, 1, 0.1, 3.1])  # the first vector stays, whatever is near it
    rows = [np.stack([np.cos(angles), np.sin(angles)], axis=1), np.eye(2)[:1], np.zeros((0, 2)), np.eye(2)]
    pooled = TokenVectors.of(rows, 2).pooled(1.5)
    means = [np.arctan2(*row.T[::-1]).tolist() for row in pooled]
    assert means == [pytest.approx([0, 0.05, 3.05, 1], abs=1e-6), [0], [], pytest.approx([0, np.pi / 2])]
    whole = encoder.encode_documents(DOCUMENTS, verbose=0)
    half = encoder.encode_documents(DOCUMENTS, pool_factor=2, verbose=0)
    assert np.diff(half.row_starts).tolist() == [1 + max(1, (len(row) - 1) // 2) for row in whole]
    np.testing.assert_allclose(np.linalg.norm(half.vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(encoder.encode_documents(DOCUMENTS[0], pool_factor=2, verbose=0), half[0], atol=1e-6)
    with pytest.raises(ValueError, match="`pool_factor` must be at least 1"):
        encoder.encode_documents(DOCUMENTS, pool_factor=0.5)


@pytest.mark.peers
@pytest.mark.parametrize("factor", [1, 1.5, 2, 7, 1000])
def test_pooled_vectors_are_those_of_sentence_transformers(factor):
    torch, _ = pytest.importorskip("torch"), pytest.importorskip("sentence_transformers", "6.2")
    from sentence_transformers.multi_vector_encoder.modules.token_pooling import HierarchicalTokenPooling

    draw = np.random.default_rng(5)
    rows = [unit(draw.normal(size=(size, 16))).astype(np.float32) for size in (1, 2, 3, 40, 181)]
    expected = HierarchicalTokenPooling(factor).pool(list(map(torch.from_numpy, rows)))
    for own, other in zip(TokenVectors.of(rows, 16).pooled(factor), expected, strict=True):
        np.testing.assert_allclose(*(sorted(found.tolist()) for found in (own, other)), atol=1e-6)


def test_explain(encoder, scores):
    document = "é bad ! film nights"
    matches = encoder.explain("good zzz", document)
    asked = ["[CLS]", "a", "good", "[UNK]", "[SEP]", "[MASK]", "[MASK]"]
    assert [match.token for match in matches] == asked
    expected = scores(encoder, ["good zzz"], [document])[0, 0]
    assert sum(match.score for match in matches) == pytest.approx(expected, abs=1e-4)
    places = {"bad": (3, 6), "film": (9, 13), "night": (14, 19), "##s": (19, 20)}
    for match in matches:
        assert (match.start, match.end) == places.get(match.document_token, (-1, -1)) or match.start == -1
        assert match.document_token not in ("!", "[UNK]")
    found = {match.document_token for match in encoder.explain(document, document)}
    assert {"bad", "film"} <= found


def test_losses(make, scores):
    encoder = make(temperature=0.5)
    encoder.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    documents = scores(encoder, QUERIES, DOCUMENTS)
    others = scores(encoder, QUERIES, [text for row in NEGATIVES for text in row])
    logits = np.concatenate([documents, others], axis=1) / 0.5
    logits[2, -1] = -np.inf  # "." is a document and a negative, and so no negative of its own query
    expected = np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diag(logits))
    logs = encoder.test_on_batch((QUERIES, DOCUMENTS, NEGATIVES), return_dict=True)
    assert logs["loss"] == pytest.approx(expected, abs=1e-4)
    assert logs["accuracy"] == pytest.approx((logits.argmax(axis=1) == np.arange(5)).mean())
    negatives, teacher = ["bad", "!", "a", "good good", "."], np.array([[3, 1], [2, 2], [1, 0], [0, 3], [1, 1.5]])
    found = np.stack([np.diag(documents), np.diag(scores(encoder, QUERIES, negatives))], axis=1)
    margins = np.mean(((found[:, 0] - found[:, 1]) - (teacher[:, 0] - teacher[:, 1])) ** 2)

    def log_softmax(rows):
        return rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))

    target = log_softmax(teacher)
    divergence = (np.exp(target) * (target - log_softmax(found))).sum(axis=1).mean()
    for loss, value in ((kbl.losses.MarginMSE(), margins), (kbl.losses.DistillKLDiv(), divergence)):
        encoder.compile(keras.optimizers.SGD(0.0), loss, run_eagerly=True)
        logs = encoder.test_on_batch((QUERIES, DOCUMENTS, negatives), teacher, return_dict=True)
        assert logs["loss"] == pytest.approx(value, abs=1e-4)
    for loss in (kbl.losses.Triplet(), kbl.losses.MultipleNegativesRanking()):
        with pytest.raises(ValueError, match="`loss` must be one for this task"):
            encoder.compile(loss=loss)


def test_absent_tokens_have_no_part_in_scores():
    queries, documents = np.full((1, 2, 2), [1.0, 0.0]), np.full((2, 3, 2), [-1.0, 0.0])
    queries[0, 1], documents[1, 1:] = 0, 0
    assert np.asarray(max_sim(queries, documents)).tolist() == [[-1, -1]]


@pytest.mark.usefixtures("traces_nothing")
def test_mini_batches_have_the_gradients_of_the_batch(make):
    found = []
    for size in (None, 2):
        encoder = make()
        loss = kbl.losses.MarginMSE(mini_batch_size=size)
        encoder.compile(keras.optimizers.SGD(0.01), loss, run_eagerly=True)
        encoder.train_on_batch((QUERIES, DOCUMENTS, ["bad", "!", "a", "good", "."]), [[1.0], [2], [0], [0], [3]])
        found.append(encoder.get_layer("query_encoder").get_layer("dense_projection").get_weights()[0])
    np.testing.assert_allclose(*found, atol=TOLERANCE)


def test_learns_to_search(make, eagerly, tmp_path):
    queries, documents = ["good", "bad", "night", "happy"] * 8, ["film .", "a !", "unhappy", "good a"] * 8
    encoder = make()
    encoder.compile(keras.optimizers.Adam(0.02))
    history = encoder.fit((queries, documents), batch_size=8, epochs=15, verbose=0).history
    assert history["accuracy"][-1] == 1
    with eagerly():
        ranks_and_is_saved(encoder, queries[:4], documents[:4], tmp_path / "model.keras")


def ranks_and_is_saved(encoder, queries, documents, path):
    texts, judgements = dict(enumerate(documents)), {row: {row: 1} for row in range(4)}
    evaluator = RetrievalEvaluator(dict(enumerate(queries)), texts, judgements)
    assert evaluator(encoder)["mrr@10"] == 1
    candidates = {row: [row, (row + 1) % 4] for row in range(4)}
    asked = RetrievalEvaluator(evaluator.queries, texts, judgements, candidates=candidates)
    expected = encoder.similarity(queries, documents)
    for row, found in asked.search(encoder).items():
        assert list(found.values()) == pytest.approx(expected[row, candidates[row]].tolist(), abs=1e-4)
    encoder.save(path)
    again = kbl.load_task(path, "multi_vector_encoder")
    assert again.get_config() == encoder.get_config()
    np.testing.assert_allclose(again.similarity(QUERIES, DOCUMENTS), encoder.similarity(QUERIES, DOCUMENTS), atol=1e-5)


@pytest.mark.usefixtures("traces_nothing")
def test_answers(encoder):
    answers = encoder.answer(QUERIES, batch_size=2)
    assert answers["token_vectors"].shape == (5, 7, 5)
    assert answers["mask"].all()
    by_name = {signature.name: signature.function for signature in encoder.signatures()}
    for side, encode in (("query", encoder.encode_queries), ("document", encoder.encode_documents)):
        found = by_name[side](tf.constant(DOCUMENTS))
        for own, row, mask in zip(encode(DOCUMENTS, verbose=0), found["token_vectors"], found["mask"], strict=True):
            np.testing.assert_allclose(row[mask == 1], own, atol=TOLERANCE)
            assert not np.any(row[mask == 0])


@pytest.mark.slow
def test_the_saved_model(encoder, tmp_path):
    encoder.export(tmp_path / "model")
    served = tf.saved_model.load(str(tmp_path / "model")).signatures
    names = {"serving_default", "token_ids", "tokenize", "query", "document", "document_token_ids", "document_tokenize"}
    assert set(served) == names
    for name, encode in (("serving_default", encoder.encode_queries), ("document", encoder.encode_documents)):
        texts = [*QUERIES, *DOCUMENTS, "\ufffd\u200b\t\r\n" * 9, "a" * 500]
        found = served[name](text=tf.constant(texts))
        for own, row, mask in zip(encode(texts, verbose=0), found["token_vectors"], found["mask"], strict=True):
            np.testing.assert_allclose(row.numpy()[mask.numpy() == 1], own, atol=TOLERANCE)
    ids = served["document_tokenize"](text=tf.constant(DOCUMENTS))
    vectors = served["document_token_ids"](**ids)["token_vectors"]
    np.testing.assert_allclose(vectors, served["document"](text=tf.constant(DOCUMENTS))["token_vectors"], atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"query_expansion": "yes"}, r"`query_expansion` must be one of \[None, 'unattended', 'attended'\]"),
        ({"query_expansion": "attended"}, "`query_length` must be given for a `query_expansion`"),
        ({"query_expansion": "attended", "query_length": 9}, "`preprocessor` must be given"),
        ({"skiplist": ["."]}, "`preprocessor` must be given"),
        ({"prompts": {"other": "a "}}, r"`prompts` must be one of \['query', 'document'\]"),
        ({"projection_dim": 0}, "`projection_dim` must be"),
        ({"temperature": 0}, "`temperature` must be"),
    ],
    ids=str,
)
def test_errors(backbone, options, message):
    with pytest.raises(ValueError, match=message):
        BertMultiVectorEncoder(backbone, **options)


def test_texts_without_a_preprocessor(backbone):
    with pytest.raises(ValueError, match="`preprocessor` must be given for raw text"):
        BertMultiVectorEncoder(backbone).explain("a", "a")


def test_lengths_that_the_backbone_does_not_have(make):
    with pytest.raises(ValueError, match="`preprocessor.max_length` must be at most"):
        make(document_length=14)
    with pytest.raises(ValueError, match="`texts` must be texts"):
        make().encode_documents({"token_ids": np.ones((1, 2))})
