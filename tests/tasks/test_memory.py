"""Memory of deleted models is freed: TensorFlow keeps none of their graphs, which hold all their weights."""

import gc

import pytest
from tensorflow.python.framework.func_graph import FuncGraph
from trainings import KINDS, TAGS, make_task, train

from keras_bert_layers import BertTokenClassifier

FEW = ("texts",)
MANY = ("masks", "words", "windows", "choices", "sentences", "queries", "pairs")


def num_graphs():
    gc.collect()  # the models
    gc.collect()  # what TensorFlow kept for them
    return sum(isinstance(thing, FuncGraph) for thing in gc.get_objects())


def use(kind, folder, rematerialize=False):
    task = make_task(kind)
    task.backbone.trainable = rematerialize  # without, as many graphs, but smaller ones
    task.backbone.rematerialize = rematerialize
    train(task, kind, epochs=1)
    *_, x, y, _ = KINDS[kind]
    task.evaluate(x, y, batch_size=7, verbose=0)
    task.predict(x, verbose=0)
    task.export(folder)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The model does not have any trainable weights")  # of tasks without a head
@pytest.mark.parametrize("kind", [*FEW, *(pytest.param(kind, marks=pytest.mark.exhaustive) for kind in MANY)])
def test_graphs_go_with_their_model(kind, tmp_path):
    use(kind, tmp_path / "first")
    before = num_graphs()
    use(kind, tmp_path / "second")
    assert num_graphs() == before


@pytest.mark.slow
def test_custom_gradients_go_with_their_model(tmp_path, monkeypatch):
    """Those of the CRF, and those of `tf.recompute_grad`, which TensorFlow keeps for ever on its own."""
    _, _, x, y, options = KINDS["words"]
    monkeypatch.setitem(KINDS, "crf", (BertTokenClassifier, {**TAGS, "crf": True}, x, y, options))
    before = num_graphs()
    use("crf", tmp_path, rematerialize=True)
    assert num_graphs() == before
