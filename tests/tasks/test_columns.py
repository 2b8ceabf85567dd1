"""Text beside columns: `BertClassifier(columns=keras.utils.FeatureSpace(...))`."""

import pickle
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pandas as pd
import pytest

import keras_bert_layers as kbl
from keras_bert_layers import BertClassifier, checkpoints
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.cli.rest_model import SavedModelRestModel
from keras_bert_layers.tasks import distill
from keras_bert_layers.tasks.feeding.streams import from_table
from keras_bert_layers.tasks.inputs.row_features import RowFeatures
from keras_bert_layers.visualization import AttributionPicture, ReportPicture

FeatureSpace = keras.utils.FeatureSpace
TABLE = {
    "text": ["good film", "bad film", "a good night", "unhappy night", "good , good !", "bad", "a film", "un"],
    "price": [1.0, 2.0, np.nan, 4.0, 5.0, 8.0, None, 3.0],
    "the country": ["us", "de", "us", None, "fr", "de", "us", ""],
    "stars": [1, 2, 3, 1, None, 2, 2, 3],
}
LABELS = ["no", "yes", "no", "yes", "no", "yes", "no", "yes"]
# The same float32 operations, in graph and out of it, in batches of other sizes.
TOLERANCE = 1e-5
# As of texts alone, in `test_attribution.py`, where logits are about 1; here relative, as some are larger.
SUM_TOLERANCE = {"rel": 2e-6, "abs": 2e-6}
MIDPOINT_TOLERANCE = 2e-5


def new_space(**options):
    features = {"price": "float_normalized", "the country": "string_categorical", "stars": "integer_categorical"}
    return FeatureSpace(features, **{"output_mode": "concat", "crosses": [("the country", "stars")], **options})


def frame(**columns):
    return pd.DataFrame({**TABLE, **columns})


@pytest.fixture(scope="module")
def make(new_backbone, preprocessor):
    """A function that makes a classifier, by default with a space that is not adapted."""

    def make(columns=None, **options):
        columns = new_space() if columns is None else columns
        options = {"class_names": ["no", "yes"], "preprocessor": preprocessor, "columns": columns, **options}
        return BertClassifier(new_backbone(), **options)

    return make


@pytest.fixture(scope="module")
def classifier(make, trains_and_evaluates_eagerly):
    """A classifier, fitted to a frame with its labels and two rows to validate on; no test trains it further."""
    classifier = make(dropout=0.1)
    classifier.optimizer.learning_rate = 1e-2
    dear = frame(label=LABELS)[:2].assign(price=1000.0)
    rows = pd.concat([frame(label=LABELS), dear])
    options = {"batch_size": 4, "epochs": 12, "validation_split": 0.2, "group_by_length": True}
    history = classifier.fit(rows, validation_freq=12, verbose=0, **options).history
    assert len(history["val_loss"]) == 1
    return trains_and_evaluates_eagerly(classifier)


@pytest.fixture(scope="module")
def logits(classifier):
    return classifier.predict(frame(), verbose=0)


def as_dataset(**others):
    columns = {
        **TABLE,
        "price": np.array(TABLE["price"], float),
        "the country": [c or "" for c in TABLE["the country"]],
    }
    columns["stars"] = [-1 if star is None else star for star in TABLE["stars"]]
    labels = np.array([label == "yes" for label in LABELS], int)
    return tf.data.Dataset.from_tensor_slices(({**columns, **others}, labels)).batch(3)


def test_encodes_rows_as_the_space_does_and_fills_missing_values():
    features = RowFeatures("Test", new_space())
    columns = [features.checked(name, TABLE[name], 0) for name in features.names]
    features.adapt(columns)
    found = features(*columns).numpy()
    price = np.array(TABLE["price"], float)
    known = price[~np.isnan(price)]
    vocabularies = [["[UNK]", "us", "de", "fr"], [-1, 2, 3, 1]]
    assert [list(map(str, features.space.preprocessors["the country"].get_vocabulary()))] == vocabularies[:1]
    names = [
        [*vocabulary].index(value) if value in vocabulary else 0
        for vocabulary, value in zip([vocabularies[0]] * 8, TABLE["the country"], strict=True)
    ]
    stars = [0 if star is None else vocabularies[1].index(star) for star in TABLE["stars"]]
    # The columns of a space are sorted by name: price, stars, the country; then the crosses.
    np.testing.assert_allclose(found[:, 0], np.nan_to_num((price - known.mean()) / known.std()), atol=1e-6)
    np.testing.assert_array_equal(found[:, 1:5], np.eye(4)[stars])
    np.testing.assert_array_equal(found[:, 5:9], np.eye(4)[names])
    assert found.shape == (8, 9 + 32)
    np.testing.assert_array_equal(found[:, 9:].sum(axis=1), 1)
    unknown = features(np.array([np.nan]), np.array(["gb"], object), np.array([77])).numpy()
    np.testing.assert_array_equal(unknown[0, :9], [0, 1, 0, 0, 0, 1, 0, 0, 0])


