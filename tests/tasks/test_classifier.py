"""`BertClassifier`: one class per text, several, or numbers; what labels are is tested in `labels`."""

import keras
import numpy as np
import pytest

from keras_bert_layers import BertClassifier, BertPreprocessor, BertTokenizer
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.serving.answers import as_text

TEXTS = ["good film", "bad film", "a good night", "unhappy night", "good , good !", "bad", "a film"]
NAMES = ["negative", "positive"]
LABELS = [1, 0, 1, 0, 1, 0, 0]
LABEL_NAMES = [NAMES[label] for label in LABELS]
PAIRS = (TEXTS, TEXTS[::-1])
# The same float32 sums in another order: eager against traced, one batch against another.
TRACE_TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def backbone(new_backbone):
    """For models that are only asked."""
    return new_backbone()


@pytest.fixture(scope="module")
def classifier(new_backbone, preprocessor, trains_and_evaluates_eagerly):
    """A model that learned its few texts, for all tests of this file; no test trains it further."""
    classifier = BertClassifier(new_backbone(), class_names=NAMES, preprocessor=preprocessor, dropout=0.1)
    classifier.optimizer.learning_rate = 5e-3
    texts, labels = TEXTS * 18, LABEL_NAMES * 18  # an epoch costs more than its steps
    traces = []
    compute_loss = BertClassifier.compute_loss
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            BertClassifier, "compute_loss", lambda *args, **kwargs: traces.append(1) or compute_loss(*args, **kwargs)
        )
        history = classifier.fit(texts, labels, batch_size=7, epochs=2, verbose=0).history
    classifier.losses_of_epochs, classifier.num_traced_steps = history["loss"], len(traces)
    return trains_and_evaluates_eagerly(classifier)


@pytest.fixture(scope="module")
def logits(classifier):
    return classifier.predict(TEXTS, verbose=0)


@pytest.fixture(scope="module")
def served(classifier, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    classifier.export(path)
    return tf.saved_model.load(str(path)).signatures


def make_still(backbone, preprocessor, **options):
    """A model that `fit` does not change, so that its losses are known beforehand; eager, as nothing is traced."""
    classifier = BertClassifier(backbone, preprocessor=preprocessor, dropout=0.0, **options)
    classifier.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    return classifier


@pytest.fixture(scope="module")
def still(backbone, preprocessor):
    """One for all tests: what its datasets trace, they trace once."""
    return make_still(backbone, preprocessor, class_names=NAMES)


def losses(classifier, texts=TEXTS, labels=LABELS):
    """The cross entropy of each row."""
    logits = np.asarray(classifier(classifier.preprocessor(texts)), "float64")
    return np.log(np.exp(logits).sum(axis=-1)) - logits[np.arange(len(labels)), labels]


def test_logits_are_the_head_on_the_pooled_output(classifier, preprocessor, logits):
    ids = preprocessor(TEXTS)
    dense = classifier.get_layer("classification_head").dense
    expected = classifier.backbone(ids)["pooled_output"] @ np.array(dense.kernel) + np.array(dense.bias)
    np.testing.assert_allclose(classifier(ids), expected, atol=TRACE_TOLERANCE)
    np.testing.assert_allclose(logits, expected, atol=TRACE_TOLERANCE)


@pytest.mark.parametrize("normalize", [False, True])
def test_logits_are_the_head_on_pooled_vectors(backbone, preprocessor, normalize):
    classifier = BertClassifier(backbone, 3, preprocessor=preprocessor, pooling=["mean", "cls"], normalize=normalize)
    ids = preprocessor(TEXTS)
    hidden, mask = np.asarray(backbone(ids)["sequence_output"]), np.asarray(ids["padding_mask"])[..., None]
    vectors = np.concatenate([(hidden * mask).sum(axis=1) / mask.sum(axis=1), hidden[:, 0]], axis=1)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) if normalize else vectors
    dense = classifier.get_layer("classification_head").dense
    expected = vectors @ np.array(dense.kernel) + np.array(dense.bias)
    np.testing.assert_allclose(classifier(ids), expected, atol=TRACE_TOLERANCE)
    assert {"pooler" in weight.path for weight in classifier.trainable_weights} == {False}
    config = classifier.get_config()
    assert (config["pooling"], config["normalize"]) == (("mean", "cls"), normalize)
    again = BertClassifier.from_config(config)
    again.set_weights(classifier.get_weights())
    np.testing.assert_array_equal(again(ids), classifier(ids))


def test_poolings_that_it_refuses(backbone):
    with pytest.raises(ValueError, match="`normalize` must be False without a `pooling`. Received: normalize=True"):
        BertClassifier(backbone, 2, normalize=True)
    with pytest.raises(ValueError, match="`mode` must be one of"):
        BertClassifier(backbone, 2, pooling="average")


