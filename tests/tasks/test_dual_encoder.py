import functools

import keras
import numpy as np
import pytest

from keras_bert_layers import BertDualEncoder, BertPreprocessor, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.graphs.heads import backbones_of

QUERIES = ["good", "a bad film ?", "night", "un", "happy night"]
DOCUMENTS = ["a good good film !", "bad", "night night . a night", "unhappy film .", "a happy ! happy night"]
NEGATIVES = [["night !", "!"], ["good film"], [], "a", ["? ? ?", "bad night"]]
ODD_TEXTS = ["", "\0 \t", b"\xff bad", "[SEP] [CLS] [MASK]", "\N{SNOWMAN} \U0001f600", "جيد", "good " * 4_000]
# Unit vectors in float32, summed in another order.
TOLERANCE = 1e-5
# A loss of cosines over 0.05 is 20 times as far off.
LOSS_TOLERANCE = 2e-4


@pytest.fixture(scope="module")
def make(new_backbone, tokenizer):
    """A function that makes two towers of different sizes; documents may be longer than queries."""
    preprocessor, document_preprocessor = (BertPreprocessor(tokenizer, max_length=size) for size in (5, 9))

    def make(**options):
        return BertDualEncoder(
            new_backbone(attention_dropout=0.1),
            new_backbone(seed=12, num_heads=5, intermediate_dim=17, attention_dropout=0.1),
            preprocessor=preprocessor,
            document_preprocessor=document_preprocessor,
            **options,
        )

    return make


@pytest.fixture(scope="module")
def encoder(make, trains_and_evaluates_eagerly):
    """One model for all tests of this file, which no test trains."""
    return trains_and_evaluates_eagerly(make())


@pytest.fixture(scope="module")
def embed(encoder):
    """Vectors of texts, computed one text at a time from the backbones."""

    @functools.cache
    def vector(text, side):
        backbone = encoder.backbone if side == "query" else encoder.document_backbone
        preprocessor = encoder.preprocessor if side == "query" else encoder.document_preprocessor
        row = np.asarray(backbone(preprocessor([text]))["sequence_output"])[0].mean(0)
        return row / np.linalg.norm(row)

    return lambda texts, side: np.array([vector(text, side) for text in texts])


@pytest.fixture(scope="module")
def served(encoder, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    encoder.export(path)
    return tf.saved_model.load(str(path)).signatures


@pytest.fixture(scope="module")
def trained(make, trains_and_evaluates_eagerly):
    encoder = make(symmetric=True)
    encoder.compile(optimizer=keras.optimizers.Adam(3e-3))
    poolers = [np.asarray(part.get_layer("pooler").weights[0]) for part in backbones_of(encoder)]
    columns = (QUERIES * 12, DOCUMENTS * 12, NEGATIVES * 12)
    history = encoder.fit(columns, epochs=3, batch_size=5, shuffle=False, verbose=0).history
    return trains_and_evaluates_eagerly(encoder), history, poolers


def cross_entropy(logits):
    return np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)


def test_each_side_has_its_own_vectors(encoder, embed):
    queries, documents = embed(QUERIES, "query"), embed(DOCUMENTS, "document")
    for method, texts, expected in [
        (encoder.encode_queries, QUERIES, queries),
        (encoder.encode_documents, DOCUMENTS, documents),
        (encoder.predict, QUERIES, queries),
    ]:
        vectors = method(texts, batch_size=2, verbose=0)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, expected, atol=TOLERANCE)
    assert np.abs(embed(QUERIES, "document") - queries).max() > 0.1


def test_pairs_give_scores(encoder, embed):
    expected = np.sum(embed(QUERIES, "query") * embed(DOCUMENTS, "document"), axis=1)
    np.testing.assert_allclose(encoder.predict((QUERIES, DOCUMENTS), batch_size=3, verbose=0), expected, atol=TOLERANCE)
    np.testing.assert_allclose(encoder.predict_on_batch((QUERIES, DOCUMENTS)), expected, atol=TOLERANCE)
    np.testing.assert_allclose(encoder.predict_on_batch(QUERIES), embed(QUERIES, "query"), atol=TOLERANCE)


def test_no_texts(encoder):
    assert encoder.encode_documents([], verbose=0).shape == encoder.predict([], verbose=0).shape == (0, 15)
    assert encoder.predict(([], []), verbose=0).shape == (0,)


def test_any_order_of_lengths_and_a_progress_bar(encoder, embed, capsys):
    texts = ["night", "", "a good film . a bad film", "good", "unhappy night !", "film"]
    vectors = encoder.encode_documents(np.array(texts), batch_size=4)
    np.testing.assert_allclose(vectors, embed(texts, "document"), atol=TOLERANCE)
    assert "6/6" in capsys.readouterr().out