def test_bytes_are_categories_too():
    """As a dataset yields strings; some are no UTF-8."""
    features = RowFeatures("Test", FeatureSpace({"the country": "string_categorical"}, output_mode="concat"))
    rows = features.checked("the country", np.array(["日本".encode(), b"\xff", b"", "us"], object), 0)
    assert rows.tolist() == ["日本", "\N{REPLACEMENT CHARACTER}", "", "us"]
    features.adapt([rows])
    assert sorted(features.space.preprocessors["the country"].get_vocabulary()[1:]) == sorted({*rows} - {""})


def test_an_empty_string_of_a_vocabulary_and_numbers_that_are_nan(make):
    """What Keras loses in a file of a space, and what it learns of NaN."""
    adapted = new_space()
    known = {"the country": np.array(["us", "us", ""]), "stars": np.array([1, 2, 3])}
    adapted.adapt({**known, "price": np.array([1.0, 2.0, 3.0])})
    features = RowFeatures("Test", adapted)
    assert features.space.preprocessors["the country"].get_vocabulary()[-1] == ""
    again = RowFeatures("Test", keras.saving.deserialize_keras_object(features.config()))
    row = (np.array([2.5]), np.array([""], object), np.array([1]))
    np.testing.assert_array_equal(again(*row), features(*row))
    given = {"price": row[0], "the country": np.array([""]), "stars": row[2]}
    np.testing.assert_array_equal(features(*row), adapted(given))
    broken = new_space()
    broken.adapt({**known, "price": np.array([1.0, np.nan, 3.0])})
    with pytest.raises(ValueError, match="finite means.*which `fit` adapts without them"):
        make(broken)


def test_fit_adapts_to_the_rows_of_training_alone(make, classifier):
    prices = np.array(TABLE["price"], float)
    mean = np.reshape(classifier.columns.preprocessors["price"].input_mean, -1)
    assert mean == pytest.approx([prices[~np.isnan(prices)].mean()])
    width = 1 + 4 + 4 + 32
    assert classifier.input["columns"].shape == (None, None)
    assert (15 + width, 64) in [weight.shape for weight in classifier.trainable_weights]
    new = make()
    before = new.count_params()
    for call in (new.predict, new.evaluate, lambda x, **_: new.train_on_batch(x, LABELS), new.answer):
        with pytest.raises(ValueError, match="must be adapted first"):
            call(frame(label=LABELS), **({} if call == new.answer else {"verbose": 0}))
    with pytest.raises(ValueError, match="be adapted before the model is called"):
        new({**new.preprocessor(["a film"]), "columns": tf.zeros((1, width))})
    with new.pipeline.fitting(from_table(new.pipeline, as_dataset())[0]):
        assert new.count_params() - before == (15 + width) * 64 + 64


def test_learns_what_only_the_columns_tell(classifier):
    assert classifier.predict_labels(frame(text="a film")).tolist() == LABELS


def test_takes_frames_dictionaries_datasets_and_single_rows(classifier, logits):
    order = frame()[["stars", "text", "the country", "price"]]
    for x in (TABLE, order, as_dataset(), as_dataset().map(lambda x, y: x)):
        np.testing.assert_allclose(classifier.predict(x, verbose=0), logits, atol=TOLERANCE)
    np.testing.assert_allclose(list(classifier.predict_stream(TABLE)), logits, atol=TOLERANCE)
    answers = classifier.answer(frame())
    np.testing.assert_allclose(answers["probabilities"], keras.ops.softmax(logits), atol=TOLERANCE)
    assert classifier.predict_labels(TABLE).tolist() == answers["label"].tolist()
    found = classifier.answer(as_dataset())
    np.testing.assert_allclose(found["probabilities"], answers["probabilities"], atol=TOLERANCE)
    assert found["label"].tolist() == answers["label"].tolist()
    row = frame().iloc[3].to_dict()
    np.testing.assert_allclose(classifier.predict(row, verbose=0), logits[3], atol=TOLERANCE)
    assert classifier.answer(row)["label"] == answers["label"][3]
    ids = classifier.preprocessor(TABLE["text"])
    columns = classifier.pipeline.columns(tuple(TABLE.values()))
    ids |= classifier.pipeline.beside(columns)
    assert ids["columns"].dtype == tf.float32
    np.testing.assert_allclose(classifier.predict(ids, verbose=0), logits, atol=TOLERANCE)
    assert classifier.predict(frame()[:0], verbose=0).shape == (0, 2)
    assert classifier.answer(frame()[:0])["label"].shape == (0,)


