import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers import BertClassifier, BertPreprocessor, BertTokenizer

TEXTS = ["good film", "bad film", "a good night", "unhappy night", "good , good !", "bad", "a film"]
NAMES = ["negative", "positive"]
LABELS = [1, 0, 1, 0, 1, 0, 0]
LABEL_NAMES = [NAMES[label] for label in LABELS]
# The same float32 sums in another order: eager against traced, one batch against another.
TRACE_TOLERANCE = 1e-5


@pytest.fixture
def classifier(backbone, preprocessor):
    return BertClassifier(backbone, class_names=NAMES, preprocessor=preprocessor)


def test_logits_are_the_head_on_the_pooled_output(classifier, preprocessor):
    ids = preprocessor(TEXTS)
    pooled = classifier.backbone(ids)["pooled_output"]
    dense = classifier.get_layer("classification_head").dense
    expected = pooled @ np.array(dense.kernel) + np.array(dense.bias)
    np.testing.assert_allclose(classifier(ids), expected, atol=TRACE_TOLERANCE)
    np.testing.assert_allclose(classifier.predict(TEXTS, verbose=0), expected, atol=TRACE_TOLERANCE)


def test_fit_learns_from_raw_strings(classifier):
    classifier.compile(optimizer=keras.optimizers.Adam(3e-3))
    history = classifier.fit(TEXTS * 8, LABEL_NAMES * 8, epochs=15, batch_size=9, verbose=0)
    assert history.history["loss"][-1] < 0.1 < history.history["loss"][0]
    assert classifier.evaluate(TEXTS, LABELS, verbose=0, return_dict=True)["accuracy"] == 1.0


def as_pandas(values):
    return pytest.importorskip("pandas").Series(values)


@pytest.mark.parametrize("kind", [list, np.array, tf.constant, as_pandas], ids=["list", "numpy", "tensor", "pandas"])
def test_every_kind_of_column_is_the_same_data(classifier, kind):
    expected = classifier.evaluate(TEXTS, LABELS, verbose=0)
    assert classifier.evaluate(kind(TEXTS), kind(LABELS), verbose=0) == pytest.approx(expected)
    np.testing.assert_allclose(
        classifier.predict(kind(TEXTS), verbose=0), classifier.predict(TEXTS, verbose=0), atol=TRACE_TOLERANCE
    )


@pytest.mark.parametrize("labels", [LABELS, LABEL_NAMES], ids=["integers", "names"])
def test_dataset_of_text(classifier, labels):
    dataset = tf.data.Dataset.from_tensor_slices((TEXTS, labels)).batch(3)
    assert classifier.evaluate(dataset, verbose=0) == pytest.approx(classifier.evaluate(TEXTS, LABELS, verbose=0))
    classifier.fit(dataset, validation_data=dataset, verbose=0)
    texts = tf.data.Dataset.from_tensor_slices(TEXTS).batch(3)
    np.testing.assert_allclose(
        classifier.predict(texts, verbose=0), classifier.predict(TEXTS, verbose=0), atol=TRACE_TOLERANCE
    )


def test_ids_pass_through(classifier, preprocessor):
    ids = preprocessor(TEXTS)
    expected = classifier.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(classifier.predict(ids, verbose=0), expected, atol=TRACE_TOLERANCE)
    dataset = tf.data.Dataset.from_tensors((ids, tf.constant(LABELS)))
    assert classifier.evaluate(dataset, verbose=0) == pytest.approx(classifier.evaluate(TEXTS, LABELS, verbose=0))


def test_without_preprocessor(backbone, preprocessor, tmp_path):
    classifier = BertClassifier(backbone, num_classes=3)
    ids = {key: np.array(value) for key, value in preprocessor(TEXTS).items()}
    classifier.fit(ids, np.array(LABELS), verbose=0)
    logits = classifier.predict(ids, verbose=0)
    assert logits.shape == (len(TEXTS), 3)
    classifier.export(tmp_path / "model")
    served = tf.saved_model.load(str(tmp_path / "model")).signatures["token_ids"]
    np.testing.assert_allclose(served(**preprocessor(TEXTS))["logits"], logits, atol=TRACE_TOLERANCE)


def test_validation_split_takes_the_last_rows(classifier):
    history = classifier.fit(TEXTS, LABELS, validation_split=0.3, verbose=0, epochs=1).history
    assert history["val_loss"][0] == pytest.approx(classifier.evaluate(TEXTS[4:], LABELS[4:], verbose=0)[0], abs=1e-5)


