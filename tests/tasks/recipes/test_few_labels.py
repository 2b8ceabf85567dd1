"""Few labels: pairs and the regression beside references, the trained classifier, and entailment as labels."""

import keras
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from keras_bert_layers import BertClassifier, BertSentenceEncoder, load_task
from keras_bert_layers.tasks import few_shot_classifier, zero_shot
from keras_bert_layers.tasks.labels.calibration import sigmoid, softmax
from keras_bert_layers.tasks.recipes.few_labels import _pairs, _regression

TEXTS = ["good film", "good", "a good film", "good !", "bad", "bad night", "a bad night !", "unhappy night"]
LABELS = ["praise"] * 4 + ["blame"] * 4
LABEL_SETS = [["praise", "film"], ["praise"], ["praise", "film"], ["praise"], ["blame"], ["blame"], ["blame"], []]
RELATIONS = ["Contradiction", "neutral", "ENTAILMENT"]
# scikit-learn stops at a gradient of 1e-4 of its mean loss, ours at one of the sum.
REGRESSION_TOLERANCE = 5e-3
# The same float32 sums in another order.
TOLERANCE = 1e-5
# Six float32 blocks in two libraries, and a softmax.
PEER_TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def make_encoder(new_backbone, preprocessor):
    def make_encoder(**options):
        backbone = new_backbone(hidden_dim=30, dropout=0.1, attention_dropout=0.1)
        return BertSentenceEncoder(backbone, **{"preprocessor": preprocessor, **options})

    return make_encoder


@pytest.fixture(scope="module")
def encoder(make_encoder):
    return make_encoder()


@pytest.fixture(scope="module")
def trained(encoder):
    """Few-shot training of the shared encoder, whose weights before it are kept."""
    encoder.weights_before = encoder.get_weights()
    return few_shot_classifier(encoder, TEXTS, LABELS, num_pairs=160, learning_rate=1e-2, batch_size=8, seed=3)


@pytest.fixture(scope="module")
def vectors():
    vectors = np.random.default_rng(1).normal(size=(40, 11))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def classifier(new_backbone, preprocessor):
    """A classifier of relations, for zero-shot classification."""
    return BertClassifier(new_backbone(), class_names=RELATIONS, preprocessor=preprocessor)


class TestPairs:
    def test_half_are_alike_and_none_is_of_one_text(self):
        members = np.eye(3, dtype=bool)[[0, 0, 1, 2, 1, 0, 2]]
        first, second, alike = _pairs(members, 700, np.random.default_rng(0))
        assert len(first) == 700
        assert (first != second).all()
        assert alike.sum() == 350
        np.testing.assert_array_equal((members[first] & members[second]).any(axis=1), alike)
        assert set(np.bincount(first)) == {100}
        assert len(set(zip(first, second, strict=True))) == 42  # all ordered pairs of seven texts

    def test_texts_without_a_partner_are_in_fewer_pairs(self):
        members = np.array([[1, 0], [1, 1], [0, 1], [0, 0], [1, 1]], bool)  # the fourth is like no other
        first, second, alike = _pairs(members, 400, np.random.default_rng(0))
        assert 300 < len(first) < 400
        np.testing.assert_array_equal((members[first] & members[second]).any(axis=1), alike)
        assert not alike[(first == 3) | (second == 3)].any()

    @pytest.mark.parametrize("classes", [[0, 0, 0], [0, 1, 2]], ids=["one class", "no two of one"])
    def test_both_kinds_of_pairs_are_needed(self, classes):
        with pytest.raises(ValueError, match="at least two classes, and two texts of one. Received: labels=3 texts of"):
            _pairs(np.eye(3, dtype=bool)[classes], 30, np.random.default_rng(0))