def test_evaluates_and_reports(classifier, logits):
    expected = classifier.evaluate(frame(), LABELS, return_dict=True, verbose=0)
    correct = logits.argmax(axis=1) == [label == "yes" for label in LABELS]
    assert expected["accuracy"] == pytest.approx(correct.mean())
    for x in ({**TABLE, "label": LABELS}, as_dataset()):
        found = classifier.evaluate(x, return_dict=True, verbose=0)
        assert found["accuracy"] == expected["accuracy"]
        assert found["loss"] == pytest.approx(expected["loss"], abs=TOLERANCE)
    report = classifier.report(frame(), ["yes"] * 8, num_errors=1, verbose=0)
    wrong = report.errors[0]
    assert wrong.columns == ["price", "the country", "stars"]
    for name, weight in zip(wrong.columns, wrong.column_weights, strict=True):
        row = {**frame().iloc[wrong.row].to_dict(), name: None}
        without = classifier.answer(row)["probabilities"][0]
        assert weight == pytest.approx(wrong.probability - without, abs=TOLERANCE)
    assert "the country" in ReportPicture(report).html()
    assert wrong.text in TABLE["text"]
    assert wrong.probability == pytest.approx(keras.ops.softmax(logits).numpy()[:, 0].max(), abs=TOLERANCE)


def test_says_once_which_columns_are_not_read(make):
    classifier = make(columns=FeatureSpace({"price": FeatureSpace.float("price")}, output_mode="concat"))
    with pytest.warns(UserWarning, match=r"\['the country', 'stars'\] are not read"):
        classifier.predict(frame(), verbose=0)
    classifier.predict(TABLE, verbose=0)  # a warning is an error


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda x: x.drop(columns="price"), ValueError, r"without \['price'\].*Add them to the table"),
        (lambda x: x.drop(columns="text"), ValueError, r"without \['text'\]"),
        (
            lambda x: x.assign(price="cheap"),
            TypeError,
            "'price' must hold numbers.*'cheap' in row 0.*convert",
        ),
        (lambda x: x.assign(price=np.inf), ValueError, "'price' must hold finite numbers.*in row 0"),
        (lambda x: x.assign(stars=1.5), ValueError, "'stars' must hold finite numbers of dtype int32"),
        (lambda x: x.assign(**{"the country": 3}), TypeError, "'the country' must hold strings.*astype"),
        (lambda x: x.assign(text=None), TypeError, "texts must be strings"),
        (lambda x: {**TABLE, "price": [1.0]}, ValueError, "'price' must have one value for each text.*1 values and 8"),
        (lambda x: {**TABLE, "price": np.ones((8, 2))}, ValueError, r"'price' must have one value per row.*\(8, 2\)"),
        (lambda x: TABLE["text"], ValueError, "be a DataFrame, a dictionary of columns or a dataset of dictionaries"),
        (lambda x: as_dataset(price=["1"] * 8), TypeError, "'price' must hold numbers.*dtype string.*to_number"),
        (lambda x: as_dataset().unbatch(), ValueError, "batch"),
        (lambda x: {**TABLE, "text_pair": TABLE["text"]}, ValueError, "takes single texts"),
    ],
)
def test_names_what_is_wrong_with_a_table(classifier, change, error, message):
    classifier.pipeline.pairs = False
    with pytest.raises(error, match=message):
        classifier.predict(change(frame()), verbose=0)


