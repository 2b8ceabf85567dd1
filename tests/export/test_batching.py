import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.export import Signature, write_saved_model
from keras_bert_layers.export.batching import refuse_foreign_padding

IDS = np.array([[2, 7, 9, 3], [2, 8, 3, 0]])
MASK = np.array([[1, 1, 1, 1], [1, 1, 1, 0]])


@pytest.mark.parametrize(
    ("function", "inputs", "found"),
    [
        (lambda x: {"y": tf.reduce_sum(x)}, {"x": ((None, 3), "float32")}, r"shape=\(\) of the output 'y'"),
        (
            lambda x: {"y": tf.reduce_sum(x, axis=0, keepdims=True)},
            {"x": ((None, 3), "float32")},
            r"shape=\(1, 3\) of the output 'y'",
        ),
        (lambda x: {"y": x}, {"x": ((5, 3), "float32")}, r"shape=\(5, 3\) of the input 'x'"),
    ],
)
def test_a_tensor_without_a_batch(function, inputs, found, tmp_path):
    with pytest.raises(
        ValueError, match=rf"must have a batch of any size as its first axis\. Received: {found} of the"
    ):
        write_saved_model(tmp_path / "model", [Signature("serve", function, inputs)])
    assert list(tmp_path.iterdir()) == []


def check(ids, mask):
    return refuse_foreign_padding("Owner", tf.constant(ids), tf.constant(mask)).numpy()


@pytest.mark.parametrize("in_graph", [False, True])
def test_ids_that_a_server_has_padded(in_graph):
    def pad(tensor):
        """A request as TensorFlow Serving pads it to the length of another one."""
        return np.pad(tensor, [[0, 0], [0, 3]], constant_values=tensor.flat[0])

    run = tf.function(check_in_graph) if in_graph else check
    np.testing.assert_array_equal(run(IDS, MASK), IDS)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`Owner`: no row of `token_ids` must end in the token"):
        run(pad(IDS), pad(MASK))
    with pytest.raises(tf.errors.InvalidArgumentError, match="batches with `pad_variable_length_inputs`; send texts"):
        run(
            np.concatenate([np.pad(IDS, [[0, 0], [0, 3]]), pad(IDS)]),
            np.concatenate([np.pad(MASK, [[0, 0], [0, 3]]), pad(MASK)]),
        )


def check_in_graph(ids, mask):
    return refuse_foreign_padding("Owner", ids, mask)


def test_choices_that_a_server_has_padded():
    choices = np.stack([IDS, np.full_like(IDS, 2)], axis=1)  # the second of each row is all padding
    with pytest.raises(tf.errors.InvalidArgumentError, match="must end in the token"):
        check(choices, np.stack([MASK, np.ones_like(MASK)], axis=1))


def test_rows_of_one_token_none_or_no_rows():
    for shape in ([3, 1], [0, 4], [2, 0], [2, 3, 1], [3, 4]):
        assert check(np.ones(shape, int), np.ones(shape, int)).shape == tuple(shape)