class TestRegression:
    def test_of_one_label(self, vectors):
        labels = (vectors @ np.random.default_rng(2).normal(size=(11, 3))).argmax(axis=1)
        weights = _regression(vectors, np.eye(3)[labels], softmax)
        expected = LogisticRegression(tol=1e-8, max_iter=1000).fit(vectors, labels)
        np.testing.assert_allclose(weights[:-1], expected.coef_.T, atol=REGRESSION_TOLERANCE)
        bias = weights[-1] - weights[-1].mean()  # a number added to all is the same
        np.testing.assert_allclose(bias, expected.intercept_ - expected.intercept_.mean(), atol=REGRESSION_TOLERANCE)

    def test_of_two_classes(self, vectors):
        """The difference of the two kernels is scikit-learn's one kernel."""
        labels = vectors @ np.random.default_rng(2).normal(size=11) > 0.3
        weights = _regression(vectors, np.eye(2)[labels.astype(int)], softmax)
        expected = LogisticRegression(tol=1e-8, max_iter=1000).fit(vectors, labels)
        np.testing.assert_allclose(weights[:-1, 1] - weights[:-1, 0], expected.coef_[0], atol=REGRESSION_TOLERANCE)
        np.testing.assert_allclose(weights[-1, 1] - weights[-1, 0], expected.intercept_[0], atol=REGRESSION_TOLERANCE)
        probabilities = softmax(vectors @ weights[:-1] + weights[-1])
        np.testing.assert_allclose(probabilities, expected.predict_proba(vectors), atol=REGRESSION_TOLERANCE)

    def test_of_several_labels(self, vectors):
        columns = vectors @ np.random.default_rng(2).normal(size=(11, 2)) > [0.1, 0.3]
        weights = _regression(vectors, columns, sigmoid)
        for index, column in enumerate(columns.T):
            expected = LogisticRegression(tol=1e-8, max_iter=1000).fit(vectors, column)
            np.testing.assert_allclose(weights[:-1, index], expected.coef_[0], atol=REGRESSION_TOLERANCE)
            np.testing.assert_allclose(weights[-1, index], expected.intercept_[0], atol=REGRESSION_TOLERANCE)