def test_validation_data_and_weights(classifier):
    weights = [1.0, 0.0, 2.0, 1.0, 1.0, 0.5, 1.0]
    history = classifier.fit(TEXTS, LABELS, sample_weight=weights, validation_data=(TEXTS, LABEL_NAMES), verbose=0)
    assert {"loss", "val_loss", "val_accuracy"} <= set(history.history)
    unweighted = classifier.evaluate(TEXTS, LABELS, verbose=0)[0]
    assert classifier.evaluate(TEXTS, LABELS, sample_weight=weights, verbose=0)[0] != pytest.approx(unweighted)


def test_validation_data_go_before_validation_split(classifier):
    history = classifier.fit(TEXTS, LABELS, validation_split=0.5, validation_data=(TEXTS[:3], LABELS[:3]), verbose=0)
    expected = classifier.evaluate(TEXTS[:3], LABELS[:3], verbose=0)[0]
    assert history.history["val_loss"][0] == pytest.approx(expected, abs=TRACE_TOLERANCE)


def test_single_batches(classifier):
    expected = classifier.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(classifier.predict_on_batch(TEXTS), expected, atol=TRACE_TOLERANCE)
    assert classifier.test_on_batch(np.array(TEXTS), LABEL_NAMES) == pytest.approx(
        classifier.evaluate(TEXTS, LABELS, verbose=0), abs=TRACE_TOLERANCE
    )
    before = classifier.get_weights()
    loss = classifier.train_on_batch(tf.constant(TEXTS), LABELS, sample_weight=np.ones(len(TEXTS)))
    assert np.isfinite(loss).all()
    assert not all(np.array_equal(old, new) for old, new in zip(before, classifier.get_weights(), strict=True))


def test_no_texts_have_no_answers(classifier):
    logits = classifier.predict([], verbose=0)
    assert (logits.shape, logits.dtype) == ((0, 2), np.float32)


@pytest.mark.parametrize("column", [np.array(LABELS, object), np.array(LABEL_NAMES)[:, None], np.array(LABELS, float)])
def test_odd_columns_of_labels(classifier, column):
    expected = classifier.evaluate(TEXTS, LABELS, verbose=0)
    assert classifier.evaluate(TEXTS, column, verbose=0) == pytest.approx(expected)


def test_class_weight(classifier):
    history = classifier.fit(TEXTS, LABELS, class_weight={0: 0.0, 1: 0.0}, verbose=0).history
    assert history["loss"] == [0.0]


def test_fit_shuffles_and_the_seed_repeats_it(backbone, preprocessor):
    def losses(seed, shuffle):
        keras.utils.set_random_seed(3)
        classifier = BertClassifier(
            type(backbone).from_config(backbone.get_config()), num_classes=2, preprocessor=preprocessor, dropout=0.0
        )
        keras.utils.set_random_seed(seed)
        return classifier.fit(TEXTS * 3, LABELS * 3, batch_size=2, shuffle=shuffle, verbose=0).history["loss"]

    assert losses(5, shuffle=True) == losses(5, shuffle=True)
    assert losses(5, shuffle=True) != losses(5, shuffle=False)


class TestPairs:
    PAIRS = (TEXTS, TEXTS[::-1])

    @pytest.fixture
    def fitted(self, classifier):
        classifier.fit(self.PAIRS, LABELS, verbose=0)
        return classifier

    def test_second_text_matters(self, fitted):
        other = fitted.predict((TEXTS, TEXTS), verbose=0)
        assert not np.allclose(fitted.predict(self.PAIRS, verbose=0), other)

    def test_dataset(self, fitted):
        dataset = tf.data.Dataset.from_tensor_slices((self.PAIRS, LABELS)).batch(2)
        assert fitted.evaluate(dataset, verbose=0) == pytest.approx(fitted.evaluate(self.PAIRS, LABELS, verbose=0))

    def test_export(self, fitted, tmp_path):
        fitted.export(tmp_path / "model")
        served = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
        answer = served(text=tf.constant(self.PAIRS[0]), text_pair=tf.constant(self.PAIRS[1]))
        expected = keras.ops.softmax(fitted.predict(self.PAIRS, verbose=0))
        np.testing.assert_allclose(answer["probabilities"], expected, atol=TRACE_TOLERANCE)

    def test_saved_model_remembers(self, fitted, tmp_path):
        fitted.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        assert again.pairs is True
        with pytest.raises(ValueError, match="made for, or fitted on, pairs of texts. Received: single texts"):
            again.predict(TEXTS, verbose=0)

    def test_refused_data_do_not_make_a_model_of_pairs(self, classifier):
        with pytest.raises(ValueError, match="a pair of texts must be a tuple of two lists"):
            classifier.fit(tuple(TEXTS[:2]), LABELS[:2])
        classifier.fit(TEXTS, LABELS, verbose=0)
        assert classifier.pairs is False

    def test_single_model_refuses_pairs(self, classifier):
        classifier.fit(TEXTS, LABELS, verbose=0)
        with pytest.raises(ValueError, match="made for, or fitted on, single texts. Received: pairs of texts"):
            classifier.predict(self.PAIRS, verbose=0)


