"""Every signature of every task, in a process without Python, beside Keras."""

import numpy as np
import pytest
from c_api.cases import CASES
from c_api.server_process import INVALID_ARGUMENT, NOT_FOUND

# The same float32 operations in two processes: threads sum in another order, and TensorFlow rewrites the graph that it
# serves. Logits of large random weights are near 10, so the bound is relative as well. Measured: 6e-6.
TOLERANCE = 1e-5
# The same products in bfloat16, which has 8 bits, of vectors of length 1.
BFLOAT16 = 5e-3
# The cheapest of the tasks with the whole tokenizer, and one with offsets.
QUICK = ("classifier", "token_classifier")


@pytest.fixture(scope="module")
def classifier(served_task):
    return served_task("classifier")


@pytest.fixture(scope="module")
def server(classifier, start):
    """A server as strict as they come: operations of an older one, and no XLA."""
    with start(classifier.model, older=True) as server:
        yield server


@pytest.fixture
def assert_equals_keras(texts, assert_same):
    """Asks every signature of a task about the texts."""

    def assert_equals_keras(served, server):
        for signature in served.signatures:
            inputs = served.inputs(signature, texts)
            answer = server.ask(signature, inputs)
            assert answer.message == ""
            found = served.meaningful(signature, inputs, answer.outputs)
            expected = served.meaningful(signature, inputs, served.ask_keras(signature, texts))
            largest = assert_same(found, expected, tolerance=TOLERANCE, hint=f"of {signature}")
            print(f"{served.name} | {signature} | {largest:.1e}")

    return assert_equals_keras


def test_classifier_equals_keras(classifier, server, assert_equals_keras):
    assert_equals_keras(classifier, server)


def test_answers_equal_answer(classifier, server, texts, assert_same):
    """`answer` sorts by length and cuts into batches; the server is asked for all at once."""
    found = server.ask("serving_default", {"text": texts}).outputs
    assert_same(found, classifier.task.answer(texts, batch_size=4), tolerance=TOLERANCE)


def test_bad_requests_are_refused_and_good_ones_answered_after(classifier, server, texts, assert_same):
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
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES if name != "classifier"],
)
def test_tasks_equal_keras_in_the_strictest_server(name, served_task, start, assert_equals_keras):
    """What runs there runs where there is more."""
    served = served_task(name)
    with start(served.model, older=True) as server:
        assert_equals_keras(served, server)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_tasks_equal_keras_in_a_server_of_today(name, served_task, start, assert_equals_keras):
    served = served_task(name)
    with start(served.model, allow_xla=True) as server:
        assert_equals_keras(served, server)


@pytest.mark.slow
def test_a_question_without_room_is_refused_in_words(served_task, start, texts):
    served = served_task("question_answerer")
    with start(served.model) as server:
        answer = server.ask("serving_default", {"question": np.array([b"why " * 99]), "context": texts[:1]})
        assert answer.code == INVALID_ARGUMENT
        assert "a question must have at most" in answer.message
        assert server.ask("serving_default", served.inputs("serving_default", texts)).message == ""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_real_weights(dtype, minilm, start, texts, assert_same, tmp_path):
    import keras_bert_layers as kbl
    from keras_bert_layers.export._dtype_copy import copy_in_dtype

    encoder = kbl.load_task(minilm)
    encoder.export(tmp_path / "model", dtype=dtype)
    with start(tmp_path / "model", older=True) as server:
        found = server.ask("serving_default", {"text": texts})
    expected = copy_in_dtype(encoder, dtype).answer(texts, batch_size=len(texts))
    largest = assert_same(found.outputs, expected, tolerance={"float32": TOLERANCE, "bfloat16": BFLOAT16}[dtype])
    print(f"{dtype}: largest difference {largest:.1e}, at most {found.peak_bytes / 1e6:.0f} MB")
