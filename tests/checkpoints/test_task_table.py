import pytest

from keras_bert_layers import tasks
from keras_bert_layers.checkpoints.task_table import TASKS, task_of
from keras_bert_layers.checkpoints.weights.table import Layout


def test_every_task_of_a_checkpoint_has_a_row():
    names = [name for name in tasks.__all__ if name.startswith("Bert") and name != "BertStaticEncoder"]
    assert [row.class_name for row in TASKS.values()] == names
    assert sorted(TASKS) == list(TASKS)


@pytest.mark.parametrize("name", TASKS)
def test_a_row_names_its_class(name):
    assert TASKS[name].task_class is getattr(tasks, TASKS[name].class_name)
    assert TASKS[name].name == name


@pytest.mark.parametrize("layout", Layout)
def test_a_head_that_a_dialect_has_is_in_its_column_of_the_weights(layout):
    for row in TASKS.values():
        assert not row.counterpart(layout) or all(weight.stored(layout) for weight in row.head), row.name


def test_the_row_of_a_model(backbone):
    class Mine(tasks.BertClassifier):
        pass

    assert task_of(Mine(backbone, num_classes=2)) is TASKS["classifier"]
    assert task_of(backbone) is None
