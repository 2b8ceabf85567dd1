import keras
import numpy as np
import pytest

from keras_bert_layers import BertMultipleChoice, BertPreprocessor
from keras_bert_layers._internal.lazy import tf

PROMPTS = ["a good film", "night", "un", "a bad , bad night", "film ?"]
CHOICES = [
    ["good", "bad night !"],
    ["a film . a film"],
    ["happy", "good", "night", "?"],
    ["bad", "a"],
    ["!", "a", "un"],
]
LABELS = [1, 0, 3, 0, 2]
COLUMNS = (PROMPTS, CHOICES)
PRESENT = np.array([[place < len(row) for place in range(4)] for row in CHOICES])
ODD_TEXTS = ["", "\0 \t", b"\xff bad", "[SEP] [CLS] [MASK]", "\N{SNOWMAN} \U0001f600", "جيد", "good " * 5_000]
# The same float32 sums in another order: eager against traced, one batch against another.
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def make(new_backbone, tokenizer):
    preprocessor = BertPreprocessor(tokenizer, max_length=11)
    return lambda **options: BertMultipleChoice(new_backbone(seed=13, **options), preprocessor=preprocessor)


@pytest.fixture(scope="module")
def chooser(make, train_eagerly):
    """One model for all tests of this file, trained until it knows its few rows; eagerly, as steps are few."""
    chooser = make()
    chooser.compile(optimizer=keras.optimizers.Adam(2e-2))
    chooser.losses_of_steps = [logs["loss"] for logs in train_eagerly(chooser, COLUMNS, LABELS, steps=8)]
    return chooser


@pytest.fixture(scope="module")
def logits(chooser):
    return chooser.predict(COLUMNS, verbose=0)


