import json

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers import BertBackbone, BertClassifier, BertConfig, BertStaticEncoder
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks import StaticBackbone

TEXTS = ["good film", "bad film , a bad night", "night", "unhappy"]
OTHERS = ["a good night", "film", "night", "happy"]
SCORES = [0.75, -0.5, 1.0, 0.0]
ODD_TEXTS = ["", "\0 \t", b"\xff bad", "[SEP] [CLS] [MASK]", "\N{SNOWMAN} \U0001f600", "جيد", "good " * 4_000]
# Unit vectors in float32, summed in another order.
TOLERANCE = 1e-5
# bfloat16 has 8 bits of precision.
BFLOAT16_TOLERANCE = 2e-2
LABELS = ["yes", "no", "no", "no"]


def make(preprocessor, **options):
    keras.utils.set_random_seed(5)
    return BertStaticEncoder(
        StaticBackbone(preprocessor.tokenizer.vocabulary_size(), 6), preprocessor=preprocessor, **options
    )


@pytest.fixture(scope="module")
def encoder(preprocessor, trains_and_evaluates_eagerly):
    """One model for all tests of this file, which no test trains."""
    return trains_and_evaluates_eagerly(make(preprocessor))


@pytest.fixture(scope="module")
def embed(encoder):
    """Vectors of texts by NumPy."""
    table = np.asarray(encoder.backbone.weights[0])

    def embed(texts):
        ids = [encoder.preprocessor([text])["token_ids"][0].numpy() for text in texts]
        means = np.array([table[row].mean(axis=0) for row in ids])
        return means / np.linalg.norm(means, axis=-1, keepdims=True)

    return embed


@pytest.fixture(scope="module")
def served(encoder, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    encoder.export(path)
    return path, tf.saved_model.load(str(path)).signatures


def test_predict(encoder, embed):
    vectors = encoder.predict(TEXTS, verbose=0)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, embed(TEXTS), atol=TOLERANCE)
    np.testing.assert_allclose(encoder.predict(TEXTS, batch_size=3, verbose=0), vectors, atol=TOLERANCE)
    np.testing.assert_allclose(list(encoder.predict_stream(iter(TEXTS))), vectors, atol=TOLERANCE)
    np.testing.assert_allclose(encoder(encoder.preprocessor(TEXTS)), vectors, atol=TOLERANCE)
    assert encoder.predict([], verbose=0).shape == (0, 6)


def test_pairs_give_cosines(encoder, embed):
    expected = np.sum(embed(TEXTS) * embed(OTHERS), axis=1)
    np.testing.assert_allclose(encoder.predict((TEXTS, OTHERS), verbose=0), expected, atol=TOLERANCE)
    np.testing.assert_allclose(encoder.similarity(TEXTS, OTHERS), embed(TEXTS) @ embed(OTHERS).T, atol=TOLERANCE)
    with pytest.raises(ValueError, match=r"`BertStaticEncoder`: `x` must be texts, or vectors \(rows, 6\)"):
        encoder.similarity(TEXTS, np.ones((2, 3)))


def test_losses_of_pairs(encoder, embed):
    cosines = np.sum(embed(TEXTS) * embed(OTHERS), axis=1)
    result = encoder.test_on_batch((TEXTS, OTHERS), SCORES, return_dict=True)
    assert set(result) == {"loss", "mean_absolute_error", "spearman_correlation"}
    assert result["loss"] == pytest.approx(np.mean((cosines - SCORES) ** 2), abs=TOLERANCE)
    assert set(encoder.test_on_batch((TEXTS, OTHERS), return_dict=True)) == {"loss", "accuracy"}


def test_without_normalize(preprocessor, encoder):
    plain = BertStaticEncoder(encoder.backbone, normalize=False, preprocessor=preprocessor)
    means = np.asarray(encoder.backbone(preprocessor(TEXTS))["pooled_output"])
    np.testing.assert_allclose(plain.predict(TEXTS, verbose=0), means, atol=TOLERANCE)


@pytest.mark.slow
def test_learns_and_round_trips(preprocessor, trains_and_evaluates_eagerly, tmp_path):
    """By default with a rate that suits a table; all that is learned is in the file."""
    encoder = trains_and_evaluates_eagerly(make(preprocessor))
    assert float(encoder.optimizer.learning_rate) == pytest.approx(1e-3)
    before = np.asarray(encoder.backbone.weights[0])
    history = encoder.fit((TEXTS, OTHERS), SCORES, epochs=3, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    targets = np.eye(4, 6, dtype="float32")
    assert np.isfinite(encoder.train_on_batch(TEXTS, targets)).all()
    assert np.isfinite(encoder.train_on_batch((TEXTS, OTHERS, TEXTS[::-1]))).all()
    assert not np.array_equal(before, encoder.backbone.weights[0])
    encoder.save(tmp_path / "x.keras")
    again = keras.models.load_model(tmp_path / "x.keras")
    assert type(again) is BertStaticEncoder
    assert again.get_config() == encoder.get_config()
    np.testing.assert_array_equal(again.predict(TEXTS, verbose=0), encoder.predict(TEXTS, verbose=0))


def test_export(encoder, served, embed):
    path, signatures = served
    found = signatures["serving_default"](text=tf.constant(TEXTS))["embedding"]
    np.testing.assert_allclose(found, embed(TEXTS), atol=TOLERANCE)
    ids = signatures["tokenize"](text=tf.constant(TEXTS))
    np.testing.assert_allclose(signatures["token_ids"](**ids)["embedding"], embed(TEXTS), atol=TOLERANCE)
    np.testing.assert_allclose(encoder.answer(TEXTS)["embedding"], embed(TEXTS), atol=TOLERANCE)
    facts = json.loads((path / "model_card.json").read_text()) if (path / "model_card.json").exists() else None
    assert facts is None or facts["backbone"] == {"vocabulary_size": 18, "hidden_dim": 6}


def test_odd_texts_alone_and_in_a_batch(encoder, served):
    together = served[1]["serving_default"](text=tf.constant(ODD_TEXTS))["embedding"].numpy()
    alone = [served[1]["serving_default"](text=tf.constant([text]))["embedding"].numpy()[0] for text in ODD_TEXTS]
    assert np.isfinite(together).all()
    np.testing.assert_allclose(together, alone, atol=TOLERANCE)


def test_export_in_bfloat16(encoder, embed, tmp_path):
    encoder.export(tmp_path / "half", dtype="bfloat16", warm_up=False)
    signatures = tf.saved_model.load(str(tmp_path / "half")).signatures
    found = signatures["serving_default"](text=tf.constant(TEXTS))["embedding"]
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, embed(TEXTS), atol=BFLOAT16_TOLERANCE)