def test_fit_learns_from_raw_strings(classifier):
    assert classifier.losses_of_epochs[-1] < 0.5 * classifier.losses_of_epochs[0]
    result = classifier.evaluate(TEXTS, LABELS, verbose=0, return_dict=True)
    assert result["accuracy"] == 1.0
    assert result["loss"] == pytest.approx(losses(classifier).mean(), abs=TRACE_TOLERANCE)


def test_the_first_step_is_traced_once(classifier):
    """TensorFlow traces a function again if its first trace creates variables, such as the optimizer's."""
    assert classifier.num_traced_steps == 1


def as_pandas(values):
    return pytest.importorskip("pandas").Series(values)


@pytest.mark.parametrize("kind", [np.array, tf.constant, as_pandas], ids=["numpy", "tensor", "pandas"])
def test_every_kind_of_column_is_the_same_data(classifier, logits, kind):
    batch = classifier.pipeline.batches.one(kind(TEXTS), kind(LABELS))
    keras.tree.map_structure(np.testing.assert_array_equal, batch, classifier.pipeline.batches.one(TEXTS, LABEL_NAMES))
    np.testing.assert_allclose(classifier.predict_on_batch(kind(TEXTS)), logits, atol=TRACE_TOLERANCE)


def test_dataset_of_text(still):
    expected = still.pipeline.batches.one(TEXTS, LABELS)[:2]
    for labels in (LABELS, LABEL_NAMES):
        dataset = tf.data.Dataset.from_tensor_slices((TEXTS, labels)).batch(7)
        (batch,) = still.pipeline.batches(dataset).as_numpy_iterator()
        keras.tree.map_structure(np.testing.assert_array_equal, batch, expected)


@pytest.mark.slow
def test_fit_on_a_dataset(still):
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, LABEL_NAMES)).batch(3)
    history = still.fit(dataset, validation_data=dataset, verbose=0).history
    expected = losses(still).mean()
    assert (history["loss"][0], history["val_loss"][0]) == pytest.approx((expected, expected), abs=TRACE_TOLERANCE)


def test_dataset_to_predict(classifier, logits):
    texts = tf.data.Dataset.from_tensor_slices(TEXTS).batch(3)
    np.testing.assert_allclose(classifier.predict(texts, verbose=0), logits, atol=TRACE_TOLERANCE)


def test_ids_pass_through(classifier, still, preprocessor, logits):
    ids = preprocessor(TEXTS)
    np.testing.assert_allclose(classifier.predict(ids, verbose=0), logits, atol=TRACE_TOLERANCE)
    dataset = tf.data.Dataset.from_tensors((ids, tf.constant(LABELS)))
    assert still.evaluate(dataset, verbose=0)[0] == pytest.approx(losses(still).mean(), abs=TRACE_TOLERANCE)


def test_without_preprocessor(backbone, preprocessor):
    classifier = make_still(backbone, None, num_classes=3)
    ids = {key: np.array(value) for key, value in preprocessor(TEXTS).items()}
    classifier.fit(ids, np.array(LABELS), verbose=0)
    logits = classifier.predict(ids, verbose=0)
    assert logits.shape == (len(TEXTS), 3)
    (signature,) = classifier.signatures()
    assert signature.name == "token_ids"
    np.testing.assert_allclose(signature.function(**ids)["logits"], logits, atol=TRACE_TOLERANCE)


def test_validation_split_takes_the_last_rows(still):
    history = still.fit(TEXTS, LABELS, validation_split=0.3, verbose=0).history
    expected = losses(still)
    assert history["loss"][0] == pytest.approx(expected[:4].mean(), abs=TRACE_TOLERANCE)
    assert history["val_loss"][0] == pytest.approx(expected[4:].mean(), abs=TRACE_TOLERANCE)


@pytest.mark.slow
def test_validation_data_and_weights(still):
    """Validation data go before a validation split."""
    weights = [1.0, 0.0, 2.0, 1.0, 1.0, 0.5, 1.0]
    history = still.fit(
        TEXTS,
        LABELS,
        sample_weight=weights,
        validation_data=(TEXTS[:3], LABEL_NAMES[:3]),
        validation_split=0.5,
        verbose=0,
    ).history
    expected = losses(still)
    assert history["loss"][0] == pytest.approx((expected * weights).mean(), abs=TRACE_TOLERANCE)
    assert history["val_loss"][0] == pytest.approx(expected[:3].mean(), abs=TRACE_TOLERANCE)
    assert "val_accuracy" in history
    weighted = still.evaluate(TEXTS, LABELS, sample_weight=weights, verbose=0)[0]
    assert weighted == pytest.approx((expected * weights).mean(), abs=TRACE_TOLERANCE)


