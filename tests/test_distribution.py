"""`distribution`: what `initialize` refuses, what launchers say, and which weights `bert_layout_map` divides."""

import keras
import pytest
from trainings import KINDS, make_task

from keras_bert_layers import BertBackbone, BertConfig, BertPretrainer
from keras_bert_layers.distribution import Backup, _launched, _state, bert_layout_map, initialize


def mesh_of(shape):
    names = [f"cpu:{index}" for index in range(shape[0] * shape[1])]
    return keras.distribution.DeviceMesh(shape, ("batch", "model"), names)


CONFIG = BertConfig(vocabulary_size=30, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)


def divided(shape, config=None):
    layout_map = bert_layout_map(mesh_of(shape), config)
    model = BertPretrainer(BertBackbone(CONFIG))
    found = {variable.path: layout_map[variable.path] for variable in model.trainable_variables}
    return {path: layout.axes for path, layout in found.items() if layout is not None}


def test_layouts():
    assert divided((1, 2), CONFIG) == {
        "embedding/token_embedding": ("model", None),
        "encoder_block_0/attention/query_key_value/kernel": (None, "model"),
        "encoder_block_0/attention/query_key_value/bias": ("model",),
        "encoder_block_0/attention/output/kernel": ("model", None),
        "encoder_block_0/feed_forward/intermediate/kernel": (None, "model"),
        "encoder_block_0/feed_forward/intermediate/bias": ("model",),
        "encoder_block_0/feed_forward/output/kernel": ("model", None),
        "masked_lm_head/bias": ("model",),
    }


def test_columns_where_the_vocabulary_cannot_be_divided_or_is_not_known():
    odd = BertConfig(vocabulary_size=31, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=16)
    for config in (odd, None):
        found = divided((1, 2), config)
        assert found["embedding/token_embedding"] == (None, "model")
        assert "masked_lm_head/bias" not in found


def test_meshes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"divide `num_heads`, which is 2, by its last axis. Received: .*4"):
        bert_layout_map(mesh_of((1, 4)), CONFIG)
    with pytest.raises(ValueError, match="have two axes"):
        bert_layout_map(keras.distribution.DeviceMesh((1,), ("batch",), ["cpu:0"]))
    with pytest.raises(TypeError, match="DeviceMesh"):
        bert_layout_map((1, 2))


@pytest.mark.parametrize(
    ("variables", "count"),
    [
        ({}, 1),
        ({"KERAS_DISTRIBUTION_NUM_PROCESSES": "2"}, 2),
        ({"SLURM_STEP_NUM_TASKS": "4"}, 4),
        ({"OMPI_COMM_WORLD_SIZE": "1"}, 1),
        ({"TPU_WORKER_HOSTNAMES": "one,two,three"}, 3),
    ],
)
def test_what_launchers_say(variables, count):
    assert _launched(variables) == count


def test_arguments_of_initialize(monkeypatch):
    with pytest.raises(ValueError, match="`num_processes` must be given with the others, or none of them"):
        initialize("127.0.0.1:1234", process_id=0)
    if keras.backend.backend() != "jax":
        with pytest.raises(RuntimeError, match='needs Keras on JAX. Received: .* Set .* KERAS_BACKEND to "jax"'):
            initialize()
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="`process_id` must be less than 2. Received: process_id=2"):
        initialize("127.0.0.1:1234", 2, 2)


def test_backup_where_it_cannot_be_made(tmp_path):
    for save_freq in (0, "epochs"):
        with pytest.raises((ValueError, TypeError), match=r"`Backup`: `save_freq` must be"):
            Backup(tmp_path, save_freq=save_freq)
    backup = Backup(tmp_path)
    backup.set_model(keras.Sequential())
    with pytest.raises(TypeError, match=r"`model` must be a Task"):
        backup.on_train_begin()
    if keras.backend.backend() != "jax":
        backup.set_model(BertPretrainer(BertBackbone(CONFIG)))
        with pytest.raises(
            RuntimeError, match=r"needs Keras on JAX. Received: \w+. Use `keras.callbacks.BackupAndRestore`"
        ):
            backup.on_train_begin()


@pytest.mark.parametrize("kind", ["texts", "documents", "words", "queries"])
def test_names_of_what_a_backup_holds(kind):
    assert kind in KINDS
    tasks = [make_task(kind) for _ in range(2)]  # Keras counts some names over both
    for task in tasks:
        task.optimizer.build(task.trainable_variables)
    first, second = map(_state, tasks)
    assert first.keys() == second.keys()
    trained = {id(variable) for variable in (*tasks[0].trainable_variables, *tasks[0].optimizer.variables)}
    assert trained <= set(map(id, first.values()))
    tasks[0].backbone.get_layer("embedding").trainable = False
    frozen = _state(tasks[0])
    assert frozen.keys() == first.keys()
    assert all(frozen[name] is variable for name, variable in first.items())
