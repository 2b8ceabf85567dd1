"""The warning about texts that are longer than the model reads."""

import warnings

import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.tasks.feeding.cut_texts import EXAMINED_ROWS, CutTexts, num_special_tokens, token_counts

LONG = "good " * 8  # one token too many beside [CLS] and [SEP] in the fixture's 9


@pytest.fixture
def texts_of():
    def texts_of(*texts):
        return np.array(texts, object)

    return texts_of


@pytest.fixture
def silent():
    """Any warning is an error within; the settings of the tests ignore this one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_the_warning_counts_texts_and_names_a_cure(preprocessor, texts_of):
    cuts = CutTexts("Task")
    text = (
        r"`Task`: 2 of the 4 texts that were looked at are longer than `max_length=9` tokens, and are cut; the longest "
        r"has 12\. Give the preprocessor a larger `max_length`"
    )
    with pytest.warns(UserWarning, match=text):
        cuts.look(preprocessor, texts_of(LONG, "a", "bad " * 10, "x" * 20))


def test_the_warning_is_shown_once(preprocessor, texts_of, silent):
    cuts = CutTexts("Task")
    with pytest.warns(UserWarning, match="1 of the 1 texts"):
        cuts.look(preprocessor, texts_of(LONG))
    cuts.look(preprocessor, texts_of(LONG))


@pytest.mark.parametrize("text", ["good " * 7, "unhappy " * 2, "", "é" * 6, b"\xff good", "night" * 5])
def test_no_warning_for_texts_that_fit(preprocessor, texts_of, silent, text):
    CutTexts("Task").look(preprocessor, texts_of(text))


def test_pairs_and_prompts(preprocessor, texts_of, silent):
    pair = texts_of("good good good"), texts_of("bad bad bad")
    CutTexts("Task").look(preprocessor, pair)
    with pytest.warns(UserWarning, match="the longest has 10"):
        CutTexts("Task").look(preprocessor, (pair[0], texts_of("bad " * 4)))
    with pytest.warns(UserWarning, match="the longest has 10"):
        CutTexts("Task").look(preprocessor, texts_of("good " * 7), "a ")


def test_the_first_rows_are_examined(preprocessor, silent):
    CutTexts("Task").look(preprocessor, np.array(["a"] * EXAMINED_ROWS + [LONG], object))
    CutTexts("Task").look(preprocessor, np.zeros(0, object))


@pytest.fixture
def eager(new_backbone, preprocessor):
    def eager(make, **options):
        task = make(new_backbone(), preprocessor=preprocessor, **options)
        task.compile(run_eagerly=True)
        return task

    return eager


@pytest.mark.parametrize("method", ["fit", "predict", "answer"])
def test_a_classifier_warns(eager, method):
    classifier = eager(kbl.BertClassifier, num_classes=2)
    arguments = ([LONG, "a"], [0, 1]) if method == "fit" else ([LONG, "a"],)
    with pytest.warns(UserWarning, match="`BertClassifier`: 1 of the 2 texts"):
        getattr(classifier, method)(*arguments, **({} if method == "answer" else {"verbose": 0}))


@pytest.mark.parametrize(
    ("make", "x", "num_texts"),
    [
        (kbl.BertSentenceEncoder, (["a", LONG], ["b", "c"]), 4),
        (kbl.BertMultipleChoice, (["a", "good good"], [["b", LONG], ["c", ""]]), 3),
    ],
)
def test_how_the_texts_of_a_row_are_read(eager, make, x, num_texts):
    with pytest.warns(UserWarning, match=f"1 of the {num_texts} texts"):
        eager(make).predict(x, verbose=0)


@pytest.mark.usefixtures("traces_nothing")
def test_the_sides_of_a_dual_encoder_warn_once(eager):
    encoder = eager(kbl.BertDualEncoder)
    with pytest.warns(UserWarning, match="`BertDualEncoder`: 1 of the 1 texts"):
        encoder.encode_documents([LONG], verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode_queries([LONG], verbose=0)


@pytest.mark.usefixtures("traces_nothing")
def test_windows_cut_nothing(eager, silent):
    eager(kbl.BertTokenClassifier, tag_names=["O", "B-a", "I-a"]).predict([LONG, LONG], verbose=0)


def test_lengths_of_every_kind_of_rows(tokenizer):
    texts = tf.constant(["good", "unhappy film !", ""])
    assert token_counts(tokenizer, texts).numpy().tolist() == [1, 4, 0]
    negatives = tf.constant([["bad", ""], ["a bad", "night"], ["", ""]])
    assert token_counts(tokenizer, (texts, negatives)).numpy().tolist() == [2, 7, 0]
    words = tf.ragged.constant([["good", "unhappy"], [], ["film"]])
    assert token_counts(tokenizer, words).numpy().tolist() == [3, 0, 1]


def test_special_tokens_are_those_of_the_preprocessor(tokenizer, preprocessor):
    pair = (["good"], ["bad film"])
    for texts in (pair[0], pair):
        columns = texts if isinstance(texts, tuple) else (texts,)
        num_tokens = int(token_counts(tokenizer, tuple(map(tf.constant, columns)))[0])
        kept = int(preprocessor(texts)["padding_mask"].numpy().sum())
        assert num_tokens + num_special_tokens(tokenizer, len(columns)) == kept