def test_single_batches(backbone, preprocessor):
    classifier = make_still(backbone, preprocessor, class_names=NAMES)
    classifier.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    expected = classifier(preprocessor(TEXTS))
    np.testing.assert_allclose(classifier.predict_on_batch(TEXTS), expected, atol=TRACE_TOLERANCE)
    mean = losses(classifier).mean()
    assert classifier.test_on_batch(np.array(TEXTS), LABEL_NAMES)[0] == pytest.approx(mean, abs=TRACE_TOLERANCE)
    head = classifier.get_layer("classification_head")
    classifier.backbone.trainable = False
    before = head.get_weights()
    loss = classifier.train_on_batch(tf.constant(TEXTS), LABELS, sample_weight=np.ones(len(TEXTS)))[0]
    classifier.backbone.trainable = True
    assert loss == pytest.approx(mean, abs=TRACE_TOLERANCE)
    assert not any(np.array_equal(old, new) for old, new in zip(before, head.get_weights(), strict=True))


def test_no_texts_have_no_answers(classifier):
    logits = classifier.predict([], verbose=0)
    assert (logits.shape, logits.dtype) == ((0, 2), np.float32)


@pytest.mark.parametrize(
    "column",
    [np.array(LABELS, object), np.array(LABEL_NAMES)[:, None], np.array(LABELS, float), LABEL_NAMES],
    ids=["objects", "two axes", "floats", "names"],
)
def test_odd_columns_of_labels(classifier, column):
    assert classifier.pipeline.labels(TEXTS, column).tolist() == LABELS


class TestClassWeight:
    """Names and numbers are those of `tests/tasks/labels/test_single_label.py`."""

    def test_of_lists(self, still):
        still.reset_metrics()
        loss, _ = still.train_on_batch(TEXTS, LABEL_NAMES, class_weight={0: 3.0, "positive": 0.5})
        expected = losses(still) * [[3.0, 0.5][label] for label in LABELS]
        assert loss == pytest.approx(expected.mean(), abs=TRACE_TOLERANCE)

    def test_of_a_dataset(self, still):
        dataset = tf.data.Dataset.from_tensor_slices((TEXTS, LABEL_NAMES)).batch(7)
        history = still.fit(dataset, class_weight={"positive": 0.0}, verbose=0).history
        expected = losses(still) * [[1.0, 0.0][label] for label in LABELS]
        assert history["loss"][0] == pytest.approx(expected.mean(), abs=TRACE_TOLERANCE)

    def test_balanced(self, still):
        still.reset_metrics()
        loss, _ = still.train_on_batch(TEXTS, LABEL_NAMES, class_weight="balanced")
        counts = np.bincount(LABELS)
        expected = losses(still) * (len(LABELS) / (2 * counts))[np.array(LABELS)]
        assert loss == pytest.approx(expected.mean(), abs=TRACE_TOLERANCE)
        with pytest.raises(ValueError, match=r'"balanced" beside labels in `y`'):
            still.fit(tf.data.Dataset.from_tensor_slices((TEXTS, LABEL_NAMES)).batch(7), class_weight="balanced")

    def test_unknown_class(self, still):
        with pytest.raises(ValueError, match=r"`class_weight` must have keys among \[0, 1, 'negative', 'positive'\]"):
            still.fit(TEXTS, LABELS, class_weight={"neutral": 1.0})


@pytest.mark.slow
def test_fit_shuffles_and_the_seed_repeats_it(backbone, preprocessor):
    classifier = make_still(backbone, preprocessor, num_classes=9)
    seen = []

    def remember(y_true, y_pred):
        seen.extend(np.asarray(y_true).tolist())
        return keras.ops.sum(y_pred, axis=-1)

    def order(shuffle):
        seen.clear()
        keras.utils.set_random_seed(5)
        classifier.compile(keras.optimizers.SGD(0.0), loss=remember, metrics=[], run_eagerly=True)
        classifier.fit(["a"] * 9, list(range(9)), batch_size=5, shuffle=shuffle, epochs=2, verbose=0)
        return list(seen)

    shuffled = order(shuffle=True)
    assert shuffled == order(shuffle=True)
    assert sorted(shuffled[:9]) == sorted(shuffled[9:]) == order(shuffle=False)[:9] == list(range(9))
    assert shuffled[:9] != shuffled[9:] != list(range(9))


@pytest.fixture(scope="module")
def pair_classifier(new_backbone, preprocessor):
    """A model that has inferred from its data that it reads pairs."""
    classifier = make_still(new_backbone(), preprocessor, class_names=NAMES)
    classifier.fit(PAIRS, LABELS, verbose=0)
    return classifier


