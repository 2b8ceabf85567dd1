"""Exported models of real weights give the same answers to the same strings in every batch."""

import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.preprocessing import SpanPreprocessor

# float32 sums in another order: a batch of another size goes through other blocks of the matrix product.
TOLERANCE = 1e-5
SHORT, LONG = (
    "Paris is [MASK].",
    "The [MASK] river rises in the hills, and flows through two old towns to the sea. " * 9,
)
TEXTS = [SHORT, LONG, "", "Ünïcode, 東京 and …", "a", LONG[:300], "[SEP] [SEP]", "good 😀"]
QUESTIONS = ["Where does it rise?", "What?", "", "Who?", "How old are the towns?", "Where?", "Why?", "Which?"]
CHOICES = [[text, "no", LONG[:200]] for text in ["yes", "sea", "", "two", "a", "b", "c", "d"]]
MAKERS = {
    "classifier": (lambda b, p: kbl.BertClassifier(b, 3, preprocessor=p), [TEXTS]),
    "pairs": (lambda b, p: kbl.BertClassifier(b, 3, pairs=True, preprocessor=p), [QUESTIONS, TEXTS]),
    "labels": (
        lambda b, p: kbl.BertClassifier(b, 3, problem_type="multi_label_classification", preprocessor=p),
        [TEXTS],
    ),
    "tags": (lambda b, p: kbl.BertTokenClassifier(b, ["O", "B-a", "I-a"], preprocessor=p), [TEXTS]),
    "field": (lambda b, p: kbl.BertTokenClassifier(b, ["O", "B-a", "I-a"], crf=True, preprocessor=p), [TEXTS]),
    "answers": (
        lambda b, p: kbl.BertQuestionAnswerer(b, SpanPreprocessor(p.tokenizer, 48, stride=16)),
        [QUESTIONS, TEXTS],
    ),
    "choices": (lambda b, p: kbl.BertMultipleChoice(b, preprocessor=p), [TEXTS, CHOICES]),
    "masks": (lambda b, p: kbl.BertMaskedLM(b, p, top_k=2), [TEXTS]),
    "pretrainer": (lambda b, p: kbl.BertPretrainer(b, p, top_k=2), [QUESTIONS, TEXTS]),
    "vectors": (lambda b, p: kbl.BertSentenceEncoder(b, preprocessor=p), [TEXTS]),
    "search": (lambda b, p: kbl.BertDualEncoder(b, preprocessor=p), [TEXTS]),
    "ranking": (kbl.BertCrossEncoder, [QUESTIONS, TEXTS]),
}
ORDERS = [list(range(8)), [7, 0, 6, 1, 5, 2, 4, 3]]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MAKERS)
def test_any_batch(name, minilm, tmp_path):
    make, columns = MAKERS[name]
    task = make(kbl.load_backbone(minilm), kbl.load_preprocessor(minilm, max_length=48))
    task.export(tmp_path / "model")
    served = tf.saved_model.load(str(tmp_path / "model")).signatures
    names = list(task.signatures()[0].inputs)
    for signature in set(served) - {"token_ids", "document_token_ids"}:
        alone = [ask(served[signature], names, columns, [row]) for row in range(8)]
        for order in ORDERS:
            for size in (3, 8):
                for start in range(0, 8, size):
                    rows = order[start : start + size]
                    found = ask(served[signature], names, columns, rows)
                    for place, row in enumerate(rows):
                        assert_equal({key: values[place] for key, values in found.items()}, alone[row], signature)


def ask(served, names, columns, rows):
    inputs = {name: tf.constant([column[row] for row in rows]) for name, column in zip(names, columns, strict=True)}
    return {name: value.numpy() for name, value in served(**inputs).items()}


def assert_equal(row, alone, signature):
    """A row of a batch equals its own batch of one, except for the padding to the longest."""
    for name, values in row.items():
        expected = alone[name][0]
        shape = np.shape(expected)
        found = values[tuple(slice(0, size) for size in shape)] if shape else values
        if np.asarray(expected).dtype.kind == "f":
            np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=TOLERANCE, err_msg=f"{signature} {name}")
        else:
            np.testing.assert_array_equal(found, expected, err_msg=f"{signature} {name}")