def test_ids_of_both_sides(encoder, embed, monkeypatch):
    monkeypatch.setattr(encoder, "run_eagerly", True)  # quicker than a graph of both towers
    ids = {
        "query": encoder.preprocessor(QUERIES),
        "document": encoder.document_preprocessor(DOCUMENTS),
    }
    found = encoder.predict(ids, verbose=0)
    np.testing.assert_allclose(found["document"], embed(DOCUMENTS, "document"), atol=TOLERANCE)
    logits = embed(QUERIES, "query") @ embed(DOCUMENTS, "document").T / 0.05
    encoder.reset_metrics()
    result = encoder.test_on_batch(ids, return_dict=True)
    assert result["loss"] == pytest.approx(np.mean(cross_entropy(logits)), abs=LOSS_TOLERANCE)


def test_loss_with_negatives_and_weights(encoder, embed):
    columns = (
        tf.constant(QUERIES),
        tf.constant(DOCUMENTS),
        tf.ragged.constant([[n] if isinstance(n, str) else n for n in NEGATIVES]).to_tensor(""),
    )
    weights = np.array([1.0, 0.5, 2.0, 0.0, 1.0])
    dataset = tf.data.Dataset.from_tensors((columns, None, tf.constant(weights, tf.float32)))
    result = encoder.evaluate(dataset, verbose=0, return_dict=True)
    names = DOCUMENTS + [text for row in NEGATIVES for text in ([row] if isinstance(row, str) else row)]
    logits = embed(QUERIES, "query") @ embed(names, "document").T / 0.05
    assert result["loss"] == pytest.approx(np.mean(weights * cross_entropy(logits)), abs=LOSS_TOLERANCE)
    assert result["accuracy"] == pytest.approx(np.mean(logits.argmax(axis=1) == np.arange(5)), abs=TOLERANCE)


def test_a_right_answer_is_never_a_wrong_one(encoder, embed):
    """Rows 0 and 2 share a document, and rows 0 and 1 a query, whose right answers are thus both documents."""
    queries, documents = ["good", "good", "film", "night"], ["a film", "bad", "a film", "night !"]
    logits = embed(queries, "query") @ embed(documents, "document").T / 0.05
    left_out = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0)]
    logits[tuple(zip(*left_out, strict=True))] = -np.inf
    encoder.reset_metrics()
    result = encoder.test_on_batch((queries, documents), return_dict=True)
    assert result["loss"] == pytest.approx(np.mean(cross_entropy(logits)), abs=LOSS_TOLERANCE)


@pytest.mark.slow
def test_training_in_both_directions(trained, embed):
    encoder, history, _ = trained
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    assert history["accuracy"][-1] > 0.7
    queries = encoder.encode_queries(QUERIES, verbose=0)
    documents = encoder.encode_documents(DOCUMENTS, verbose=0)
    logits = queries @ documents.T / 0.05
    expected = np.mean([cross_entropy(logits), cross_entropy(logits.T)])
    found = encoder.evaluate((QUERIES, DOCUMENTS), verbose=0, return_dict=True)
    assert found["loss"] == pytest.approx(expected, abs=LOSS_TOLERANCE)


@pytest.mark.slow
def test_training_leaves_the_poolers_alone(trained):
    encoder, _, before = trained
    for backbone, weights in zip(backbones_of(encoder), before, strict=True):
        np.testing.assert_array_equal(backbone.get_layer("pooler").weights[0], weights)


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_keras_round_trip_of_two_towers(trained, tmp_path):
    encoder, _, _ = trained
    encoder.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == encoder.get_config()
    np.testing.assert_array_equal(
        again.predict_on_batch((QUERIES, DOCUMENTS)), encoder.predict_on_batch((QUERIES, DOCUMENTS))
    )


@pytest.mark.slow
@pytest.mark.usefixtures("traces_nothing")
def test_one_tower(new_backbone, vocabulary, tmp_path):
    """Under bfloat16, with one step of training."""
    backbone = new_backbone(seed=13, dtype="mixed_bfloat16", attention_dropout=0.1)
    preprocessor = BertPreprocessor(BertTokenizer(vocabulary), max_length=9)
    encoder = BertDualEncoder(backbone, backbone, normalize=False, preprocessor=preprocessor)
    assert encoder.temperature == 1.0
    assert encoder.document_backbone is None
    encoder.compile(run_eagerly=True)  # less work than a trace, for one step
    assert np.isfinite(encoder.train_on_batch((QUERIES, DOCUMENTS))).all()
    encoder.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    vectors = again.answer(QUERIES)["embedding"]
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, encoder.encode_documents(QUERIES, verbose=0))
    assert again.count_params() == again.backbone.count_params()


