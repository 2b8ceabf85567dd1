"""`BertSparseEncoder`: weights beside NumPy, search, the penalty, learning, answers of texts of any kind."""

import random

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers import BertSparseEncoder
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks import RetrievalEvaluator, SparseVectors, mine_negatives, semantic_search
from keras_bert_layers.tasks.inputs.sparse_vectors import sparse_rows

TEXTS = ["good film", "bad film , a bad night", "", "unhappy", "good"]
OTHERS = ["a good night", "film", "night", "happy", "bad"]
NEGATIVES = [["bad", "a"], ["!"], [], ["good good"], ["."]]
# Logarithms of sums in float32, in another order.
TOLERANCE = 1e-5
KINDS = [("max", "relu"), ("sum", "log1p_relu")]


@pytest.fixture(scope="module")
def make(new_backbone, preprocessor):
    def make(*arguments, dtype=None, **options):
        encoder = BertSparseEncoder(new_backbone(dtype=dtype), *arguments, preprocessor=preprocessor, **options)
        head, generator = encoder.get_layer("masked_lm_head"), np.random.default_rng(5)
        head.bias.assign(generator.normal(size=head.bias.shape) - 0.5)  # about a half of the weights are 0
        return encoder

    return make


@pytest.fixture(scope="module")
def encoder(make):
    """One model for all tests that only read it."""
    return make(prompts={"query": "good ", "document": "film "})


@pytest.fixture(scope="module")
def reference(numpy_bert):
    """The weights of texts, one text at a time, from the weights of a model."""

    def reference(encoder, texts):
        weights = {weight.path: np.asarray(weight.value, "float64") for weight in encoder.weights}
        rows = []
        for text in texts:
            ids = {name: np.asarray(values) for name, values in encoder.preprocessor([text]).items()}
            hidden = numpy_bert.bert(weights, ids, num_layers=1, num_heads=3)["sequence_output"][0]
            hidden = numpy_bert.gelu_erf(numpy_bert.dense(weights, "masked_lm_head/dense", hidden))
            hidden = numpy_bert.layer_norm(weights, "masked_lm_head/layer_norm", hidden, 1e-12)
            logits = hidden @ weights["embedding/token_embedding"].T + weights["masked_lm_head/bias"]
            values = np.log1p(np.maximum(logits, 0))
            values = np.log1p(values) if encoder.activation == "log1p_relu" else values
            rows.append(values.max(axis=0) if encoder.pooling == "max" else values.sum(axis=0))
        return np.array(rows)

    return reference


def dense(vectors):
    """Sparse vectors as a matrix."""
    found = np.zeros(vectors.shape, np.float32)
    for row, (ids, weights) in zip(found, vectors, strict=True):
        assert (weights > 0).all()
        assert (np.diff(weights) <= 0).all()
        row[ids] = weights
    return found


@pytest.mark.parametrize(("pooling", "activation"), KINDS)
def test_weights_are_those_of_numpy(make, reference, pooling, activation):
    encoder = make(pooling, activation=activation)
    expected = reference(encoder, TEXTS)
    assert 0.2 < (expected > 0).mean() < 0.9
    ids = encoder.preprocessor(TEXTS)
    np.testing.assert_allclose(encoder(ids), expected, atol=TOLERANCE)  # with padding
    vectors = encoder.predict(TEXTS, verbose=0)  # without
    np.testing.assert_allclose(dense(vectors), expected, atol=TOLERANCE)
    np.testing.assert_allclose(encoder.predict(ids, verbose=0), expected, atol=TOLERANCE)


@pytest.mark.parametrize("pooling", ["max", "sum"])
def test_a_row_of_only_padding_and_blocks_of_the_vocabulary(monkeypatch, pooling):
    monkeypatch.setattr("keras_bert_layers.layers.sparse_head._BLOCK", 4)
    embedding = kbl.layers.BertEmbedding(11, 6)
    hidden = embedding(np.arange(8).reshape(2, 4))
    mask = np.array([[1, 1, 0, 0], [0, 0, 0, 0]])
    head = kbl.layers.SparseHead(embedding, pooling=pooling, initializer_range=0.5)
    found = np.asarray(head(hidden, padding_mask=mask))
    assert found.shape == (2, 11)
    assert found[0].any()
    assert not found[1].any()
    alone = head(hidden[:1, :2], padding_mask=mask[:1, :2])
    np.testing.assert_allclose(found[:1], alone, atol=TOLERANCE)
    assert kbl.layers.SparseHead.from_config(head.get_config()).pooling == pooling