class TestClassifier:
    """`BertClassifier` on the table of a static encoder."""

    @pytest.mark.usefixtures("traces_nothing")
    def test_learns_answers_and_round_trips(self, preprocessor, train_eagerly, tmp_path):
        encoder = make(preprocessor)
        classifier = BertClassifier(encoder.backbone, class_names=["no", "yes"], preprocessor=preprocessor)
        classifier.compile(optimizer=keras.optimizers.Adam(0.1))
        train_eagerly(classifier, TEXTS, LABELS, steps=20)
        assert classifier.answer(TEXTS)["label"].tolist() == LABELS
        head = classifier.get_layer("classification_head").weights
        means = np.asarray(encoder.backbone(preprocessor(TEXTS))["pooled_output"])
        expected = means @ np.asarray(head[0]) + np.asarray(head[1])
        np.testing.assert_allclose(classifier.predict(TEXTS, verbose=0), expected, atol=10 * TOLERANCE)
        classifier.save(tmp_path / "x.keras")
        again = keras.models.load_model(tmp_path / "x.keras")
        np.testing.assert_array_equal(again.predict(TEXTS, verbose=0), classifier.predict(TEXTS, verbose=0))

    def test_export(self, encoder, preprocessor, tmp_path):
        classifier = BertClassifier(encoder.backbone, class_names=["no", "yes"], preprocessor=preprocessor)
        classifier.export(tmp_path / "model", warm_up=False)
        found = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"](text=tf.constant(TEXTS))
        assert found["label"].numpy().astype(str).tolist() == classifier.predict_labels(TEXTS).tolist()


class TestErrors:
    def test_backbone(self, preprocessor):
        config = BertConfig(vocabulary_size=18, hidden_dim=4, num_layers=1, num_heads=2, intermediate_dim=4)
        with pytest.raises(TypeError, match=r"`backbone` must be a StaticBackbone.*`distill_static` makes one"):
            BertStaticEncoder(BertBackbone(config), preprocessor=preprocessor)

    def test_vocabulary(self, preprocessor):
        with pytest.raises(ValueError, match=r"must be at most the backbone's `vocabulary_size` \(4\)"):
            BertStaticEncoder(StaticBackbone(4, 6), preprocessor=preprocessor)

    def test_normalize_and_temperature(self, encoder):
        with pytest.raises(TypeError, match="`normalize` must be True or False"):
            BertStaticEncoder(encoder.backbone, normalize="no")
        with pytest.raises(ValueError, match="`temperature` must be greater than 0"):
            BertStaticEncoder(encoder.backbone, temperature=0)

    @pytest.mark.parametrize("of_classifier", [True, False])
    def test_onnx(self, encoder, preprocessor, tmp_path, of_classifier):
        task = BertClassifier(encoder.backbone, 2, preprocessor=preprocessor) if of_classifier else encoder
        with pytest.raises(ValueError, match=r"of a BertBackbone, in an ONNX file with strings.*Export a SavedModel"):
            task.export(tmp_path / "x.onnx", format="onnx")

    def test_checkpoints(self, encoder, tmp_path):
        from keras_bert_layers import save_huggingface

        with pytest.raises(TypeError, match="`save_huggingface`: `model` must be one of"):
            save_huggingface(encoder, tmp_path / "x")
        with pytest.raises(TypeError, match=r"`model.backbone` must be a BertBackbone.*Save a `.keras` file"):
            save_huggingface(BertClassifier(encoder.backbone, 2), tmp_path / "x")


def test_what_needs_an_encoder_refuses_a_table(preprocessor):
    backbone = kbl.tasks.StaticBackbone(len(preprocessor.tokenizer.get_config()["vocabulary"]), 4)
    classifier = kbl.BertClassifier(backbone, 2, preprocessor=preprocessor)
    asked = {
        "`backbone` must be a BertBackbone": [
            lambda: kbl.BertClassifier(backbone, 2, pooling="mean"),
            lambda: classifier.attribute(["a film"]),
            lambda: kbl.tasks.distill(classifier, classifier, ["a film"]),
        ],
        "`model` must be a BertBackbone": [lambda: kbl.tasks.Features(classifier)],
        "`model` must be a task of a BertBackbone": [
            lambda: kbl.tasks.reduce_layers(classifier, 1),
            lambda: kbl.tasks.reinitialize_layers(classifier, 0),
        ],
        "`model` must be a task or a BertBackbone": [lambda: kbl.optimizers.layer_wise_rates(classifier)],
        "`model.backbone` must be a BertBackbone": [lambda: kbl.tasks.GradualUnfreezing().set_model(classifier)],
    }
    for message, calls in asked.items():
        for call in calls:
            with pytest.raises(TypeError, match=message):
                call()