def test_export(encoder, served, embed, eagerly):
    expected = {"query": embed(QUERIES, "query"), "document": embed(QUERIES, "document")}
    for name, side in [("serving_default", "query"), ("query", "query"), ("document", "document")]:
        np.testing.assert_allclose(
            served[name](text=tf.constant(QUERIES))["embedding"], expected[side], atol=TOLERANCE, err_msg=name
        )
        assert served[name](text=tf.constant(["a" * 100_003]))["bytes_cut"].numpy().tolist() == [3]
    for prefix, side in [("", "query"), ("document_", "document")]:
        ids = served[f"{prefix}tokenize"](text=tf.constant(QUERIES))
        found = served[f"{prefix}token_ids"](**ids)["embedding"]
        np.testing.assert_allclose(found, expected[side], atol=TOLERANCE, err_msg=side)
    with eagerly():
        answer = encoder.answer(QUERIES)
    np.testing.assert_allclose(answer["embedding"], expected["query"], atol=TOLERANCE)


def test_without_preprocessor(encoder):
    names = [signature.name for signature in BertDualEncoder(encoder.backbone).signatures()]
    assert names == ["token_ids", "document_token_ids"]


@pytest.mark.parametrize("side", ["query", "document"])
def test_a_text_has_the_same_vector_alone_and_in_a_batch(encoder, served, side):
    together = served[side](text=tf.constant(ODD_TEXTS))["embedding"].numpy()
    alone = [served[side](text=tf.constant([text]))["embedding"].numpy()[0] for text in ODD_TEXTS]
    np.testing.assert_allclose(together, alone, atol=TOLERANCE)
    encode = encoder.encode_queries if side == "query" else encoder.encode_documents
    np.testing.assert_allclose(encode(ODD_TEXTS, batch_size=3, verbose=0), together, atol=TOLERANCE)


class TestErrors:
    def test_single_texts(self, encoder):
        with pytest.raises(
            ValueError, match="`x` must be a tuple of queries, documents and, if there are any, negatives"
        ):
            encoder.fit(QUERIES)

    def test_labels(self, encoder):
        with pytest.raises(ValueError, match=r"`y` must be None. .*`\(\(queries, documents\),\)`"):
            encoder.fit((QUERIES, DOCUMENTS), [1, 0, 1, 0, 1])

    def test_validation_data_that_are_taken_for_labels(self, encoder):
        with pytest.raises(ValueError, match=r"`y` must be None. .*`\(\(queries, documents\),\)`"):
            encoder.fit((QUERIES, DOCUMENTS), validation_data=(QUERIES, DOCUMENTS))

    def test_dataset_whose_documents_are_taken_for_labels(self, encoder):
        with pytest.raises(ValueError, match="`y` must be None."):
            encoder.fit(tf.data.Dataset.from_tensor_slices((QUERIES, DOCUMENTS)).batch(2))

    @pytest.mark.parametrize("method", ["predict", "predict_on_batch"])
    def test_negatives_have_no_answer(self, encoder, method):
        with pytest.raises(ValueError, match="`x` must be texts or pairs of texts. Received: x='a tuple of 3'"):
            getattr(encoder, method)((QUERIES, DOCUMENTS, NEGATIVES))

    @pytest.mark.parametrize("method", ["encode_queries", "encode_documents"])
    def test_encode(self, encoder, method):
        encode = getattr(encoder, method)
        with pytest.raises(ValueError, match="`x` must be single texts. Received: x='a tuple'"):
            encode((QUERIES, DOCUMENTS))
        with pytest.raises(ValueError, match="`batch_size` must be at least 1"):
            encode(QUERIES, batch_size=0)
        assert encode("good", verbose=0).shape == encode(["good"], verbose=0)[0].shape
        with pytest.raises(ValueError, match="`preprocessor` must be given for raw text"):
            getattr(BertDualEncoder(encoder.backbone), method)(QUERIES)

    def test_widths(self, encoder, new_backbone):
        with pytest.raises(ValueError, match=r"`document_backbone` must have the other backbone's `hidden_dim` \(15\)"):
            BertDualEncoder(encoder.backbone, new_backbone(hidden_dim=18))

    def test_parts(self, encoder):
        with pytest.raises(TypeError, match="`document_backbone` must be a BertBackbone or None"):
            BertDualEncoder(encoder.backbone, "bert")
        with pytest.raises(TypeError, match="`document_preprocessor` must be a BertPreprocessor beside `preprocessor`"):
            BertDualEncoder(encoder.backbone, document_preprocessor=encoder.preprocessor)
        long = BertPreprocessor(encoder.preprocessor.tokenizer, max_length=14)
        with pytest.raises(ValueError, match=r"`max_sequence_length` \(13\). Received: preprocessor.max_length=14"):
            BertDualEncoder(encoder.backbone, preprocessor=encoder.preprocessor, document_preprocessor=long)

    def test_numbers(self, encoder):
        with pytest.raises(ValueError, match="`temperature` must be greater than 0. Received: temperature=-1"):
            BertDualEncoder(encoder.backbone, temperature=-1)
        for argument in ("normalize", "symmetric"):
            with pytest.raises(TypeError, match=f"`{argument}` must be True or False. Received: {argument}=2"):
                BertDualEncoder(encoder.backbone, **{argument: 2})