class TestFewShot:
    @pytest.mark.usefixtures("traces_nothing")
    def test_it_learns(self, trained, encoder):
        assert trained.class_names == ["blame", "praise"]
        assert list(trained.predict_labels(TEXTS)) == LABELS
        vectors = BertSentenceEncoder(trained.backbone, preprocessor=trained.preprocessor)

        def gap(model):
            cosines = model.similarity(TEXTS, TEXTS)
            return cosines[:4, :4].mean() - cosines[:4, 4:].mean()

        assert gap(vectors) > gap(encoder) + 0.2

    def test_the_encoder_stays_as_it_is(self, trained, encoder):
        for before, after in zip(encoder.weights_before, encoder.get_weights(), strict=True):
            np.testing.assert_array_equal(before, after)

    @pytest.mark.usefixtures("traces_nothing")
    def test_the_head_is_the_regression_on_the_vectors(self, trained):
        model = BertSentenceEncoder(trained.backbone, preprocessor=trained.preprocessor)
        vectors = model.predict(TEXTS, verbose=0)
        expected = LogisticRegression(tol=1e-8).fit(vectors, LABELS).predict_proba(vectors)
        np.testing.assert_allclose(trained.answer(TEXTS)["probabilities"], expected, atol=REGRESSION_TOLERANCE)

    @pytest.mark.slow
    @pytest.mark.usefixtures("traces_nothing")
    def test_the_seed_decides(self, encoder):
        def outputs(seed, global_seed):
            keras.utils.set_random_seed(global_seed)  # which must not matter
            options = {"num_pairs": 24, "learning_rate": 1e-2, "batch_size": 8}
            return few_shot_classifier(encoder, TEXTS, LABELS, seed=seed, **options).predict(TEXTS, verbose=0)

        expected = outputs(3, 1)
        np.testing.assert_array_equal(outputs(3, 2), expected)
        assert np.abs(outputs(4, 1) - expected).max() > TOLERANCE

    @pytest.mark.slow
    def test_saved_and_exported(self, trained, tmp_path):
        expected = trained.answer(TEXTS)
        trained.save(tmp_path / "model.keras")
        again = load_task(tmp_path / "model.keras")
        np.testing.assert_array_equal(again.predict(TEXTS, verbose=0), trained.predict(TEXTS, verbose=0))
        served = keras.layers.TFSMLayer(trained.export(tmp_path / "served"), call_endpoint="serving_default")
        answers = served(np.array(TEXTS))
        np.testing.assert_allclose(answers["probabilities"], expected["probabilities"], atol=TOLERANCE)
        assert [label.decode() for label in np.array(answers["label"])] == list(expected["label"])

    @pytest.mark.usefixtures("traces_nothing")
    def test_integers_and_only_the_head(self, make_encoder):
        encoder = make_encoder(pooling=["max", "cls"], normalize=False)
        model = few_shot_classifier(encoder, np.array(TEXTS), [2] * 4 + [0] * 4, num_pairs=0)
        assert (model.class_names, model.num_classes) == (None, 3)
        assert (model.pooling, model.normalize) == (("max", "cls"), False)
        assert model.predict_labels(TEXTS).tolist() == [2] * 4 + [0] * 4
        for before, after in zip(encoder.get_weights(), model.backbone.get_weights(), strict=False):
            np.testing.assert_array_equal(before, after)

    @pytest.mark.usefixtures("traces_nothing")
    @pytest.mark.parametrize("as_columns", [False, True])
    def test_several_labels(self, encoder, as_columns):
        names = sorted({name for labels in LABEL_SETS for name in labels})
        labels = [[float(name in labels) for name in names] for labels in LABEL_SETS] if as_columns else LABEL_SETS
        options = {"problem_type": "multi_label_classification", "num_pairs": 0}
        model = few_shot_classifier(encoder, TEXTS, labels, **options)
        assert model.class_names == (None if as_columns else names)
        columns = np.array([[name in labels for name in names] for labels in LABEL_SETS])
        vectors = encoder.predict(TEXTS, verbose=0)
        expected = [
            LogisticRegression(tol=1e-8).fit(vectors, column).predict_proba(vectors)[:, 1] for column in columns.T
        ]
        found = model.answer(TEXTS)["probabilities"]
        np.testing.assert_allclose(found, np.transpose(expected), atol=REGRESSION_TOLERANCE)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"projection_dim": 5}, r"`encoder\.projection_dim` must be None\. Received: .*=5"),
            ({"truncate_dim": 5}, r"`encoder\.truncate_dim` must be None"),
            ({"prompts": {"query": "film "}, "default_prompt": "query"}, r"`encoder\.default_prompt` must be None"),
            ({"preprocessor": None}, "`BertSentenceEncoder`: `preprocessor` must be given for raw text"),
        ],
        ids=str,
    )
    def test_encoders_that_it_refuses(self, make_encoder, options, message):
        with pytest.raises(ValueError, match=message):
            few_shot_classifier(make_encoder(**options), TEXTS, LABELS)

    def test_an_encoder_with_lora(self, make_encoder):
        encoder = make_encoder()
        encoder.backbone.enable_lora(2)
        with pytest.raises(ValueError, match=r"`encoder\.backbone\.lora_rank` must be None"):
            few_shot_classifier(encoder, TEXTS, LABELS)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"problem_type": "regression"}, "`problem_type` must be one of"),
            ({"num_pairs": -1}, "`num_pairs` must be at least 0"),
            ({"batch_size": 0}, "`batch_size` must be at least 1"),
            ({"class_names": ["praise", "neither"]}, "every label must be one of .*'blame' in row 4"),
            ({"labels": LABELS[:-1]}, "`y` must have one row for each text"),
            ({"labels": ["praise"] * 8}, "`num_classes` must be at least 2"),
        ],
        ids=str,
    )
    def test_arguments_that_it_refuses(self, encoder, options, message):
        with pytest.raises(ValueError, match=message):
            few_shot_classifier(encoder, TEXTS, **{"labels": LABELS, **options})

    def test_another_task(self, new_backbone, preprocessor):
        with pytest.raises(TypeError, match="`encoder` must be a BertSentenceEncoder"):
            few_shot_classifier(BertClassifier(new_backbone(), 2, preprocessor=preprocessor), TEXTS, LABELS)