class TestFiles:
    def test_keras_round_trip(self, classifier, tmp_path):
        classifier.fit(TEXTS, LABELS, verbose=0)
        classifier.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(again.predict(TEXTS, verbose=0), classifier.predict(TEXTS, verbose=0))
        assert again.get_config() == classifier.get_config()
        assert again.preprocessor.tokenizer.get_config() == classifier.preprocessor.tokenizer.get_config()
        assert int(again.optimizer.iterations) == int(classifier.optimizer.iterations) > 0
        assert again.evaluate(TEXTS, LABEL_NAMES, verbose=0) == pytest.approx(
            classifier.evaluate(TEXTS, LABELS, verbose=0)
        )

    def test_untrained_round_trip(self, classifier, tmp_path):
        classifier.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(again.predict(TEXTS, verbose=0), classifier.predict(TEXTS, verbose=0))

    def test_own_compile_arguments_survive(self, classifier, tmp_path):
        classifier.compile(optimizer=keras.optimizers.SGD(0.125), metrics=[])
        classifier.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        assert isinstance(again.optimizer, keras.optimizers.SGD)
        assert float(again.optimizer.learning_rate) == 0.125

    def test_training_goes_on_as_before(self, classifier, tmp_path):
        """What is frozen stays frozen, the optimizer has its state, and biases and norms stay undecayed."""
        classifier.backbone.get_layer("embedding").trainable = False
        classifier.compile()
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

    def test_config_holds_every_argument(self, classifier):
        import inspect

        arguments = set(inspect.signature(BertClassifier.__init__).parameters) - {"self"}
        assert set(classifier.get_config()) == arguments

    @pytest.mark.parametrize("batch", [TEXTS, [""], ["\0 \t"], [b"\xff bad"], ["good " * 5_000, "bad"], []])
    def test_export_answers_what_keras_answers(self, classifier, tmp_path, batch):
        classifier.export(tmp_path / "model")
        served = tf.saved_model.load(str(tmp_path / "model")).signatures
        answer = served["serving_default"](text=tf.constant(batch, shape=[len(batch)], dtype=tf.string))
        assert set(answer) == {"label", "probabilities"}
        logits = classifier.predict(batch, verbose=0) if batch else np.zeros([0, 2])
        np.testing.assert_allclose(answer["probabilities"], keras.ops.softmax(logits), atol=TRACE_TOLERANCE)
        assert [label.decode() for label in answer["label"].numpy()] == [NAMES[row.argmax()] for row in logits]
        ids = served["tokenize"](text=tf.constant(batch, shape=[len(batch)], dtype=tf.string))
        np.testing.assert_allclose(served["token_ids"](**ids)["logits"], logits, atol=TRACE_TOLERANCE)

    def test_label_without_names_is_the_number(self, backbone, preprocessor, tmp_path):
        BertClassifier(backbone, 3, preprocessor=preprocessor).export(tmp_path / "model")
        answer = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"](text=tf.constant(TEXTS))
        np.testing.assert_array_equal(answer["label"].numpy().astype(int), np.argmax(answer["probabilities"], axis=-1))