def test_predict(encoder, reference):
    expected = reference(encoder, TEXTS)
    vectors = encoder.predict(TEXTS, batch_size=2, verbose=0)
    assert (vectors.token_ids.dtype, vectors.weights.dtype) == (np.int32, np.float32)
    assert len(vectors.weights) == (expected > 0).sum()
    for row, found in zip(expected, encoder.predict_stream(TEXTS), strict=True):
        np.testing.assert_allclose(row[found[0]], found[1], atol=TOLERANCE)
    pairs = encoder.predict((TEXTS, OTHERS), verbose=0)
    np.testing.assert_allclose(pairs, (expected * reference(encoder, OTHERS)).sum(axis=1), atol=1e-4)
    ids, weights = encoder.predict("good film", verbose=0)
    np.testing.assert_allclose(expected[0][ids], weights, atol=TOLERANCE)
    assert encoder.predict([], verbose=0).shape == (0, len(expected[0]))
    assert encoder.predict(([], []), verbose=0).shape == (0,)


def test_only_one_batch_has_the_whole_vocabulary(encoder):
    rows = list(encoder.predictor.blocks(encoder.pipeline, TEXTS * 3, 2, verbose=0))
    assert [block.dtype for block in rows] == [object]
    assert all(len(ids) == len(weights) for ids, weights in rows[0])


@pytest.mark.usefixtures("traces_nothing")
def test_prompts_and_the_largest_weights(make, encoder, reference):
    vectors = encoder.encode_queries(["film"], verbose=0)
    np.testing.assert_allclose(dense(vectors), reference(encoder, ["good film"]), atol=TOLERANCE)
    documents = encoder.encode_documents(["night"], verbose=0)
    np.testing.assert_allclose(dense(documents), reference(encoder, ["film night"]), atol=TOLERANCE)
    np.testing.assert_allclose(encoder.similarity("film", ["night"]), vectors.scores(documents).T, atol=TOLERANCE)
    small = make(max_active_dims=3)
    whole = encoder.predict(TEXTS, verbose=0)
    for (ids, weights), (few, largest) in zip(whole, small.predict(TEXTS, verbose=0), strict=True):
        assert few.tolist() == ids[:3].tolist()
        np.testing.assert_allclose(largest, weights[:3], atol=TOLERANCE)
    assert small.answer(TEXTS)["token"].shape == (5, 3)
    small.max_active_dims = None
    assert len(small.predict(TEXTS, verbose=0).weights) == len(whole.weights)
    with pytest.raises(ValueError, match="`max_active_dims` must be"):
        small.max_active_dims = 0


class TestSparseVectors:
    generator = np.random.default_rng(2)
    matrix = np.round(generator.normal(size=(7, 13)).astype("float32"), 1).clip(0)  # with ties and a row of zeros
    matrix[4] = 0
    vectors = SparseVectors.of(list(sparse_rows(matrix)), 13)

    def test_a_sequence_of_pairs(self):
        np.testing.assert_array_equal(dense(self.vectors), self.matrix)
        assert (len(self.vectors), self.vectors.shape) == (7, (7, 13))
        np.testing.assert_array_equal(dense(self.vectors[2:5]), self.matrix[2:5])
        np.testing.assert_array_equal(dense(self.vectors[np.array([6, 0])]), self.matrix[[6, 0]])
        np.testing.assert_array_equal(self.vectors[-1][0], self.vectors[6][0])
        with pytest.raises(IndexError):
            self.vectors[7]

    def test_of_equal_weights_the_lower_id_comes_first(self):
        ((ids, weights),) = sparse_rows(np.array([[0.5, 2, 0, 2, 0.5, 1e-38]], "float32"), most=4)
        assert (ids.tolist(), weights.tolist()) == ([1, 3, 0, 4], [2, 2, 0.5, 0.5])

    def test_scores_and_search(self):
        queries = self.vectors[[4, 2, 6]]
        expected = self.matrix[[4, 2, 6]] @ self.matrix.T
        np.testing.assert_allclose(self.vectors.scores(queries), expected, atol=TOLERANCE)
        found = semantic_search(queries, self.vectors, top_k=2, query_chunk_size=1, corpus_chunk_size=3)
        best = np.argsort(-expected, axis=1, kind="stable")[:, :2]
        assert [[row["corpus_id"] for row in rows] for rows in found] == best.tolist()
        assert semantic_search(self.vectors[:0], self.vectors) == []
        with pytest.raises(TypeError, match="`query_embeddings` must be a SparseVectors"):
            semantic_search(self.matrix, self.vectors)
        with pytest.raises(ValueError, match="`queries` must have this `vocabulary_size`, 13"):
            self.vectors.scores(SparseVectors.of([], 12))

    def test_words(self, tokenizer):
        vectors = SparseVectors.of([(np.array([5, 500]), np.array([2.0, 0.5]))], 501)
        assert vectors.words(tokenizer) == [[(tokenizer.id_to_token(5), 2.0), ("", 0.5)]]


