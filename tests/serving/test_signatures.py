"""Every signature of every task, in a process without Python, beside Keras."""

import numpy as np
import pytest
import tensorflow as tf
from c_api.cases import CASES
from c_api.comparison import TOLERANCE, assert_equals_keras, assert_same
from c_api.server_process import INVALID_ARGUMENT, NOT_FOUND

from keras_bert_layers.tasks.serving.answers import as_text

# The same products in bfloat16, which has 8 bits, of vectors of length 1.
BFLOAT16 = 5e-3
# The name of the strictest server in the table of differences.
OLDER = "C, operations of 2.12"
# The cheapest of the tasks with the complete tokenizer, and one with offsets.
OFTEN = "token_classifier"


@pytest.fixture(scope="module")
def classifier(served_task):
    return served_task("classifier")


@pytest.fixture(scope="module")
def server(classifier, start):
    """A server as strict as they come: operations of an older one, and no XLA."""
    with start(classifier.model, older=True) as server:
        yield server


@pytest.mark.usefixtures("traces_nothing")
def test_classifier_equals_keras(classifier, server, asked_as_keras):
    asked_as_keras(classifier, server, OLDER)


@pytest.mark.usefixtures("traces_nothing")
def test_answers_equal_answer(classifier, server, texts):
    """`answer` sorts by length and cuts into batches; the server gets all at once."""
    found = as_text(server.ask("serving_default", {"text": texts}).outputs)
    assert found.pop("bytes_cut").tolist() == [0] * len(texts)
    assert_same(found, classifier.task.answer(texts, batch_size=4), tolerance=TOLERANCE)


def test_bad_requests_are_refused_and_good_ones_answered_after(classifier, server, texts):
    good = server.ask("serving_default", {"text": texts})
    unknown = server.ask("serve", {"text": texts})
    assert (unknown.code, unknown.message) == (NOT_FOUND, "the model has no signature of this name")
    unknown = server.ask("serving_default", {"texts": texts})
    assert (unknown.code, unknown.message) == (INVALID_ARGUMENT, "the signature has no input of this name")
    wrong = server.ask("serving_default", {"text": np.array([3, 4], np.int32)})
    assert wrong.code == INVALID_ARGUMENT
    assert "string" in wrong.message
    missing = server.ask("token_ids", {"token_ids": np.array([[3, 4]], np.int32)})
    assert missing.code == INVALID_ARGUMENT
    assert "must feed a value" in missing.message
    assert_same(server.ask("serving_default", {"text": texts}).outputs, good.outputs, tolerance=0)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == OFTEN else pytest.mark.exhaustive)
        for name in CASES
        if name != "classifier"
    ],
)
@pytest.mark.usefixtures("traces_nothing")
def test_tasks_equal_keras_in_the_strictest_server(name, served_task, start, asked_as_keras):
    """Models that run there run in less strict servers too."""
    served = served_task(name)
    with start(served.model, older=True) as server:
        asked_as_keras(served, server, OLDER)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_tasks_equal_keras_in_a_server_of_today(name, served_task, start, asked_as_keras):
    served = served_task(name)
    with start(served.model, allow_xla=True) as server:
        asked_as_keras(served, server, "C")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CASES)
def test_tasks_equal_keras_in_python(name, served_task, texts):
    served = served_task(name)
    signatures = tf.saved_model.load(str(served.model)).signatures

    def ask(signature, inputs):
        outputs = signatures[signature](**{name: tf.constant(values) for name, values in inputs.items()})
        return {name: values.numpy() for name, values in outputs.items()}

    assert_equals_keras(served, ask, texts, runtime="Python")


@pytest.mark.exhaustive
@pytest.mark.parametrize("signature", ["serving_default", "n_best"])
def test_a_question_without_room_fails_alone(signature, served_task, start, texts):
    served = served_task("question_answerer")
    inputs = served.inputs(signature, texts)
    bad = {"question": np.insert(inputs["question"], 4, b"why " * 99), "context": np.insert(texts, 4, b"Because.")}
    with start(served.model, older=True) as server:
        good, answer = server.ask(signature, inputs), server.ask(signature, bad)
    assert answer.message == ""
    assert_same(
        {name: np.delete(values, 4, axis=0) for name, values in answer.outputs.items()},
        good.outputs,
        tolerance=TOLERANCE,
    )
    assert (good.outputs["no_answer_probability"] >= 0).all()
    assert answer.outputs["no_answer_probability"][4] == -1
    assert (answer.outputs["score"][4] == -1).all()
    assert (answer.outputs["bytes_cut"] == 0).all()
    assert set(answer.outputs["answer"][4:5].ravel()) == {b""}


@pytest.mark.exhaustive
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_real_weights(dtype, minilm, start, texts, tmp_path):
    import keras_bert_layers as kbl
    from keras_bert_layers.tasks.serving.export import copy_in_dtype

    encoder = kbl.load_task(minilm)
    encoder.export(tmp_path / "model", dtype=dtype)
    with start(tmp_path / "model", older=True) as server:
        found = server.ask("serving_default", {"text": texts})
    expected = copy_in_dtype(encoder, dtype).answer(texts, batch_size=len(texts))
    expected["bytes_cut"] = np.zeros(len(texts), np.int32)
    largest = assert_same(found.outputs, expected, tolerance={"float32": TOLERANCE, "bfloat16": BFLOAT16}[dtype])
    print(f"{dtype}: largest difference {largest:.1e}, at most {found.peak_bytes / 1e6:.0f} MB")