def test_refuses_what_cannot_be(make, classifier, new_backbone, tmp_path):
    with pytest.raises(TypeError, match="FeatureSpace"):
        make({"price": "float"})
    with pytest.raises(ValueError, match="output_mode.*concat"):
        make(new_space(output_mode="dict"))
    with pytest.raises(ValueError, match="Rename a column"):
        make(FeatureSpace({"text": "string_categorical"}, output_mode="concat"))
    with pytest.raises(ValueError, match="Rename a column"):
        make(FeatureSpace({"a b": "float", "a_b": "float"}, output_mode="concat"))
    with pytest.raises(ValueError, match='long_texts.*beside `columns`.*"head_tail"'):
        make(long_texts="windows")
    with pytest.raises(ValueError, match="'price'.*must hold a value"):
        make().fit(frame(price=np.nan), LABELS, verbose=0)
    with pytest.raises(ValueError, match="must be adapted first"):
        make().fit(iter_batches(), verbose=0)
    refused = {
        "save_huggingface": lambda: checkpoints.save_huggingface(classifier, tmp_path / "a"),
        "onnx": lambda: classifier.export(tmp_path / "b.onnx", format="onnx"),
        "attributions": lambda: classifier.export(tmp_path / "c", signatures=["attributions"]),
        "distill": lambda: distill(classifier, classifier, TABLE["text"]),
    }
    for call in refused.values():
        with pytest.raises(ValueError, match=r"columns` must be None"):
            call()
    plain = BertClassifier(new_backbone(), 2)
    checkpoints.save_huggingface(plain, tmp_path / "plain")
    with pytest.raises(ValueError, match="head reads texts alone.*For a new head"):
        kbl.load_task(tmp_path / "plain", "classifier", columns=new_space())


def iter_batches():
    yield TABLE, LABELS


def test_pairs_and_pooling(make, eagerly):
    pairs = {**TABLE, "text_pair": TABLE["text"][::-1]}
    task = make(new_space(crosses=None), pooling=["mean", "cls"], normalize=True, long_texts="head_tail")
    with task.pipeline.fitting(from_table(task.pipeline, as_dataset(text_pair=TABLE["text"][::-1]))[0]):
        pass
    assert task.pairs
    assert list(task.text_inputs()) == ["text", "text_pair", "price", "the_country", "stars"]
    swapped = task.predict({**pairs, "text": pairs["text_pair"], "text_pair": pairs["text"]}, verbose=0)
    assert np.abs(task.predict(pairs, verbose=0) - swapped).max() > 1e-6
    with pytest.raises(ValueError, match="without"):
        task.predict(TABLE, verbose=0)
    with eagerly():
        found = task.attribute({name: values[0] for name, values in pairs.items()})
    assert found.words == ["good", "film", "un"]
    total = found.word_scores.sum() + found.column_scores.sum()
    assert total == pytest.approx(found.difference, **SUM_TOLERANCE)


def test_a_keras_file_keeps_strings_columns_and_training(classifier, logits, make, tmp_path):
    classifier.save(tmp_path / "a.keras")
    loaded = kbl.load_task(tmp_path / "a.keras")
    np.testing.assert_array_equal(loaded.predict(frame(), verbose=0), logits)
    assert loaded.optimizer.iterations == classifier.optimizer.iterations


def test_load_task_makes_one_that_is_saved_before_it_is_adapted(new_backbone, preprocessor, tmp_path):
    checkpoints.save_huggingface(new_backbone(), tmp_path)
    options = {"problem_type": "regression", "preprocessor": preprocessor, "columns": new_space(crosses=None)}
    kbl.load_task(tmp_path, "classifier", **options).save(tmp_path / "new.keras")
    task = keras.models.load_model(tmp_path / "new.keras")
    with pytest.raises(ValueError, match="must be adapted first"):
        task.train_on_batch(TABLE, np.arange(8.0))
    with task.pipeline.fitting(task.pipeline.columns(tuple(TABLE.values()))):
        assert task.pipeline.features.width == 9


REQUEST = {
    "text": ["good film", "", "bad"],
    "price": np.array([1.0, np.nan, 3.0], np.float32),
    "the_country": ["us", "", "gb"],
    "stars": np.array([1, -1, 9], np.int32),
}


@pytest.fixture(scope="module")
def exported(classifier, tmp_path_factory):
    path = tmp_path_factory.mktemp("columns") / "model"
    classifier.export(path, dtype="float32")
    return path


