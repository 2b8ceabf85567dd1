"""Training under the policy `mixed_bfloat16`."""

import keras
import numpy as np
import pytest

import keras_bert_layers as kbl
from keras_bert_layers.preprocessing import SpanPreprocessor
from keras_bert_layers.tasks.graphs.heads import backbones_of

TEXTS = ["a good film", "a bad night", "good , good night", "bad film !", "un", "a good", "bad", "night ?"]
OTHERS = ["good", "film", "night", "happy", "bad bad", "films", "!", "a night"]
CLASSES = ["good", "bad", "good", "bad", "bad", "good", "bad", "good"]
TAGS = ["O", "B-x", "I-x"]
WORDS = [text.split() for text in TEXTS]
# What 8 bits leave of a loss near 0.7, over a few steps.
LOSS_TOLERANCE = 0.05

# Task -> how it is made, and what it is fitted on.
CASES = {
    "classifier": (lambda b, p: kbl.BertClassifier(b, class_names=["bad", "good"], preprocessor=p), (TEXTS, CLASSES)),
    "tags": (
        lambda b, p: kbl.BertTokenClassifier(b, TAGS, preprocessor=p),
        (WORDS, [["B-x"] * len(row) for row in WORDS]),
    ),
    "field": (
        lambda b, p: kbl.BertTokenClassifier(b, TAGS, crf=True, preprocessor=p),
        (WORDS, [["B-x"] * len(row) for row in WORDS]),
    ),
    "answers": (
        lambda b, p: kbl.BertQuestionAnswerer(b, SpanPreprocessor(p.tokenizer, 9, stride=2)),
        ((["?"] * 8, TEXTS), ([[0]] * 8, [[text.split()[0]] for text in TEXTS])),
    ),
    "choices": (
        lambda b, p: kbl.BertMultipleChoice(b, preprocessor=p),
        ((TEXTS, [[other, "a"] for other in OTHERS]), [0, 1] * 4),
    ),
    "masks": (lambda b, p: kbl.BertMaskedLM(b, p, seed=3), (TEXTS, None)),
    "pretrainer": (lambda b, p: kbl.BertPretrainer(b, p, top_k=1, seed=3), ((TEXTS, OTHERS), [0, 1] * 4)),
    "vectors": (lambda b, p: kbl.BertSentenceEncoder(b, preprocessor=p), ((TEXTS, OTHERS), None)),
    "search": (lambda b, p: kbl.BertDualEncoder(b, preprocessor=p), ((TEXTS, OTHERS), None)),
    "ranking": (kbl.BertCrossEncoder, ((TEXTS, OTHERS), [0.0, 1.0] * 4)),
}


def make(case, new_backbone, preprocessor, policy):
    task = CASES[case][0](new_backbone(num_layers=2, initializer_range=0.2, dtype=policy), preprocessor)
    task.compile(optimizer=kbl.optimizers.adamw(5e-3))
    return task


def losses(task, case, *, epochs):
    x, y = CASES[case][1]
    return np.array(task.fit(x, y, batch_size=4, epochs=epochs, shuffle=False, verbose=0).history["loss"])


@pytest.mark.slow
def test_loss_falls_as_in_float32_and_the_model_comes_back(new_backbone, preprocessor, tmp_path):
    exact = losses(make("classifier", new_backbone, preprocessor, "float32"), "classifier", epochs=6)
    task = make("classifier", new_backbone, preprocessor, "mixed_bfloat16")
    found = losses(task, "classifier", epochs=6)
    assert found[-1] < found[0] - 2 * LOSS_TOLERANCE
    np.testing.assert_allclose(found, exact, atol=LOSS_TOLERANCE)
    assert {weight.dtype for weight in task.weights} == {"float32"}  # small updates of bfloat16 would be lost
    assert {variable.dtype for variable in task.optimizer.variables} <= {"float32", "int64", "int32"}
    task.save(tmp_path / "task.keras")
    again = keras.models.load_model(tmp_path / "task.keras")
    assert (again.dtype_policy.name, again.backbone.dtype_policy.name) == ("mixed_bfloat16", "mixed_bfloat16")
    for ours, theirs in zip(again.weights, task.weights, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(ours), keras.ops.convert_to_numpy(theirs))


@pytest.mark.exhaustive
@pytest.mark.parametrize("padding_free", [True, False], ids=["padding-free", "padded"])
@pytest.mark.parametrize("case", CASES)
def test_every_task_trains(case, padding_free, new_backbone, preprocessor):
    task = make(case, new_backbone, preprocessor, "mixed_bfloat16")
    for backbone in backbones_of(task):
        backbone.padding_free = padding_free
    found = losses(task, case, epochs=4)
    assert np.isfinite(found).all()
    if case not in ("masks", "pretrainer"):  # other masks in every epoch
        assert found[-1] < found[0]
    assert {weight.dtype for weight in task.weights} == {"float32"}