@pytest.fixture(scope="module")
def served(chooser, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    chooser.export(path)
    return tf.saved_model.load(str(path)).signatures


def dense(choices):
    return tf.ragged.constant(choices, ragged_rank=1).to_tensor("")


def softmax(logits):
    return np.asarray(keras.ops.softmax(logits))


def test_every_choice_is_scored_as_a_pair_on_its_own(chooser, logits):
    head = chooser.get_layer("multiple_choice_head").dense
    assert (logits.shape, logits.dtype) == ((5, 4), np.float32)
    for prompt, choices, row in zip(PROMPTS, CHOICES, logits, strict=True):
        for choice, logit in zip(choices, row, strict=False):
            pooled = chooser.backbone(chooser.preprocessor(([prompt], [choice])))["pooled_output"]
            expected = np.asarray(pooled)[0] @ np.asarray(head.kernel)[:, 0] + np.asarray(head.bias)[0]
            assert logit == pytest.approx(expected, abs=TOLERANCE)
    assert (logits[~PRESENT] == -1e9).all()


def test_it_learns(chooser, logits):
    assert chooser.losses_of_steps[-1] < 0.3 * chooser.losses_of_steps[0]
    assert logits.argmax(axis=-1).tolist() == LABELS


def test_loss_is_the_mean_over_rows_of_their_own_softmax(chooser, logits):
    result = chooser.evaluate(COLUMNS, LABELS, batch_size=2, verbose=0, return_dict=True)
    expected = -np.log(softmax(logits)[np.arange(5), LABELS])
    assert result["loss"] == pytest.approx(expected.mean(), abs=TOLERANCE)
    assert result["accuracy"] == 1.0


def test_weights_of_rows(chooser, logits):
    weights = [1.0, 3.0, 0.0, 0.5, 2.0]
    chooser.reset_metrics()
    loss = chooser.test_on_batch(COLUMNS, LABELS, sample_weight=weights, return_dict=True)["loss"]
    expected = -np.log(softmax(logits)[np.arange(5), LABELS]) * weights
    assert loss == pytest.approx(expected.mean(), abs=TOLERANCE)


def test_every_kind_of_column_is_the_same_data(chooser, logits):
    kinds = [
        (np.array(PROMPTS), dense(CHOICES).numpy()),
        (tf.constant(PROMPTS), tf.ragged.constant(CHOICES)),
        (PROMPTS, [[*row, "", ""] for row in CHOICES]),
    ]
    for columns in kinds:
        np.testing.assert_allclose(chooser.predict_on_batch(columns), logits, atol=TOLERANCE)


@pytest.mark.slow
def test_dataset(chooser, logits):
    ragged = tf.data.Dataset.from_tensor_slices(((PROMPTS, tf.ragged.constant(CHOICES)), LABELS)).batch(2)
    expected = chooser.evaluate(COLUMNS, LABELS, verbose=0)
    assert chooser.evaluate(ragged, verbose=0) == pytest.approx(expected, abs=TOLERANCE)
    filled = tf.data.Dataset.from_tensor_slices(((PROMPTS, dense(CHOICES)), LABELS)).batch(2)
    np.testing.assert_allclose(chooser.predict(filled, verbose=0), logits, atol=TOLERANCE)
    np.testing.assert_allclose(chooser.predict(ragged, steps=1, verbose=0), logits[:2, :2], atol=TOLERANCE)


def test_batches_are_as_wide_as_their_own_rows_need(chooser):
    dataset = chooser.pipeline.batches(COLUMNS, LABELS, batch_size=2)
    shapes = [tuple(ids["token_ids"].shape) for ids, _ in dataset]
    assert shapes == [(2, 2, 9), (2, 4, 9), (1, 3, 6)]


def test_ids_pass_through(chooser, logits, served, monkeypatch):
    monkeypatch.setattr(chooser, "run_eagerly", True)  # ids have a graph of their own
    ids = {
        name: np.array(values)
        for name, values in served["tokenize"](prompt=tf.constant(PROMPTS), choices=dense(CHOICES)).items()
    }
    assert ids["token_ids"].shape[:2] == (5, 4)
    assert (ids["padding_mask"].any(axis=-1) == PRESENT).all()
    assert (ids["token_ids"][~PRESENT] == chooser.preprocessor.tokenizer.pad_id).all()
    np.testing.assert_allclose(chooser.predict(ids, verbose=0), logits, atol=TOLERANCE)
    np.testing.assert_allclose(served["token_ids"](**ids)["logits"], logits, atol=TOLERANCE)


def test_served_answers_are_those_of_keras(chooser, logits, served):
    assert set(served) == {"serving_default", "token_ids", "tokenize"}
    answer = served["serving_default"](prompt=tf.constant(PROMPTS), choices=dense(CHOICES))
    assert set(answer) == {"choice", "choice_index", "probabilities", "bytes_cut"}
    np.testing.assert_allclose(answer["probabilities"], softmax(logits), atol=TOLERANCE)
    assert (answer["probabilities"].numpy()[~PRESENT] == 0).all()
    assert answer["choice_index"].numpy().tolist() == LABELS
    assert [choice.decode() for choice in answer["choice"].numpy()] == [
        row[label] for row, label in zip(CHOICES, LABELS, strict=True)
    ]
    long = served["serving_default"](prompt=tf.constant(["a" * 100_003]), choices=tf.constant([["b" * 100_001, ""]]))
    assert long["bytes_cut"].numpy().tolist() == [4]
    asked = chooser.answer(COLUMNS, batch_size=2)
    np.testing.assert_allclose(asked["probabilities"], answer["probabilities"], atol=TOLERANCE)
    assert asked["choice"].tolist() == [choice.decode() for choice in answer["choice"].numpy()]
    assert asked["choice_index"].tolist() == LABELS


def test_served_rows_that_hold_no_choice_or_odd_texts(chooser, served):
    serve = served["serving_default"]
    for prompts, choices in [([], np.zeros((0, 3))), (["a"], np.zeros((1, 0))), (["a", "b"], np.zeros((2, 2)))]:
        answer = serve(prompt=tf.constant(prompts, tf.string), choices=tf.fill(choices.shape, ""))
        assert answer["choice"].numpy().tolist() == [b""] * len(prompts)
        assert (answer["probabilities"].numpy() == 0).all()
        assert answer["probabilities"].shape == choices.shape
    odd = [[text, "good", ""] for text in ODD_TEXTS]
    together = serve(prompt=tf.constant(ODD_TEXTS), choices=tf.constant(odd))["probabilities"]
    for prompt, row, probabilities in zip(ODD_TEXTS, odd, together, strict=True):
        alone = serve(prompt=tf.constant([prompt]), choices=tf.constant([row[:2]]))["probabilities"]
        np.testing.assert_allclose(alone[0], probabilities[:2], atol=TOLERANCE)
        expected = softmax(chooser.predict_on_batch(([prompt], [row])))
        np.testing.assert_allclose(expected[0], probabilities[:2], atol=TOLERANCE)


@pytest.mark.usefixtures("traces_nothing")
def test_keras_round_trip(chooser, logits, tmp_path):
    chooser.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == chooser.get_config()
    np.testing.assert_allclose(again.predict_on_batch(COLUMNS), logits, atol=TOLERANCE)


@pytest.mark.usefixtures("traces_nothing")
def test_single_batches_and_bfloat16(make):
    chooser = make(dtype="mixed_bfloat16")
    chooser.compile(run_eagerly=True)
    before = chooser.get_weights()
    first = chooser.train_on_batch(COLUMNS, LABELS)[0]
    assert np.isfinite(first)
    assert not all(np.array_equal(old, new) for old, new in zip(before, chooser.get_weights(), strict=True))
    assert chooser.predict_on_batch(COLUMNS).dtype == np.float32
    answer = chooser.answer(COLUMNS)
    np.testing.assert_allclose(answer["probabilities"].sum(axis=-1), 1, atol=TOLERANCE)


@pytest.mark.slow
def test_validation_rows(make):
    chooser = make()
    chooser.compile(keras.optimizers.SGD(0.0), run_eagerly=True)  # so that the losses are known beforehand
    rows = -np.log(softmax(chooser.predict_on_batch(COLUMNS))[np.arange(5), LABELS])
    history = chooser.fit(COLUMNS, LABELS, validation_split=0.4, verbose=0).history
    assert history["loss"][0] == pytest.approx(rows[:3].mean(), abs=TOLERANCE)
    assert history["val_loss"][0] == pytest.approx(rows[3:].mean(), abs=TOLERANCE)
    last = ((PROMPTS[4:], CHOICES[4:]), LABELS[4:])
    history = chooser.fit(COLUMNS, LABELS, validation_data=last, verbose=0).history
    assert history["val_loss"][0] == pytest.approx(rows[4], abs=TOLERANCE)


def test_no_rows(chooser):
    assert chooser.predict(([], []), verbose=0).shape == (0, 0)
    assert chooser.answer(([], []))["choice"].shape == (0,)


class TestErrors:
    @pytest.mark.parametrize("x", [PROMPTS, (PROMPTS,), (PROMPTS, CHOICES, CHOICES)])
    def test_columns(self, chooser, x):
        with pytest.raises(ValueError, match=r"`x` must be a tuple of two columns. .* Write `\(prompts, choices\)`"):
            chooser.predict(x)

    def test_lengths(self, chooser):
        with pytest.raises(ValueError, match="its row of choices. Received: 5 prompts and 4 rows of choices"):
            chooser.predict((PROMPTS, CHOICES[:4]))
        with pytest.raises(ValueError, match="Received: 5 texts and 4 rows of y"):
            chooser.fit(COLUMNS, LABELS[:4])

    def test_flat_choices(self, chooser):
        with pytest.raises(
            TypeError, match="`choices` must hold a list of strings for each prompt. Received: 'a' in row"
        ):
            chooser.predict((PROMPTS, ["a"] * 5))

    def test_numbers(self, chooser):
        with pytest.raises(TypeError, match="strings. Received: .* in row 1"):
            chooser.predict((["a", "b"], [["a"], [1]]))

    @pytest.mark.parametrize("row", [[], [""]])
    def test_row_without_choices(self, chooser, row):
        with pytest.raises(ValueError, match="must have a choice that is not empty. Received: none in row 1"):
            chooser.fit((["a", "a"], [["good"], row]), [0, 0])

    @pytest.mark.parametrize("label", [-1, 1, 0.5, float("nan")])
    def test_label(self, chooser, label):
        with pytest.raises(
            ValueError, match=f"index of a choice, counted from 0. Received: {label}.* in row 1, which has 1"
        ):
            chooser.fit((["a", "a"], [["good", "bad"], ["good"]]), [1, label])

    def test_label_that_is_text(self, chooser):
        with pytest.raises(TypeError, match="`y` must hold integers. .*row.index"):
            chooser.fit((["a"], [["good", "bad"]]), ["good"])

    def test_label_in_a_dataset(self, chooser):
        dataset = tf.data.Dataset.from_tensors(((["a", "a"], [["good", ""], ["a", "un"]]), [1, 0]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="every label must be the index of a choice"):
            list(chooser.pipeline.batches(dataset))

    @pytest.mark.parametrize(
        "element", [(PROMPTS, LABELS), ((PROMPTS, PROMPTS), LABELS), ((PROMPTS[0], CHOICES[0]), 1), PROMPTS]
    )
    def test_dataset_of_something_else(self, chooser, element):
        dataset = tf.data.Dataset.from_tensors(element)
        for ask in (chooser.evaluate, chooser.predict):
            with pytest.raises(ValueError, match=r"`x` must yield `\(\(prompts, choices\), y\)`"):
                ask(dataset)

    def test_labels_beside_a_dataset(self, chooser):
        dataset = tf.data.Dataset.from_tensors(((PROMPTS, dense(CHOICES)), LABELS))
        with pytest.raises(ValueError, match="`y` must be None where `x` is a dataset"):
            chooser.fit(dataset, LABELS)

    def test_parts(self):
        with pytest.raises(TypeError, match="`BertMultipleChoice`: `backbone` must be a BertBackbone"):
            BertMultipleChoice("bert")