class TestPairs:
    def test_second_text_matters(self, pair_classifier):
        logits = pair_classifier.predict_on_batch(PAIRS)
        np.testing.assert_allclose(logits, pair_classifier(pair_classifier.preprocessor(PAIRS)), atol=TRACE_TOLERANCE)
        assert not np.allclose(logits, pair_classifier.predict_on_batch((TEXTS, TEXTS)))

    def test_dataset(self, pair_classifier):
        dataset = tf.data.Dataset.from_tensor_slices((PAIRS, LABELS)).batch(4)
        expected = losses(pair_classifier, PAIRS).mean()
        assert pair_classifier.evaluate(dataset, verbose=0)[0] == pytest.approx(expected, abs=TRACE_TOLERANCE)

    @pytest.mark.slow
    def test_export(self, pair_classifier, tmp_path):
        pair_classifier.export(tmp_path / "model")
        served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
        answer = served(text=tf.constant(PAIRS[0]), text_pair=tf.constant(PAIRS[1]))
        expected = keras.ops.softmax(pair_classifier(pair_classifier.preprocessor(PAIRS)))
        np.testing.assert_allclose(answer["probabilities"], expected, atol=TRACE_TOLERANCE)

    def test_saved_model_remembers(self, pair_classifier, tmp_path):
        pair_classifier.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        assert again.pairs is True
        with pytest.raises(ValueError, match="this model takes pairs of texts. Received: single texts"):
            again.predict(TEXTS, verbose=0)

    def test_refused_data_do_not_make_a_model_of_pairs(self, backbone, preprocessor):
        still = make_still(backbone, preprocessor, class_names=NAMES)
        with pytest.raises(ValueError, match="a pair of texts must be a tuple of two lists"):
            still.fit(tuple(TEXTS[:2]), LABELS[:2])
        assert still.pairs is None

    def test_single_model_refuses_pairs(self, classifier):
        assert classifier.pairs is False
        with pytest.raises(ValueError, match="this model takes single texts. Received: pairs of texts"):
            classifier.predict(PAIRS, verbose=0)


class TestFiles:
    def test_keras_round_trip(self, classifier, logits, tmp_path):
        classifier.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        again.run_eagerly = True  # less work than two graphs
        np.testing.assert_allclose(again.predict(TEXTS, verbose=0), logits, atol=TRACE_TOLERANCE)
        assert again.get_config() == classifier.get_config()
        assert again.preprocessor.tokenizer.get_config() == classifier.preprocessor.tokenizer.get_config()
        assert int(again.optimizer.iterations) == int(classifier.optimizer.iterations) > 0
        assert again.test_on_batch(TEXTS, LABEL_NAMES)[0] == pytest.approx(
            losses(classifier).mean(), abs=TRACE_TOLERANCE
        )

    def test_untrained_round_trip(self, backbone, preprocessor, tmp_path):
        classifier = BertClassifier(backbone, class_names=NAMES, preprocessor=preprocessor)
        classifier.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        ids = preprocessor(TEXTS)
        np.testing.assert_array_equal(again(ids), classifier(ids))

    def test_own_compile_arguments_survive(self, backbone, preprocessor, tmp_path):
        classifier = BertClassifier(backbone, class_names=NAMES, preprocessor=preprocessor)
        classifier.compile(optimizer=keras.optimizers.SGD(0.125), metrics=[])
        classifier.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        assert isinstance(again.optimizer, keras.optimizers.SGD)
        assert float(again.optimizer.learning_rate) == 0.125

    def test_file_of_an_older_version(self, classifier):
        config = classifier.get_config()
        for argument in ("problem_type", "threshold"):
            del config[argument]
        again = BertClassifier.from_config(config)
        assert again.get_config() == classifier.get_config()

    @pytest.mark.slow
    def test_training_continues_as_before(self, new_backbone, preprocessor, tmp_path):
        """What is frozen stays frozen, the optimizer has its state, and biases and norms stay undecayed."""
        classifier = BertClassifier(new_backbone(), class_names=NAMES, preprocessor=preprocessor)
        classifier.backbone.get_layer("embedding").trainable = False
        classifier.compile(run_eagerly=True)
        classifier.fit(TEXTS, LABELS, verbose=0)
        classifier.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")

        def state(model):
            trained = [weight.path.split("/", 1)[-1] for weight in model.trainable_weights]
            undecayed = [index for index, weight in enumerate(model.weights) if not decays(model.optimizer, weight)]
            return trained, undecayed, [np.array(slot) for slot in model.optimizer.variables]

        def decays(optimizer, weight):
            return optimizer._use_weight_decay(weight)

        keras.tree.map_structure(np.testing.assert_array_equal, state(again), state(classifier))
        assert 0 < len(again.trainable_weights) < len(again.weights)
        again.backbone.get_layer("embedding").trainable = True
        assert len(again.trainable_weights) == len(again.weights)

    def test_clone_is_a_plain_model_of_ids(self, classifier, preprocessor):
        clone = keras.models.clone_model(classifier)
        clone.set_weights(classifier.get_weights())
        ids = preprocessor(TEXTS)
        np.testing.assert_allclose(clone(ids), classifier(ids), atol=TRACE_TOLERANCE)
        assert clone.weights[0] is not classifier.weights[0]

    @pytest.mark.parametrize("batch", [TEXTS, [""], ["\0 \t"], [b"\xff bad"], ["good " * 5_000, "bad"], []])
    def test_export_answers_what_keras_answers(self, classifier, served, batch):
        answer = served["serving_default"](text=tf.constant(batch, shape=[len(batch)], dtype=tf.string))
        assert set(answer) == {"label", "probabilities", "bytes_cut"}
        logits = classifier.predict_on_batch(batch) if batch else np.zeros([0, 2])
        np.testing.assert_allclose(answer["probabilities"], keras.ops.softmax(logits), atol=TRACE_TOLERANCE)
        assert [label.decode() for label in answer["label"].numpy()] == [NAMES[row.argmax()] for row in logits]
        ids = served["tokenize"](text=tf.constant(batch, shape=[len(batch)], dtype=tf.string))
        np.testing.assert_allclose(served["token_ids"](**ids)["logits"], logits, atol=TRACE_TOLERANCE)

    def test_export_reads_100_000_bytes_by_default(self, classifier, served):
        texts = ["good " * 30_000, "bad", "é" * 50_001]
        answer = served["serving_default"](text=tf.constant(texts))
        assert answer["bytes_cut"].numpy().tolist() == [50_000, 0, 2]
        assert "bytes_cut" not in classifier.answer(texts[:1])
        assert set(served["tokenize"](text=tf.constant(texts))) == {"token_ids", "segment_ids", "padding_mask"}

    @pytest.mark.usefixtures("traces_nothing")
    def test_label_without_names_is_the_number(self, backbone, preprocessor):
        answer = BertClassifier(backbone, 3, preprocessor=preprocessor).answer(TEXTS)
        np.testing.assert_array_equal(answer["label"].astype(int), np.argmax(answer["probabilities"], axis=-1))


