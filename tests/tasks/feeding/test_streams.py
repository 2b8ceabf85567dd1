"""Generators, `keras.utils.PyDataset`, tables of the library `datasets`, dictionaries and columns of Arrow."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.data import Columns
from keras_bert_layers.tasks.feeding.streams import (
    BatchStream,
    as_dataset,
    batches_of_pydataset,
    from_table,
    texts_of_table,
)
from keras_bert_layers.tasks.inputs.questions import QuestionInputs

TEXTS = ["a good film", "bad night", "good !", "unhappy", "film"]
NAMES = ["good", "bad", "good", "bad", "good"]
ROUNDING = 1e-6  # float32 sums in batches of other sizes

pytestmark = pytest.mark.filterwarnings(
    "ignore:Your input ran out of data:UserWarning",  # Keras's, of generators that end
    "ignore:`shuffle=True` was passed:UserWarning",
)


class Batches(keras.utils.PyDataset):
    """Batches of two rows."""

    def __init__(self, x, *others):
        super().__init__()
        self.columns = x, *others
        self.epochs = []

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return _rows(self.columns, slice(2 * index, 2 * index + 2))

    def on_epoch_end(self):
        self.epochs.append("end")


def _rows(column, rows):
    """Rows of a column, or of all columns in a tuple or a dictionary."""
    if isinstance(column, tuple):
        return tuple(_rows(part, rows) for part in column)
    return {key: part[rows] for key, part in column.items()} if isinstance(column, dict) else column[rows]


def generator(*columns):
    batches = Batches(*columns)
    for index in range(len(batches)):
        yield batches[index]


class Table:
    """Like a `datasets.Dataset`: columns by name."""

    def __init__(self, **columns):
        self.columns = columns
        self.column_names = list(columns)

    def __getitem__(self, name):
        return self.columns[name]


@pytest.fixture(scope="module")
def make(new_backbone, preprocessor):
    def make(kind, **options):
        task = kind(new_backbone(), preprocessor=preprocessor, **options)
        task.backbone.trainable = False  # the tests are of the data
        task.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
        return task

    return make


@pytest.fixture(scope="module")
def classifier(make):
    """One for all tests, which may train it."""
    return make(kbl.BertClassifier, class_names=["bad", "good"])


@pytest.fixture(scope="module")
def fit(classifier, preprocessor):
    """Trains from the same weights each time, and gives the logits after it."""
    weights = classifier.get_weights()

    def fit(*data, **options):
        classifier.set_weights(weights)
        classifier.fit(*data, shuffle=False, verbose=0, **options)
        return np.asarray(classifier(preprocessor(TEXTS)))

    return fit


@pytest.fixture(scope="module")
def expected(fit):
    """The logits after training on the rows in their order."""
    return fit(TEXTS, NAMES, 2)


def ids_of(preprocessor):
    return {name: np.asarray(values) for name, values in preprocessor(TEXTS).items()}


@pytest.mark.parametrize("kind", ["generator", "PyDataset", "table", "generator of ids", "PyDataset of ids"])
def test_fit_is_that_of_the_rows(fit, preprocessor, expected, kind):
    ids, labels = ids_of(preprocessor), np.array([1, 0, 1, 0, 1])
    x = {
        "generator": lambda: generator(TEXTS, NAMES),
        "PyDataset": lambda: Batches(TEXTS, NAMES),
        "table": lambda: Table(id=range(5), text=TEXTS, label=[1, 0, 1, 0, 1]),
        "generator of ids": lambda: generator(ids, labels),
        "PyDataset of ids": lambda: Batches(ids, labels),
    }[kind]()
    np.testing.assert_allclose(fit(x, batch_size=2 if kind == "table" else None), expected, atol=ROUNDING)


def rows_as_dictionaries(texts, labels):
    """The same rows in every form with names."""
    rows, outside = {"id": range(5), "text": texts, "label": labels}, {"text": texts}
    return {
        "dictionary": (rows, None),
        "dictionary beside labels": (outside, labels),
        "dataset": (tf.data.Dataset.from_tensor_slices({"text": texts, "label": labels}).batch(2), None),
        "dataset of pairs": (tf.data.Dataset.from_tensor_slices((outside, labels)).batch(2), None),
        "generator": (generator(outside, labels), None),
        "PyDataset": (Batches(outside, labels), None),
    }


def first_batch(task, x, y=None):
    x, y = from_table(task.pipeline, x, y)
    x, is_raw = as_dataset(task.pipeline, x)
    assert is_raw
    return next(iter(task.pipeline.batches(x, y, batch_size=None if isinstance(x, tf.data.Dataset) else 2)))


def test_dictionaries_and_datasets_of_them(classifier):
    expected = first_batch(classifier, TEXTS, NAMES)
    for x, y in rows_as_dictionaries(TEXTS, NAMES).values():
        keras.tree.map_structure(np.testing.assert_array_equal, first_batch(classifier, x, y), expected)
    outputs = classifier.predict(TEXTS, verbose=0)
    for x, _ in rows_as_dictionaries(TEXTS, NAMES).values():
        if isinstance(x, (dict, tf.data.Dataset, Batches)):
            np.testing.assert_allclose(classifier.predict(x, verbose=0), outputs, atol=ROUNDING)
    assert len(list(classifier.predict_stream({"text": TEXTS}))) == 5
    with pytest.raises(ValueError, match=r"`x` must have the columns \['text'\]. Received: x=\['texts'\]"):
        classifier.predict({"texts": TEXTS})


def test_validation_data_of_dictionaries(classifier):
    batches = classifier.pipeline.batches
    expected = next(iter(batches.validation((TEXTS, NAMES), 2)))
    dataset = tf.data.Dataset.from_tensor_slices({"text": TEXTS, "label": NAMES}).batch(2)
    for data in ({"text": TEXTS, "label": NAMES}, ({"text": TEXTS}, NAMES), dataset, Batches({"text": TEXTS}, NAMES)):
        keras.tree.map_structure(np.testing.assert_array_equal, next(iter(batches.validation(data, 2))), expected)


def test_pairs_in_dictionaries(make, eagerly):
    pairs, others = TEXTS[:4], TEXTS[1:]
    expected = first_batch(make(kbl.BertClassifier, class_names=["bad", "good"]), (pairs, others), NAMES[:4])
    for x in (
        {"text": pairs, "text_pair": others},
        tf.data.Dataset.from_tensor_slices(({"text": pairs, "text_pair": others}, NAMES[:4])).batch(2),
    ):
        task = make(kbl.BertClassifier, class_names=["bad", "good"])
        found = first_batch(task, x, NAMES[:4] if isinstance(x, dict) else None)
        keras.tree.map_structure(np.testing.assert_array_equal, found, expected)
    encoder = make(kbl.BertCrossEncoder)
    names = list(encoder.text_inputs())
    with eagerly():
        found = encoder.answer(dict(zip(names, (pairs, others), strict=True)))["score"]
        np.testing.assert_allclose(found, encoder.answer((pairs, others))["score"], atol=ROUNDING)
        one = encoder.answer(dict(zip(names, (pairs[0], others[0]), strict=True)))["score"]
    np.testing.assert_allclose(one, found[0], atol=ROUNDING)


def test_one_text(classifier):
    expected = classifier.predict(TEXTS[:1], verbose=0)[0]
    for text in (TEXTS[0], TEXTS[0].encode(), {"text": TEXTS[0]}):
        np.testing.assert_allclose(classifier.predict(text, verbose=0), expected, atol=ROUNDING)


def test_columns_of_arrow(classifier, make):
    arrow = pytest.importorskip("pyarrow", reason="needs pyarrow, from the extra `parquet`")
    expected = first_batch(classifier, TEXTS, NAMES)
    table = arrow.table({"text": TEXTS, "label": NAMES})
    forms = [arrow.array(TEXTS), arrow.chunked_array([TEXTS[:2], TEXTS[2:]]), arrow.array(TEXTS, arrow.large_string())]
    labels = [arrow.array(NAMES), arrow.array([1, 0, 1, 0, 1]), arrow.array(NAMES).dictionary_encode()]
    for x, y in [*zip(forms, labels, strict=True), (table, None), (table.to_batches()[0], None)]:
        keras.tree.map_structure(np.testing.assert_array_equal, first_batch(classifier, x, y), expected)
    with pytest.raises(TypeError, match="Received: None in row 1. Missing values"):
        classifier.predict(arrow.array(["a", None]))
    tagger = make(kbl.BertTokenClassifier, tag_names=["O", "B-x", "I-x"])
    words, tags = [["a", "good"], ["film"]], [["O", "B-x"], ["O"]]
    checked = tagger.pipeline.batches.checked
    same_rows(checked(arrow.array(words), arrow.array(tags), None), checked(words, tags, None))


def test_rows_of_spacy(make):
    tagger = make(kbl.BertTokenClassifier, tag_names=["O", "B-x", "I-x"])
    texts, spans = ["a good film", "bad night"], [[(2, 11, "x")], []]
    checked = tagger.pipeline.batches.checked
    expected = checked(texts, spans, None)
    rows = [(text, {"entities": [list(span) for span in row]}) for text, row in zip(texts, spans, strict=True)]
    for x, y in ((rows, None), (texts, [{"entities": row} for row in spans]), ({"text": texts}, spans)):
        same_rows(checked(x, y, None), expected)
    assert texts_of_table(tagger.pipeline, rows) == texts
    assert tagger.pipeline.batches.validation(rows, 2).element_spec[0].keys() == {
        "token_ids",
        "segment_ids",
        "padding_mask",
    }
    with pytest.raises(TypeError, match="spans must be a list"):
        checked(texts, [{"spans": []}, {}], None)


def same_rows(found, expected):
    tf.nest.map_structure(
        np.testing.assert_array_equal,
        *(tf.nest.flatten(rows, expand_composites=True) for rows in (found[:2], expected[:2])),
    )


def test_columns_of_the_readers(make, classifier):
    words, tags = [["a", "good"], ["film"]], [["O", "B-x"], ["O"]]
    tagger = make(kbl.BertTokenClassifier, tag_names=["O", "B-x", "I-x"])
    assert from_table(tagger.pipeline, Columns(["words", "tags"], [words, tags])) == (words, tags)
    assert from_table(classifier.pipeline, Columns(["first", "labels"], [TEXTS, NAMES])) == (TEXTS, NAMES)
    pairs = Columns(["first", "second", "labels"], [TEXTS, NAMES, [1, 0, 1, 0, 1]])
    assert from_table(classifier.pipeline, pairs) == ((TEXTS, NAMES), [1, 0, 1, 0, 1])
    assert texts_of_table(classifier.pipeline, Columns(["first", "second"], [TEXTS, NAMES])) == (TEXTS, NAMES)
    others = Columns(["documents"], [[["a"]]])
    assert texts_of_table(classifier.pipeline, others) is others
    questions = QuestionInputs("Owner", classifier.preprocessor, fill_value=0.0)
    names = ["ids", "questions", "contexts", "answers", "answer_starts"]
    read = Columns(names, [["1"], ["good ?"], ["a good film"], [["good"]], [[2]]])
    assert from_table(questions, read) == ((["good ?"], ["a good film"]), ([[2]], [["good"]]))


@pytest.mark.slow
def test_evaluate_and_validate(make):
    classifier = make(kbl.BertClassifier, class_names=["bad", "good"])
    expected = classifier.evaluate(TEXTS, NAMES, 2, verbose=0)
    for x in (generator(TEXTS, NAMES), Batches(TEXTS, NAMES), Table(text=TEXTS, label=[1, 0, 1, 0, 1])):
        assert classifier.evaluate(x, verbose=0) == pytest.approx(expected, rel=ROUNDING)
    classifier.optimizer.learning_rate = 0.0
    batches = Batches(TEXTS, NAMES)
    history = classifier.fit(batches, epochs=2, validation_data=Batches(TEXTS, NAMES), verbose=0).history
    assert history["val_loss"] == pytest.approx([expected[0]] * 2, rel=ROUNDING)
    assert batches.epochs == ["end", "end"]


def test_predict(classifier, preprocessor, eagerly):
    expected = classifier.predict(TEXTS, verbose=0)
    for x in (Batches(TEXTS, NAMES), Batches(TEXTS), Batches(ids_of(preprocessor)), Table(text=TEXTS)):
        np.testing.assert_allclose(classifier.predict(x, verbose=0), expected, atol=ROUNDING)
    assert classifier.predict(Batches(TEXTS), steps=2, verbose=0).shape == (4, 2)
    with eagerly():
        assert classifier.answer(Table(text=TEXTS[:2]))["label"].shape == (2,)


def test_each_epoch_has_its_order():
    keras.utils.set_random_seed(5)
    orders = [tuple(batch[0] for batch in batches_of_pydataset(Batches(np.arange(6)), shuffle=True)) for _ in range(9)]
    assert {tuple(sorted(map(tuple, order))) for order in orders} == {((0, 1), (2, 3), (4, 5))}
    assert len({str(order) for order in orders}) > 2


CHOICES = [["a", "b"], ["c", "d"], ["a", "b", "c"], ["d"], ["a"], ["b"]]


@pytest.mark.parametrize(
    ("kind", "x", "y", "options"),
    [
        (
            kbl.BertTokenClassifier,
            [["a", "good"], ["film"]] * 3,
            [["O", "B-x"], ["O"]] * 3,
            {"tag_names": ["O", "B-x", "I-x"]},
        ),
        (kbl.BertMultipleChoice, (["good"] * 6, CHOICES), [0, 1, 2, 0, 0, 0], {}),
        (kbl.BertSentenceEncoder, (["good"] * 6, ["bad", "film"] * 3), [0.5] * 6, {}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_batches_of_other_tasks(make, kind, x, y, options):
    data = make(kind, **options).pipeline
    dataset, _ = as_dataset(data, Batches(x, y))
    found, expected = (
        list(batches.as_numpy_iterator()) for batches in (data.batches(dataset), data.batches(x, y, batch_size=2))
    )
    assert len(found) == 3
    keras.tree.map_structure(np.testing.assert_array_equal, found, expected)


def test_words_of_a_table(make):
    tagger = make(kbl.BertTokenClassifier, tag_names=["O", "B-x", "I-x"])
    table = Table(tokens=[["a", "good"], ["film"]], ner_tags=[[0, 1], [0]])
    assert from_table(tagger.pipeline, table) == ([["a", "good"], ["film"]], [[0, 1], [0]])


def named(names, values, *, lists=False, **columns):
    """A table whose labels are ids of its own names, as a `ClassLabel` has them, or a `Sequence` of one."""
    label = "ner_tags" if lists else "label"
    table, feature = Table(**columns, **{label: values}), SimpleNamespace(names=names)
    table.features = {label: SimpleNamespace(feature=feature) if lists else feature}
    return table


@pytest.mark.parametrize("ids", [[0, 1, 0, 1, 0], np.array([0, 1, 0, 1, 0]), tf.constant([0, 1, 0, 1, 0])])
def test_ids_of_a_table_mean_its_own_names(classifier, ids):
    assert from_table(classifier.pipeline, named(["good", "bad"], ids, text=TEXTS)) == (TEXTS, NAMES)


def test_a_table_with_names_is_evaluated_and_validated_by_them(classifier):
    table = named(["good", "bad", "unused"], [0, 1, 0, 1, 0], text=TEXTS)
    expected = classifier.evaluate(TEXTS, NAMES, verbose=0)
    assert classifier.evaluate(table, verbose=0) == pytest.approx(expected, rel=ROUNDING)
    found, labels = (next(iter(classifier.pipeline.batches.validation(x, 5)))[1] for x in (table, (TEXTS, NAMES)))
    np.testing.assert_array_equal(found, labels)


def test_lists_of_ids_of_a_table_mean_its_own_names(make):
    names = ["B-x", "I-x", "O"]
    tagger = make(kbl.BertTokenClassifier, tag_names=["O", "B-x", "I-x"])
    table = named(names, [[2, 0], [-100]], lists=True, tokens=[["a", "good"], ["film"]])
    assert from_table(tagger.pipeline, table)[1] == [["O", "B-x"], [-100]]
    several = make(kbl.BertClassifier, class_names=["a", "b"], problem_type="multi_label_classification")
    table = named(["b", "a"], [[0], [], [0, 1]], lists=True, text=TEXTS[:3])
    assert from_table(several.pipeline, table)[1] == [["b"], [], ["b", "a"]]


def test_ids_without_names_on_one_side_stay(make, classifier):
    ids, unnamed = [0, 1, 0, 1, 0], make(kbl.BertClassifier, num_classes=2)
    assert from_table(unnamed.pipeline, named(["good", "bad"], ids, text=TEXTS))[1] == ids
    assert from_table(classifier.pipeline, named(["0", "1"], ids, text=TEXTS))[1] == ids
    assert from_table(classifier.pipeline, named(["good", "bad"], [-1] * 5, text=TEXTS))[1] == [-1] * 5


def test_names_of_a_table_that_the_task_lacks(classifier):
    table = named(["fine", "bad"], [1, 0, 1, 0, 1], text=TEXTS)
    with pytest.raises(ValueError, match=r"labels of the task, \['bad', 'good'\].*x='fine' of \['fine', 'bad'\]"):
        classifier.fit(table)
    assert classifier.predict(table, verbose=0).shape == (5, 2)  # labels are not read


@pytest.mark.slow
def test_answers_to_questions(make):
    questions, contexts = ["good ?"] * 6, ["a bad film"] * 6
    answerer = make(kbl.BertQuestionAnswerer)
    expected = answerer.evaluate((questions, contexts), ([2] * 6, ["bad"] * 6), verbose=0)
    batches = Batches((questions, contexts), ([2] * 6, ["bad"] * 6))
    assert answerer.evaluate(batches, verbose=0) == pytest.approx(expected, rel=1e-5)
    rows = [{"text": ["bad"], "answer_start": [2]}] * 6
    table = Table(question=questions, context=contexts, answers=rows)
    assert answerer.evaluate(table, verbose=0) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("method", ["fit", "evaluate"])
def test_a_wrong_batch_has_its_own_error(classifier, method):
    labels = [*NAMES[:3], "awful", "good"]
    for x in (Batches(TEXTS, labels), generator(TEXTS, labels)):
        with pytest.raises(
            ValueError, match=r"every label must be one of \['bad', 'good'\]. Received: 'awful' in row 1"
        ):
            getattr(classifier, method)(x, verbose=0)
    with pytest.raises(ValueError, match="`batch_size` must be None"):
        getattr(classifier, method)(Batches(TEXTS, NAMES), batch_size=2)


def test_errors(classifier, new_backbone):
    with pytest.raises(ValueError, match="A generator must yield at least one batch"):
        classifier.fit(batch for batch in ())
    with pytest.raises(ValueError, match="`preprocessor` must be given for raw text"):
        kbl.BertClassifier(new_backbone(), 2).fit(generator(TEXTS, NAMES))
    with pytest.raises(
        ValueError, match=r"`x` must have the columns \['text'\].*rename_column\(\"sentence\", \"text\"\)"
    ):
        classifier.fit(Table(sentence=TEXTS, label=[0] * 5))
    splits = Table(text=TEXTS)
    splits.column_names = {"train": ["text"]}
    with pytest.raises(ValueError, match=r"`x` must be one split.*\[\"train\"\]"):
        classifier.predict(splits)


def test_labels_beside_a_table(classifier):
    table = Table(text=TEXTS, label=NAMES)
    assert from_table(classifier.pipeline, table) == (TEXTS, NAMES)
    assert from_table(classifier.pipeline, table, [1])[1] == [1]
    assert from_table(classifier.pipeline, Table(text=TEXTS))[1] is None


def test_a_dataset_of_a_stream(classifier):
    data = classifier.pipeline
    dataset, is_raw = as_dataset(data, Batches(TEXTS, NAMES, np.ones(5, "float32")))
    assert is_raw
    assert int(dataset.cardinality()) == 3
    assert dataset.element_spec == (
        tf.TensorSpec([None], tf.string),
        tf.TensorSpec([None], tf.int32),
        tf.TensorSpec([None], tf.float32),
    )
    assert as_dataset(data, TEXTS) == (TEXTS, True)
    assert not BatchStream.takes(TEXTS)
