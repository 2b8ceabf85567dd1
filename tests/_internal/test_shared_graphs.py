import pytest
import tensorflow as tf

from keras_bert_layers._internal.shared_graphs import shared_graphs, traced_once


class Doubler:
    """Counts how often it is traced."""

    def __init__(self):
        self.num_traces = 0

    def __call__(self, values, *, times=2):
        self.num_traces += 1
        return {"doubled": values["x"] * times}


@pytest.fixture
def doubler():
    return Doubler()


def graph_of(function, *shapes):
    return tf.function(function, autograph=False).get_concrete_function(*(tf.TensorSpec(shape) for shape in shapes))


def test_one_graph_for_several_callers_and_all_sizes(doubler):
    def caller(x, y):
        return traced_once(doubler, {"x": x})["doubled"], traced_once(doubler, {"x": y})["doubled"]

    with shared_graphs():
        first, second = graph_of(caller, [3], [5]), graph_of(caller, [None], [2])
        assert doubler.num_traces == 1
    calls = [node.op for node in first.graph.as_graph_def().node if "Call" in node.op]
    assert calls == ["PartitionedCall"] * 2
    assert [part.numpy().tolist() for part in second(tf.ones([1]), tf.ones([2]))] == [[2.0], [2.0, 2.0]]


def test_the_graph_has_the_name_of_what_it_computes(doubler):
    with shared_graphs():
        graph = graph_of(lambda x: traced_once(doubler, {"x": x}), [3]).graph.as_graph_def()
    assert [function.signature.name.split("_")[3] for function in graph.library.function] == ["Doubler"]


@pytest.mark.parametrize("other", ["options", "function", "axes"])
def test_what_differs_has_a_graph_of_its_own(doubler, other):
    def caller(x):
        one = traced_once(doubler, {"x": x})["doubled"]
        if other == "options":
            return one, traced_once(doubler, {"x": x}, times=3)["doubled"]
        if other == "function":
            return one, traced_once(Doubler(), {"x": x}, times=3)["doubled"]
        return one, traced_once(doubler, {"x": x[None] * 1.5})["doubled"][0]

    with shared_graphs():
        graph = graph_of(caller, [1])
    assert len(graph.graph.as_graph_def().library.function) == 2
    assert [part.numpy().tolist() for part in graph(tf.ones([1]))] == [[2.0], [3.0]]


def test_a_plain_call_when_eager_or_outside_of_the_block(doubler):
    graph_of(lambda x: traced_once(doubler, {"x": x}), [3])
    with shared_graphs():
        assert traced_once(doubler, {"x": tf.ones([1])})["doubled"].numpy().tolist() == [2.0]
    graph = graph_of(lambda x: traced_once(doubler, {"x": x}), [4])
    assert not graph.graph.as_graph_def().library.function
    assert doubler.num_traces == 3