@pytest.mark.slow
def test_bfloat16(new_backbone, preprocessor):
    classifier = BertClassifier(new_backbone(dtype="mixed_bfloat16"), 2, preprocessor=preprocessor)
    classifier.compile(run_eagerly=True)
    history = classifier.fit(TEXTS, LABELS, epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert classifier.predict(TEXTS, verbose=0).dtype == np.float32


def test_loss_is_scaled_under_float16(new_backbone):
    classifier = BertClassifier(new_backbone(dtype="mixed_float16"), 2)
    assert isinstance(classifier.optimizer, keras.optimizers.LossScaleOptimizer)


def test_compiler_never_sees_many_lengths(backbone, tokenizer):
    longest = BertClassifier(backbone, 2, preprocessor=BertPreprocessor(tokenizer, max_length=9))
    assert longest.jit_compile is False
    longest.compile(jit_compile=True)
    assert longest.jit_compile is True


class TestErrors:
    def test_preprocessor_that_is_too_long(self, backbone, tokenizer):
        with pytest.raises(ValueError, match=r"`max_sequence_length` \(13\). Received: preprocessor.max_length=14"):
            BertClassifier(backbone, 2, preprocessor=BertPreprocessor(tokenizer, 14))

    def test_vocabulary_that_is_too_large(self, backbone, vocabulary):
        preprocessor = BertPreprocessor(BertTokenizer([*vocabulary, "extra"]), 9)
        with pytest.raises(ValueError, match=r"`vocabulary_size` \(18\). Received: .*=19. Text and weights must"):
            BertClassifier(backbone, 2, preprocessor=preprocessor)

    @pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "a"]])
    def test_class_names(self, backbone, names):
        with pytest.raises(ValueError, match="`class_names` must hold 3 different names"):
            BertClassifier(backbone, 3, class_names=names)

    def test_backbone(self):
        with pytest.raises(
            TypeError, match="`backbone` must be a BertBackbone. Received: backbone='bert'.*load_backbone"
        ):
            BertClassifier("bert", 2)

    def test_preprocessor(self, backbone, tokenizer):
        with pytest.raises(
            TypeError, match="`preprocessor` must be a BertPreprocessor or None. Received: preprocessor="
        ):
            BertClassifier(backbone, 2, preprocessor=tokenizer)

    def test_pairs(self, backbone):
        with pytest.raises(TypeError, match="`pairs` must be True or False. Received: pairs='yes'"):
            BertClassifier(backbone, 2, pairs="yes")

    def test_call_on_text(self, classifier):
        for texts in ("good", TEXTS, (TEXTS, TEXTS), np.array(TEXTS), tf.constant(TEXTS)):
            with pytest.raises(
                TypeError, match="`BertClassifier`: `inputs` must be token ids. .* Use `predict` on texts"
            ):
                classifier(texts)

    def test_text_without_preprocessor(self, backbone):
        classifier = BertClassifier(backbone, 2)
        for texts in (TEXTS, tf.data.Dataset.from_tensors(TEXTS)):
            with pytest.raises(ValueError, match="`preprocessor` must be given for raw text"):
                classifier.predict(texts)

    def test_neither_columns_nor_dataset(self, classifier):
        for x in (iter([(TEXTS, LABELS)]), set(TEXTS)):
            with pytest.raises(TypeError, match="`BertClassifier`: `x` must be a list, array, .* Received: x=<class"):
                classifier.fit(x)

    @pytest.mark.parametrize(
        ("elements", "cure"),
        [((TEXTS, LABELS), "batch"), (([LABELS], [LABELS]), "row")],
        ids=["unbatched", "numbers"],
    )
    def test_dataset_of_something_else(self, classifier, elements, cure):
        with pytest.raises(ValueError, match=f"`x` must yield `text`, .*{cure}"):
            classifier.fit(tf.data.Dataset.from_tensor_slices(elements))

    def test_labels_beside_a_dataset(self, classifier):
        dataset = tf.data.Dataset.from_tensors((TEXTS, LABELS))
        with pytest.raises(ValueError, match="`y` must be None where `x` is a dataset"):
            classifier.fit(dataset, LABELS)

    @pytest.mark.parametrize("method", ["fit", "evaluate"])
    def test_no_labels(self, classifier, method):
        with pytest.raises(ValueError, match="`y` must hold one label for each text. Received: y=None"):
            getattr(classifier, method)(TEXTS)

    def test_nothing_to_train_on(self, classifier):
        with pytest.raises(ValueError, match=r"`x` must hold at least one row. Received: x=\[\]"):
            classifier.fit([], [])

    def test_split_leaves_nothing(self, classifier):
        with pytest.raises(ValueError, match="`validation_split` must leave a row of 1 to train on"):
            classifier.fit(["good"], [1], validation_split=0.5)

    def test_unknown_label(self, classifier):
        with pytest.raises(ValueError, match=r"one of \['negative', 'positive'\]. Received: 'neutral' in row 2"):
            classifier.fit(["a"] * 3, ["positive", "negative", "neutral"])

    @pytest.mark.parametrize("labels", [[["negative"], []], [["negative", "positive"]] * 2])
    def test_lists_of_labels(self, classifier, labels):
        with pytest.raises(ValueError, match="every label must be one of .* in row 0"):
            classifier.pipeline.labels(["a"] * 2, labels)

    def test_missing_label(self, classifier):
        with pytest.raises(ValueError, match="every label must be an integer, .* Received: nan in row 1"):
            classifier.pipeline.labels(["a", "a"], [1.0, float("nan")])

    def test_unknown_label_in_a_dataset(self, classifier):
        dataset = tf.data.Dataset.from_tensor_slices((["a"], ["neutral"])).batch(1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="every label must be one of"):
            list(classifier.pipeline.batches(dataset))

    def test_lengths(self, classifier):
        with pytest.raises(ValueError, match="Received: 2 texts and 1 rows of y"):
            classifier.fit(["a", "b"], [1])

    def test_pair_lengths(self, classifier):
        with pytest.raises(ValueError, match="same number of texts. Received: 2 and 1"):
            classifier.fit((["a", "b"], ["a"]), [1, 0])

    def test_one_string(self, classifier):
        with pytest.raises(ValueError, match=r"texts must be a list. Received: one string, 'good'. Write \[text\]"):
            classifier.fit("good", LABELS[:1])

    def test_missing_text(self, classifier):
        with pytest.raises(TypeError, match="texts must be strings. Received: None in row 1"):
            classifier.predict(["good", None])

    def test_numbers(self, classifier):
        with pytest.raises(TypeError, match="texts must be strings. Received: an array of dtype float64"):
            classifier.predict([0.5, 1.5])

    def test_validation_split_of_a_dataset(self, classifier):
        dataset = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(3)
        with pytest.raises(ValueError, match="`validation_split` must be 0 for a dataset"):
            classifier.fit(dataset, validation_split=0.5)

    def test_export_format(self, classifier, tmp_path):
        with pytest.raises(ValueError, match="`format` must be one of .* Received: format='litert'"):
            classifier.export(tmp_path / "model", format="litert")

    def test_export_option(self, classifier, tmp_path):
        with pytest.raises(TypeError, match="unexpected keyword argument 'input_signature'"):
            classifier.export(tmp_path / "model", input_signature=None)