class TestZeroShot:
    def logits(self, classifier, texts, hypotheses):
        """One pair at a time, `(texts, labels, classes)`."""
        rows = [[classifier.predict_on_batch(([text], [other]))[0] for other in hypotheses] for text in texts]
        return np.array(rows, np.float64)

    @pytest.mark.usefixtures("traces_nothing")
    def test_labels_exclude_each_other(self, classifier):
        found = zero_shot(classifier, TEXTS[:3], ["film", "night"], "a {} !")
        logits = np.exp(self.logits(classifier, TEXTS[:3], ["a film !", "a night !"])[..., 2])
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, logits / logits.sum(axis=1, keepdims=True), atol=TOLERANCE)
        np.testing.assert_allclose(
            zero_shot(classifier, TEXTS[1], ["film", "night"], "a {} !"), found[1], atol=TOLERANCE
        )

    @pytest.mark.usefixtures("traces_nothing")
    @pytest.mark.parametrize("names", [["film", "night"], ["film"]], ids=len)
    def test_labels_are_independent(self, classifier, names):
        found = zero_shot(classifier, TEXTS[:3], names, multi_label=len(names) > 1)
        logits = np.exp(self.logits(classifier, TEXTS[:3], [f"This example is {name}." for name in names]))
        np.testing.assert_allclose(found, logits[..., 2] / (logits[..., 2] + logits[..., 0]), atol=TOLERANCE)

    @pytest.mark.usefixtures("traces_nothing")
    def test_classes_by_other_names(self, new_backbone, preprocessor, classifier):
        other = BertClassifier(new_backbone(), 3, preprocessor=preprocessor)
        other.set_weights(classifier.get_weights())
        found = zero_shot(other, TEXTS, ["film", "night"], multi_label=True, entailment="2", contradiction="0")
        expected = zero_shot(classifier, TEXTS, ["film", "night"], multi_label=True)
        np.testing.assert_allclose(found, expected, atol=TOLERANCE)
        with pytest.raises(ValueError, match=r"`entailment` must be one of \['0', '1', '2'\].* Give the name"):
            zero_shot(other, TEXTS, ["film", "night"])

    @pytest.mark.usefixtures("traces_nothing")
    def test_no_texts(self, classifier):
        assert zero_shot(classifier, [], ["film", "night"]).shape == (0, 2)

    def test_a_progress_bar(self, classifier, capsys):
        zero_shot(classifier, TEXTS[:3], ["film", "night"], verbose=1)
        assert "6/6" in capsys.readouterr().out
        zero_shot(classifier, TEXTS[:3], ["film", "night"])
        assert capsys.readouterr().out == ""

    @pytest.mark.parametrize(
        ("names", "options", "message"),
        [
            ([], {}, "`candidate_labels` must be different strings, at least one"),
            (["film", "film"], {}, "`candidate_labels` must be different strings"),
            (["film"], {"hypothesis": "a film"}, "`hypothesis` must hold {}"),
            (["film"], {"contradiction": "no"}, "`contradiction` must be one of .*Received: contradiction='no'"),
        ],
        ids=str,
    )
    def test_arguments_that_it_refuses(self, classifier, names, options, message):
        with pytest.raises(ValueError, match=message):
            zero_shot(classifier, TEXTS, names, **options)

    def test_labels_in_one_string(self, classifier):
        with pytest.raises(TypeError, match="`candidate_labels` must be a list of strings"):
            zero_shot(classifier, TEXTS, "film, night")

    def test_another_task(self, encoder):
        with pytest.raises(TypeError, match="`classifier` must be a BertClassifier"):
            zero_shot(encoder, TEXTS, ["film"])

    @pytest.mark.peers
    @pytest.mark.usefixtures("traces_nothing")
    @pytest.mark.parametrize("multi_label", [False, True])
    def test_beside_the_pipeline_of_transformers(self, minilm, transformers, torch, tmp_path, multi_label):
        names = [name.lower() for name in RELATIONS]
        config = transformers.AutoConfig.from_pretrained(
            minilm, id2label=dict(enumerate(names)), label2id={name: index for index, name in enumerate(names)}
        )
        torch.manual_seed(4)
        peer = transformers.BertForSequenceClassification(config).eval()
        torch.nn.init.normal_(peer.classifier.weight, std=0.5)
        peer.save_pretrained(tmp_path)
        tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
        tokenizer.save_pretrained(tmp_path)
        labels, texts = ["a warm film", "the weather", "a bank"], ["A funny film.", "Rain, and no end.", ""]
        pipeline = transformers.pipeline("zero-shot-classification", model=peer, tokenizer=tokenizer)
        found = zero_shot(load_task(tmp_path), texts[:2], labels, multi_label=multi_label)
        for text, row in zip(texts, found, strict=False):
            answer = pipeline(text, candidate_labels=labels, multi_label=multi_label)
            expected = dict(zip(answer["labels"], answer["scores"], strict=True))
            np.testing.assert_allclose(row, [expected[label] for label in labels], atol=PEER_TOLERANCE)


@pytest.mark.parametrize("missing", [None, float("nan")], ids=str)
def test_missing_labels(encoder, missing):
    for labels in ([*LABELS[:-1], missing], [0, 0, 0, 0, 1, 1, 1, missing]):
        with pytest.raises(
            (ValueError, TypeError), match=r"`few_shot_classifier`: `labels` must hold strings, or integers"
        ):
            few_shot_classifier(encoder, TEXTS, labels, num_pairs=2)