def flops(rows):
    return (rows.mean(axis=0) ** 2).sum()


def test_the_loss_and_its_penalty(make, reference):
    encoder = make(query_penalty=0.5, document_penalty=0.25, warmup_steps=4)
    encoder.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    first, second = reference(encoder, TEXTS), reference(encoder, OTHERS)
    logits = first @ second.T
    ranking = np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diag(logits))
    negatives = reference(encoder, [text for row in NEGATIVES for text in row])  # those that are there
    for step in range(6):
        logs = encoder.train_on_batch((TEXTS, OTHERS), return_dict=True)
        penalty = min(1, step / 4) ** 2 * (0.5 * flops(first) + 0.25 * flops(second))
        assert logs["loss"] - ranking == pytest.approx(penalty, abs=1e-4)
        encoder.reset_metrics()
    logs = encoder.test_on_batch((TEXTS, OTHERS, NEGATIVES), return_dict=True)
    documents = np.concatenate([second, negatives])
    assert logs["penalty"] == pytest.approx(0.5 * flops(first) + 0.25 * flops(documents), abs=1e-4)
    active = (np.concatenate([first, documents]) > 0).sum(axis=1).mean()
    assert logs["active_dims"] == pytest.approx(active)
    assert set(logs) == {"loss", "accuracy", "penalty", "active_dims"}
    # Similarities are compared with cosines.
    logs = encoder.test_on_batch((TEXTS, OTHERS), [0.5] * 5, return_dict=True)
    cosines = (first * second).sum(axis=1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    assert logs["mean_absolute_error"] == pytest.approx(np.abs(cosines - 0.5).mean(), abs=1e-5)


@pytest.mark.parametrize(
    ("loss", "negatives", "y"),
    [
        (kbl.losses.MarginMSE(), NEGATIVES, [[3, 1, 0], [2, 1], [1], [1, 0], [2, 2]]),
        (kbl.losses.MultipleNegativesRanking(1.0, normalize=False, mini_batch_size=3), None, None),
    ],
    ids=["margins", "mini-batches"],
)
@pytest.mark.usefixtures("traces_nothing")
def test_losses_of_vectors(make, loss, negatives, y):
    encoder = make(document_penalty=0.5, warmup_steps=0)
    x = (TEXTS, OTHERS) if negatives is None else (TEXTS, OTHERS, negatives)
    encoder.compile(keras.optimizers.Adam(1e-3), loss, run_eagerly=True)
    own = [encoder.train_on_batch(x, y, return_dict=True)["loss"] for _ in range(3)]
    assert own[2] < own[0]
    if negatives is None:  # the loss by default
        plain = make(document_penalty=0.5, warmup_steps=0)
        plain.compile(keras.optimizers.Adam(1e-3), run_eagerly=True)
        assert own[:1] == pytest.approx([plain.train_on_batch(x, y, return_dict=True)["loss"]], abs=1e-4)


def test_learns_to_search_with_few_weights(make, tmp_path):
    queries, documents = ["good", "bad", "night", "happy"] * 8, ["film .", "a !", "unhappy", "good a"] * 8
    encoder = make(query_penalty=0.02, document_penalty=0.02, warmup_steps=10)
    encoder.compile(keras.optimizers.Adam(0.01))
    history = encoder.fit((queries, documents), batch_size=8, epochs=12, verbose=0).history
    assert history["accuracy"][-1] == 1
    assert history["active_dims"][-1] < 0.75 * history["active_dims"][0]
    evaluator = RetrievalEvaluator(
        dict(enumerate(queries[:4])), dict(enumerate(documents[:4])), {row: {row: 1} for row in range(4)}
    )
    assert evaluator(encoder)["mrr@10"] == 1
    candidates = {row: [row, (row + 1) % 4] for row in range(4)}
    asked = RetrievalEvaluator(evaluator.queries, evaluator.documents, evaluator.judgements, candidates=candidates)
    scores = encoder.similarity(queries[:4], documents[:4])
    for row, found in asked.search(encoder).items():
        assert list(found) == candidates[row]
        assert list(found.values()) == pytest.approx(scores[row, candidates[row]].tolist(), abs=1e-5)
    with pytest.raises(TypeError, match="`encoder` must be an encoder of sentences"):
        mine_negatives(encoder, queries, documents, documents)
    # The warm-up goes on from where the optimizer is.
    encoder.save(tmp_path / "model.keras")
    again = kbl.load_task(tmp_path / "model.keras", "sparse_encoder")
    np.testing.assert_array_equal(again.predict(TEXTS, verbose=0).weights, encoder.predict(TEXTS, verbose=0).weights)
    assert again.get_config() == encoder.get_config()
    again.reset_metrics()
    assert next(metric for metric in again.metrics if metric.name == "penalty").steps == 48


@pytest.mark.usefixtures("traces_nothing")
def test_bfloat16(make, encoder):
    half = make(dtype="mixed_bfloat16")
    half.compile(run_eagerly=True)
    assert np.isfinite(half.train_on_batch((TEXTS, OTHERS))).all()
    weights = dense(make(dtype="bfloat16").predict(TEXTS, verbose=0))
    np.testing.assert_allclose(weights, dense(encoder.predict(TEXTS, verbose=0)), atol=0.1)


def hostile_texts(vocabulary, number):
    """Texts of words, of characters of all planes, and of names of special tokens."""
    generator = random.Random(7)
    pieces = [
        "",
        " ",
        "\t\r\n",
        "a" * 101,
        "中中",
        "[SEP]",
        "x[MASK]y",
        "[PAD]",
        "\0",
        "İ",
        "\u0301",
        "\u200b",
        "\ufffd",
    ]

    def piece():
        if (kind := generator.random()) < 0.5:
            return generator.choice(vocabulary[5:])
        if kind < 0.7:
            return generator.choice(pieces)
        return "".join(chr(generator.choice([*range(1, 0xD800), *range(0xE000, 0x20000)])) for _ in range(4))

    return [generator.choice(["", " "]).join(piece() for _ in range(generator.randrange(14))) for _ in range(number)]


@pytest.mark.usefixtures("traces_nothing")
def test_answers_without_any_weight(make):
    encoder = make()
    encoder.get_layer("masked_lm_head").bias.assign(np.full(encoder.output.shape[-1], -99.0))
    assert encoder.answer(TEXTS)["token"].shape == (5, 0)
    assert encoder.predict(TEXTS, verbose=0).words(encoder.preprocessor.tokenizer) == [[]] * 5
    assert not encoder.similarity(TEXTS, TEXTS).any()


@pytest.mark.usefixtures("traces_nothing")
def test_answers(encoder):
    answers = encoder.answer([*TEXTS, "[PAD] [SEP]"], batch_size=1)  # each with as many columns as it needs
    words = encoder.predict([*TEXTS, "[PAD] [SEP]"], verbose=0).words(encoder.preprocessor.tokenizer)
    for tokens, weights, own in zip(answers["token"], answers["weight"], words, strict=True):
        assert [token for token in tokens if token] == [word for word, _ in own]
        np.testing.assert_allclose(weights[: len(own)], [weight for _, weight in own], atol=TOLERANCE)
        assert not weights[len(own) :].any()
    by_name = {signature.name: signature.function for signature in encoder.signatures()}
    query = by_name["query"](tf.constant(["film"]))["weight"][0]
    np.testing.assert_allclose(query, encoder.encode_queries(["film"], verbose=0).weights, atol=TOLERANCE)
    assert by_name["serving_default"](tf.constant([""]))["token"].shape[0] == 1


def test_queries_that_no_encoder_reads(make, reference, vocabulary, tmp_path):
    encoder = make(query_weights="trained", query_penalty=0.5, document_penalty=0.0, prompts={"query": "film "})
    weights = np.random.default_rng(2).uniform(0, 2, len(vocabulary)).astype("float32")
    encoder.get_layer("masked_lm_head").queries.set_weights([weights])

    def looked_up(texts):
        rows = np.zeros((len(texts), len(weights)), np.float32)
        for row, text in zip(rows, texts, strict=True):
            ids = encoder.preprocessor.tokenizer.tokenize([f"film {text}"])[0].numpy()
            row[ids] = weights[ids]
        return rows

    def as_rows(vectors):
        return np.array([np.bincount(ids, own, len(weights)) for ids, own in vectors])

    texts, documents = [*TEXTS, "good good [PAD]"], reference(encoder, OTHERS)
    queries = encoder.encode_queries(texts, verbose=0)
    np.testing.assert_array_equal(as_rows(queries), looked_up(texts))
    by_name = {signature.name: signature.function for signature in encoder.signatures()}
    served = by_name["query"](tf.constant(texts))
    words = [[word for word, _ in row] for row in queries.words(encoder.preprocessor.tokenizer)]
    assert [[token.decode() for token in row if token] for row in served["token"].numpy()] == words
    # Without a prompt, the first texts of pairs are queries too.
    scores = encoder.predict(([f"film {text}" for text in TEXTS], OTHERS), verbose=0)
    np.testing.assert_allclose(scores, (looked_up(TEXTS) * documents).sum(axis=1), atol=1e-4)
    encoder.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    first = [f"film {text}" for text in TEXTS]
    logits = looked_up(TEXTS) @ documents.T
    expected = np.mean(np.log(np.exp(logits).sum(axis=1)) - np.diag(logits))
    logs = encoder.train_on_batch((first, OTHERS), return_dict=True)
    assert logs["loss"] == pytest.approx(expected, abs=1e-4)  # no penalty of queries
    changed = np.asarray(encoder.get_layer("masked_lm_head").queries.token_weights) != weights
    assert set(np.flatnonzero(changed)) <= set(np.flatnonzero(looked_up(TEXTS).any(axis=0)))
    assert changed.any()
    encoder.save(tmp_path / "x.keras")
    again = kbl.load_task(tmp_path / "x.keras")
    found = [as_rows(model.encode_queries(texts, verbose=0)) for model in (encoder, again)]
    np.testing.assert_array_equal(*found)


@pytest.mark.slow
def test_a_thousand_hostile_texts_through_the_saved_model(encoder, vocabulary, tmp_path):
    encoder.export(tmp_path / "model")
    served = tf.saved_model.load(str(tmp_path / "model")).signatures
    assert set(served) == {"serving_default", "token_ids", "tokenize", "query", "document"}
    texts = hostile_texts(vocabulary, 1000)
    found = served["serving_default"](text=tf.constant(texts))
    tokens, weights = found["token"].numpy(), found["weight"].numpy()
    vectors = encoder.predict(texts, verbose=0)
    counts = np.diff(vectors.row_starts)
    assert tokens.shape == weights.shape == (1000, counts.max())
    np.testing.assert_array_equal((weights > 0).sum(axis=1), counts)
    assert ((tokens != b"") == (weights > 0)).all()
    for row, own in enumerate(vectors.words(encoder.preprocessor.tokenizer)):
        np.testing.assert_allclose(weights[row, : counts[row]], [weight for _, weight in own], atol=TOLERANCE)
        gaps = -np.diff(weights[row, : counts[row] + 1])
        if (gaps > 1e-5).all():  # of equal weights the order is open
            assert [token.decode() for token in tokens[row, : counts[row]]] == [word for word, _ in own]
    ids = served["tokenize"](text=tf.constant(TEXTS))
    np.testing.assert_allclose(served["token_ids"](**ids)["weights"], encoder(ids), atol=TOLERANCE)
    assert served["serving_default"](text=tf.constant([], tf.string))["token"].shape == (0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling": "mean"}, r"`pooling` must be one of \['max', 'sum'\]"),
        ({"activation": "gelu"}, r"`weighting` must be one of \['relu', 'log1p_relu'\]"),
        ({"query_penalty": -1.0}, "`query_penalty` must be at least 0"),
        ({"document_penalty": 2.0}, "`document_penalty` must be at least 0 and at most 1"),
        ({"warmup_steps": -1}, "`warmup_steps` must"),
        ({"query_weights": "idf"}, r"`query_weights` must be one of \[None, 'trained', 'frozen'\]"),
        ({"default_prompt": "query"}, "`default_prompt` must be None or the name"),
    ],
    ids=str,
)
def test_errors(backbone, options, message):
    with pytest.raises(ValueError, match=message):
        BertSparseEncoder(backbone, **options)