TOPICS = ["good", "bad", "night"]
TOPIC_LABELS = [["good"], ["bad"], ["night", "good"], ["bad", "night"], ["good"], ["bad"], []]
COLUMNS = np.array([[name in labels for name in TOPICS] for labels in TOPIC_LABELS], "float32")
SCORES = [4.5, 0.5, 4.0, 1.0, 5.0, 0.0, 2.5]


def outputs(classifier):
    return np.asarray(classifier(classifier.preprocessor(TEXTS)), "float64")


def sigmoid(logits):
    return 1 / (1 + np.exp(-np.asarray(logits, "float64")))


@pytest.fixture(scope="module")
def labeller(new_backbone, preprocessor):
    options = {"problem_type": "multi_label_classification", "threshold": 0.4}
    return make_still(new_backbone(seed=17), preprocessor, class_names=TOPICS, **options)


@pytest.fixture(scope="module")
def scorer(new_backbone, preprocessor):
    return make_still(new_backbone(seed=17), preprocessor, problem_type="regression")


class TestSeveralLabels:
    def test_loss_and_f1(self, labeller):
        probabilities = sigmoid(outputs(labeller))
        losses = -np.where(COLUMNS == 1, np.log(probabilities), np.log1p(-probabilities))
        predicted = probabilities > 0.5
        f1 = 2 * (predicted * COLUMNS).sum() / (predicted.sum() + COLUMNS.sum())
        expected = pytest.approx({"loss": losses.mean(), "f1": f1}, abs=TRACE_TOLERANCE)
        assert labeller.train_on_batch(TEXTS, TOPIC_LABELS, return_dict=True) == expected
        labeller.reset_metrics()
        assert labeller.test_on_batch(TEXTS, COLUMNS, return_dict=True) == expected

    def test_validation_split(self, labeller):
        (x, y, _), (last_x, last_y, _) = labeller.pipeline.split(TEXTS, TOPIC_LABELS, None, 0.3)
        assert [*x, *last_x] == TEXTS
        np.testing.assert_array_equal(y, COLUMNS[:4])
        np.testing.assert_array_equal(last_y, COLUMNS[4:])

    @pytest.mark.parametrize(
        "labels",
        [
            TOPIC_LABELS,
            COLUMNS.astype(int).tolist(),
            COLUMNS.astype(bool),
            [tuple(labels) for labels in TOPIC_LABELS],
            np.array([[*labels, "", ""][:2] for labels in TOPIC_LABELS]),
            [[label.encode() for label in labels] for labels in TOPIC_LABELS],
        ],
        ids=["lists", "columns", "booleans", "tuples", "filled up", "bytes"],
    )
    def test_every_kind_of_labels_is_the_same(self, labeller, labels):
        encoded = labeller.pipeline.labels(None, labels)
        assert encoded.dtype == np.float32
        np.testing.assert_array_equal(encoded, COLUMNS)

    def test_texts_without_any_label(self, labeller):
        assert labeller.pipeline.labels(None, [[], []]).tolist() == [[0, 0, 0]] * 2

    @pytest.mark.parametrize("filled", [True, False])
    def test_names_in_a_dataset(self, labeller, filled):
        names = tf.ragged.constant(TOPIC_LABELS)
        dataset = tf.data.Dataset.from_tensor_slices((TEXTS, names.to_tensor("") if filled else names)).batch(7)
        ((_, encoded),) = labeller.pipeline.batches(dataset)
        np.testing.assert_array_equal(encoded, COLUMNS)

    def test_round_trip_and_export(self, labeller, tmp_path, eagerly):
        labeller.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        assert again.get_config() == labeller.get_config()
        assert (again.problem_type, again.threshold) == ("multi_label_classification", 0.4)
        again.export(tmp_path / "model", warm_up=False)
        served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
        answer = served(text=tf.constant(TEXTS))
        with eagerly():
            expected = labeller.answer(TEXTS, batch_size=3)
        np.testing.assert_allclose(expected["probabilities"], sigmoid(outputs(labeller)), atol=TRACE_TOLERANCE)
        assert as_text({"label": answer["label"].numpy()})["label"].tolist() == expected["label"].tolist()
        np.testing.assert_allclose(answer["probabilities"], expected["probabilities"], atol=TRACE_TOLERANCE)
        for row, labels in zip(expected["probabilities"], expected["label"], strict=True):
            likely = [TOPICS[place] for place in np.argsort(-row) if row[place] > 0.4]
            assert [name for name in labels if name] == likely

    @pytest.mark.usefixtures("traces_nothing")
    def test_bfloat16(self, new_backbone, preprocessor):
        options = {"num_classes": 3, "problem_type": "multi_label_classification"}
        labeller = make_still(new_backbone(dtype="mixed_bfloat16"), preprocessor, **options)
        assert (labeller.threshold, labeller.class_names) == (0.5, None)
        assert np.isfinite(labeller.train_on_batch(TEXTS, COLUMNS)).all()
        answers = labeller.answer(TEXTS)
        assert answers["probabilities"].dtype == np.float32
        for probabilities, labels in zip(answers["probabilities"], answers["label"], strict=True):
            assert {int(label) for label in labels if label} == set(np.flatnonzero(probabilities > 0.5))

    @pytest.mark.parametrize("labels", [[0, 2], [[0, 1], [1, 0]], [[0], [1, 2]], ["good", "bad"]])
    def test_labels_that_are_refused(self, labeller, labels):
        with pytest.raises((TypeError, ValueError), match="`BertClassifier`: .*Received: "):
            labeller.fit(["a", "b"], labels)

    def test_class_weight(self, labeller):
        with pytest.raises(ValueError, match="`class_weight` must be None, as a text with several labels"):
            labeller.fit(TEXTS, TOPIC_LABELS, class_weight={"good": 2.0})


