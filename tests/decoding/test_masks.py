import numpy as np
import pytest

from keras_bert_layers._internal.lazy import tf
from keras_bert_layers.decoding import decode_masks, find_masks

MASK = 9
VOCABULARY = ["a", "b", "##c", "d"]
# A softmax in float32, against float64.
FLOAT32 = 1e-6


@pytest.mark.parametrize(
    ("ids", "positions", "counts"),
    [
        ([[2, 9, 4, 9], [9, 9, 9, 2], [2, 3, 4, 4]], [[1, 3, 0], [0, 1, 2], [0, 0, 0]], [2, 3, 0]),
        ([[2, 3], [4, 4]], [[], []], [0, 0]),
    ],
)
def test_find(ids, positions, counts):
    found, numbers = find_masks(ids, MASK)
    np.testing.assert_array_equal(found, np.array(positions, int).reshape(len(ids), -1))
    assert numbers.numpy().tolist() == counts
    assert found.dtype == tf.int32


def test_find_in_no_rows():
    found, numbers = find_masks(np.zeros((0, 5), "int32"), MASK)
    assert (found.shape, numbers.shape) == ((0, 0), (0,))


@pytest.fixture(scope="module")
def logits():
    return np.random.default_rng(3).normal(size=(3, 2, 4)).astype("float32")


COLUMNS = np.array([[0, 3], [1, -1], [-1, -1]], "int32")


def softmax(values):
    exponentials = np.exp(values.astype("float64"))
    return exponentials / exponentials.sum()


@pytest.mark.parametrize("top_k", [1, 3, 4])
def test_decode(logits, top_k):
    answer = decode_masks(logits, COLUMNS, VOCABULARY, num_columns=5, top_k=top_k)
    assert answer["token"].shape == answer["probability"].shape == (3, 5, top_k)
    assert answer["probability"].dtype == tf.float32
    for row in range(3):
        for column in range(5):
            tokens, probabilities = answer["token"][row, column].numpy(), answer["probability"][row, column].numpy()
            if column not in COLUMNS[row]:
                assert tokens.tolist() == [b""] * top_k
                assert probabilities.tolist() == [-1.0] * top_k
                continue
            expected = softmax(logits[row, COLUMNS[row].tolist().index(column)])
            best = np.argsort(-expected)[:top_k]
            assert [token.decode() for token in tokens] == [VOCABULARY[index] for index in best]
            np.testing.assert_allclose(probabilities, expected[best], atol=FLOAT32)


def test_columns_of_the_logits_without_a_token_are_left_out(logits):
    wide = np.concatenate([logits, np.full((3, 2, 2), 9.0, "float32")], axis=-1)
    wide_answer = decode_masks(wide, COLUMNS, VOCABULARY, num_columns=5, top_k=2)
    answer = decode_masks(logits, COLUMNS, VOCABULARY, num_columns=5, top_k=2)
    np.testing.assert_array_equal(wide_answer["token"], answer["token"])
    np.testing.assert_allclose(wide_answer["probability"], answer["probability"], atol=FLOAT32)


@pytest.mark.parametrize("num_rows", [0, 2])
def test_decode_no_masks(num_rows):
    answer = decode_masks(
        np.zeros((num_rows, 0, 4), "float32"), np.zeros((num_rows, 0), "int32"), VOCABULARY, num_columns=0, top_k=2
    )
    assert answer["token"].shape == answer["probability"].shape == (num_rows, 0, 2)


def test_half_precision_and_large_logits():
    answer = decode_masks(
        tf.constant([[[1e4, 1e4 - 64, -1e4, 0]]], tf.bfloat16), [[0]], VOCABULARY, num_columns=1, top_k=4
    )
    assert np.isfinite(answer["probability"]).all()
    np.testing.assert_allclose(answer["probability"][0, 0], [1, 0, 0, 0], atol=FLOAT32)