def test_bfloat16(vocabulary, preprocessor):
    from keras_bert_layers import BertBackbone, BertConfig

    config = BertConfig(vocabulary_size=len(vocabulary), hidden_dim=16, num_layers=1, num_heads=2, intermediate_dim=24)
    classifier = BertClassifier(BertBackbone(config, dtype="mixed_bfloat16"), 2, preprocessor=preprocessor)
    history = classifier.fit(TEXTS, LABELS, epochs=2, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    assert classifier.predict(TEXTS, verbose=0).dtype == np.float32


def test_loss_is_scaled_under_float16(backbone):
    config = {**backbone.get_config(), "dtype": "mixed_float16"}
    classifier = BertClassifier(type(backbone).from_config(config), 2)
    assert isinstance(classifier.optimizer, keras.optimizers.LossScaleOptimizer)


def test_compiler_never_sees_many_lengths(backbone, tokenizer):
    longest = BertClassifier(backbone, 2, preprocessor=BertPreprocessor(tokenizer, max_length=9))
    assert longest.jit_compile is False
    longest.compile(jit_compile=True)
    assert longest.jit_compile is True


class TestErrors:
    def test_num_classes(self, backbone):
        with pytest.raises(ValueError, match="`num_classes` must be at least 2. Received: num_classes=1"):
            BertClassifier(backbone, 1)

    def test_preprocessor_that_is_too_long(self, backbone, tokenizer):
        with pytest.raises(ValueError, match=r"`max_sequence_length` \(13\). Received: preprocessor.max_length=14"):
            BertClassifier(backbone, 2, preprocessor=BertPreprocessor(tokenizer, 14))

    def test_vocabulary_that_is_too_large(self, backbone, vocabulary):
        preprocessor = BertPreprocessor(BertTokenizer([*vocabulary, "extra"]), 9)
        with pytest.raises(ValueError, match=r"`vocabulary_size` \(18\). Received: .*=19. Text and weights must"):
            BertClassifier(backbone, 2, preprocessor=preprocessor)

    def test_neither_number_nor_names(self, backbone):
        with pytest.raises(TypeError, match="`num_classes` must be an integer. Received: num_classes=None"):
            BertClassifier(backbone)

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
        class Batches(keras.utils.PyDataset):
            def __len__(self):
                return 1

            def __getitem__(self, index):
                return np.array(TEXTS), np.array(LABELS)

        for x in (iter([(TEXTS, LABELS)]), {"text": TEXTS}, Batches()):
            with pytest.raises(TypeError, match="`BertClassifier`: `x` must be a list, array, .* Received: x=<class"):
                classifier.fit(x)

    @pytest.mark.parametrize(
        ("elements", "cure"),
        [((TEXTS, LABELS), "batch"), ({"text": [TEXTS]}, "row"), (([LABELS], [LABELS]), "row")],
        ids=["unbatched", "dictionary", "numbers"],
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
        with pytest.raises(ValueError, match=r"`x` must hold at least one text. Received: x=\[\]"):
            classifier.fit([], [])

    def test_split_leaves_nothing(self, classifier):
        with pytest.raises(ValueError, match="`validation_split` must leave a row of 1 to train on"):
            classifier.fit(["good"], [1], validation_split=0.5)

    def test_missing_label(self, classifier):
        with pytest.raises(ValueError, match="every label must be an integer, .* Received: nan in row 1"):
            classifier.fit(["a", "a"], [1.0, float("nan")])

    def test_unknown_label(self, classifier):
        with pytest.raises(ValueError, match=r"one of \['negative', 'positive'\]. Received: 'neutral' in row 2"):
            classifier.fit(["a"] * 3, ["positive", "negative", "neutral"])

    def test_unknown_label_in_a_dataset(self, classifier):
        dataset = tf.data.Dataset.from_tensor_slices((["a"], ["neutral"])).batch(1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="every label must be one of"):
            classifier.evaluate(dataset, verbose=0)

    @pytest.mark.parametrize("label", [-1, 2])
    def test_label_out_of_range(self, classifier, label):
        with pytest.raises(ValueError, match=f"less than num_classes=2. Received: {label} in row 1"):
            classifier.fit(["a", "a"], [0, label])

    def test_names_without_class_names(self, backbone, preprocessor):
        with pytest.raises(ValueError, match="labels must be integers where no class names are known"):
            BertClassifier(backbone, 2, preprocessor=preprocessor).fit(["a"], ["positive"])

    def test_lengths(self, classifier):
        with pytest.raises(ValueError, match="Received: 2 texts and 1 rows of y"):
            classifier.fit(["a", "b"], [1])

    def test_pair_lengths(self, classifier):
        with pytest.raises(ValueError, match="same number of texts. Received: 2 and 1"):
            classifier.fit((["a", "b"], ["a"]), [1, 0])

    def test_one_string(self, classifier):
        with pytest.raises(ValueError, match=r"texts must be a list. Received: one string, 'good'. Write \[text\]"):
            classifier.predict("good")

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
        with pytest.raises(ValueError, match="`format` must be one of .* Received: format='onnx'"):
            classifier.export(tmp_path / "model", format="onnx")

    def test_export_option(self, classifier, tmp_path):
        with pytest.raises(TypeError, match=r"`export` takes a path only. Received: \['input_signature'\]"):
            classifier.export(tmp_path / "model", input_signature=None)
