import pytest
import tensorflow as tf

from keras_bert_layers._internal.checks import check_in_graph


@pytest.mark.parametrize("in_graph", [False, True])
@pytest.mark.parametrize("ragged", [False, True])
def test_values_pass_and_the_error_shows_the_message(in_graph, ragged):
    def checked(values):
        return check_in_graph(values, tf.reduce_all(values > 0), ["every value must be above 0. Received: ", values[0]])

    call = tf.function(checked) if in_graph else checked
    make = tf.ragged.constant if ragged else tf.constant
    assert call(make([[1, 2], [3, 4]])).numpy().tolist() == [[1, 2], [3, 4]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="every value must be above 0. Received: "):
        call(make([[0, 2], [3, 4]]))