class TestRegression:
    def test_loss_and_metrics(self, scorer):
        numbers = outputs(scorer)
        assert numbers.shape == (7, 1)
        numbers = numbers[:, 0]
        expected = {
            "loss": np.mean((numbers - SCORES) ** 2),
            "mean_absolute_error": np.mean(np.abs(numbers - SCORES)),
            "pearson_correlation": np.corrcoef(numbers, SCORES)[0, 1],
        }
        result = scorer.train_on_batch(TEXTS, SCORES, return_dict=True)
        assert result == pytest.approx(expected, abs=TRACE_TOLERANCE)
        scorer.reset_metrics()
        result = scorer.test_on_batch(TEXTS, np.array(SCORES)[:, None], return_dict=True)
        assert result == pytest.approx(expected, abs=TRACE_TOLERANCE)

    def test_dataset(self, scorer):
        dataset = tf.data.Dataset.from_tensor_slices((TEXTS, SCORES)).batch(7)
        ((_, scores),) = scorer.pipeline.batches(dataset)
        assert scores.numpy().tolist() == SCORES
        with pytest.raises(ValueError, match="`y` must hold numbers in a regression"):
            scorer.pipeline.batches(tf.data.Dataset.from_tensor_slices((TEXTS, ["3.5"] * 7)).batch(7))

    @pytest.mark.usefixtures("traces_nothing")
    def test_answers_scores(self, scorer):
        answers = scorer.answer(TEXTS, batch_size=3)
        assert set(answers) == {"score"}
        assert answers["score"].dtype == np.float32
        np.testing.assert_allclose(answers["score"], outputs(scorer)[:, 0], atol=TRACE_TOLERANCE)
        dataset = tf.data.Dataset.from_tensor_slices((TEXTS, np.zeros(len(TEXTS)))).batch(3)
        np.testing.assert_allclose(scorer.answer(dataset)["score"], answers["score"], atol=TRACE_TOLERANCE)
        with pytest.raises(ValueError, match="`problem_type` must have classes.*Ask `answer` or `predict`"):
            scorer.predict_labels(["a"])

    def test_config(self, scorer):
        again = BertClassifier.from_config(scorer.get_config())
        assert again.get_config() == scorer.get_config()
        assert (again.num_classes, again.output_shape) == (1, (None, 1))

    @pytest.mark.usefixtures("traces_nothing")
    def test_bfloat16(self, new_backbone, preprocessor):
        scorer = make_still(new_backbone(dtype="mixed_bfloat16"), preprocessor, problem_type="regression")
        assert np.isfinite(scorer.train_on_batch(TEXTS, SCORES)).all()
        assert scorer.answer(TEXTS[:2])["score"].dtype == np.float32

    @pytest.mark.usefixtures("traces_nothing")
    def test_several_numbers(self, backbone, preprocessor):
        options = {"num_classes": 2, "class_names": ["x", "y"], "problem_type": "regression"}
        model = make_still(backbone, preprocessor, **options)
        labels = np.stack([SCORES, SCORES], axis=1)
        result = model.train_on_batch(TEXTS, labels, return_dict=True)
        assert set(result) == {"loss", "mean_absolute_error"}
        assert result["loss"] == pytest.approx(np.square(outputs(model) - labels).mean(), 1e-4)
        np.testing.assert_allclose(model.answer(TEXTS)["score"], outputs(model), atol=TRACE_TOLERANCE)
        with pytest.raises(ValueError, match=r"`y` must hold 2 numbers per text, \(rows, 2\)"):
            model.fit(TEXTS, SCORES)

    def test_class_weight(self, scorer):
        with pytest.raises(ValueError, match="`class_weight` must be None, as a regression has no classes"):
            scorer.fit(TEXTS, SCORES, class_weight={0: 2.0})


def test_problem_type(backbone):
    with pytest.raises(ValueError, match="`problem_type` must be one of .*Received: problem_type='ranking'"):
        BertClassifier(backbone, 3, problem_type="ranking")