def test_a_saved_model_takes_an_input_for_each_column(classifier, exported):
    served = tf.saved_model.load(str(exported)).signatures
    specs = served["serving_default"].structured_input_signature[1]
    dtypes = {"text": "string", "price": "float32", "the_country": "string", "stars": "int32"}
    assert {name: spec.dtype.name for name, spec in specs.items()} == dtypes
    request = {name: tf.constant(values) for name, values in REQUEST.items()}
    table = {**REQUEST, "the country": REQUEST["the_country"]}
    del table["the_country"]
    expected = classifier.answer(table)
    found = served["serving_default"](**request)
    np.testing.assert_allclose(found["probabilities"], expected["probabilities"], atol=TOLERANCE)
    assert [label.decode() for label in found["label"].numpy()] == expected["label"].tolist()
    requests = dict(SavedModelRestModel(exported, name="columns", version=1).examples())
    assert requests["token_ids"]["columns"].shape == (3, 41)
    ids = served["tokenize"](**request)
    logits = served["token_ids"](**ids)["logits"]
    np.testing.assert_allclose(keras.ops.softmax(logits), expected["probabilities"], atol=TOLERANCE)


@pytest.mark.exhaustive
def test_a_saved_model_answers_in_a_fresh_process(classifier, exported, tmp_path):
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    requests.write_bytes(pickle.dumps([("serving_default", REQUEST)]))
    script = Path(__file__).parent / "ask_saved_model.py"
    subprocess.run([sys.executable, str(script), str(exported), str(requests), str(answers)], check=True)
    result = pickle.loads(answers.read_bytes())
    assert not [name for name in result["modules"] if name.split(".")[0] == "keras_bert_layers"]
    table = {name.replace("the_country", "the country"): values for name, values in REQUEST.items()}
    expected = classifier.answer(table)["probabilities"]
    np.testing.assert_allclose(result["answers"][0]["probabilities"], expected, atol=TOLERANCE)


def test_attributions_of_words_and_columns_add_up(classifier, logits, eagerly):
    with eagerly():
        found = classifier.attribute(frame()[:4], 1)
    ids = {name: values.numpy() for name, values in classifier.preprocessor(TABLE["text"]).items()}
    ids["token_ids"] = np.where(np.isin(ids["token_ids"], [2, 3]), ids["token_ids"], 0)
    nothing = [[None] * 8 for _ in range(3)]
    ids |= classifier.pipeline.beside(classifier.pipeline.columns((TABLE["text"], *nothing)))
    before = classifier.predict(ids, verbose=0)
    for row, one in enumerate(found):
        assert one.columns == ["price", "stars", "the country", "the country_X_stars"]
        assert one.difference == pytest.approx((logits - before)[row, 1], **SUM_TOLERANCE)
        total = one.word_scores.sum() + one.column_scores.sum()
        assert total == pytest.approx(one.difference, **SUM_TOLERANCE)
        assert one.error == pytest.approx(abs(total - one.difference), **SUM_TOLERANCE)
    assert found[2].column_scores[0] == 0, "its price is missing"
    assert found[0].column_scores.all()
    page = AttributionPicture(found[0]).html()
    assert "the country_X_stars" in page
    assert f"scores add up to {found[0].difference:+.3f}" in page


@pytest.mark.slow
def test_attributions_in_the_graph(classifier, eagerly):
    with eagerly():
        expected = classifier.attribute(frame()[:3])
    for one, other in zip(classifier.attribute(frame()[:3]), expected, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, atol=TOLERANCE)
        np.testing.assert_allclose(one.column_scores, other.column_scores, atol=TOLERANCE)


def test_scores_of_columns_are_those_of_the_midpoint_rule(classifier, eagerly):
    """Beside an empty text, whose path is a point, the columns alone change."""
    row = frame(text="").iloc[0].to_dict()
    with eagerly():
        found = classifier.attribute(row, "yes")
    assert not found.scores.any()
    features, points = classifier.pipeline.features, 1000
    end = classifier.pipeline.beside(classifier.pipeline.columns(tuple([value] for value in row.values())))["columns"]
    start = features(np.array([np.nan]), np.array([""], object), np.array([-1]))
    share = (np.arange(points, dtype="float32")[:, None] + 0.5) / points
    ids = {name: tf.repeat(values, points, axis=0) for name, values in classifier.preprocessor([""]).items()}
    with tf.GradientTape() as tape:
        columns = start + share * (end - start)
        tape.watch(columns)
        logits = classifier({**ids, "columns": columns})[:, 1]
    scores = tf.reduce_mean(tape.gradient(logits, columns), axis=0) * (end - start)[0]
    expected = [part.numpy().sum() for part in tf.split(scores, [1, 4, 4, 32])]
    np.testing.assert_allclose(found.column_scores, expected, atol=MIDPOINT_TOLERANCE)
