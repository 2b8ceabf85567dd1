"""Memory of deleted models is freed: TensorFlow keeps none of their graphs, which hold all their weights."""

import gc

import pytest
from tensorflow.python.framework.func_graph import FuncGraph
from trainings import KINDS, make_task, train

FEW = ("texts",)
MANY = ("masks", "words", "windows", "choices", "sentences", "queries", "pairs")


def num_graphs():
    gc.collect()
    return sum(isinstance(thing, FuncGraph) for thing in gc.get_objects())


def use(kind, folder):
    task = make_task(kind)
    task.backbone.trainable = False  # as many graphs, but smaller ones
    train(task, kind, epochs=1)
    *_, x, y, _ = KINDS[kind]
    task.evaluate(x, y, batch_size=7, verbose=0)
    task.predict(x, verbose=0)
    task.export(folder)


@pytest.mark.parametrize("kind", [*FEW, *(pytest.param(kind, marks=pytest.mark.exhaustive) for kind in MANY)])
def test_graphs_go_with_their_model(kind, tmp_path):
    use(kind, tmp_path / "first")
    before = num_graphs()
    use(kind, tmp_path / "second")
    assert num_graphs() == before
