"""The contract that every metric of the package keeps, in one place; each metric's test calls `check_metric` once."""

import inspect
import json

import keras
import numpy as np
from keras import ops

# bfloat16 keeps 8 bits of a logit near 3.
HALF_PRECISION = 0.05


def to_float(value):
    return float(ops.convert_to_numpy(value))


def stream(metric, cases):
    """The results of many cases, each in two batches, through one program whose sizes are open.

    Args:
        metric: what to compute; it is reset before each case.
        cases: list of tuples of NumPy arrays with equal first axes, of the same dtypes and ranks in every case.
    """

    def compute(first, rest):
        metric.reset_state()
        metric.update_state(*first)
        metric.update_state(*rest)
        return metric.result()

    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        part = tuple(tf.TensorSpec((None,) * array.ndim, array.dtype) for array in cases[0])
        widths = {array.shape[1:] for case in cases for array in case if array.ndim > 1}
        if len(widths) == 1:  # the number of classes is always known
            part = tuple(tf.TensorSpec((None, *array.shape[1:]), array.dtype) for array in cases[0])
        compute = tf.function(compute, input_signature=[part, part], autograph=False)
    results = []
    for row, case in enumerate(cases):
        cut = row % (len(case[0]) + 1)
        results.append(to_float(compute(tuple(array[:cut] for array in case), tuple(array[cut:] for array in case))))
    return np.array(results)


def check_metric(make, y_true, y_pred, sample_weight, *, expected, atol):
    """Checks config, batches = one batch, reset, a graph, `evaluate` with weights, and predictions of half precision.

    Args:
        make: makes the metric from keyword arguments such as `name`.
        y_true: NumPy array, at least 5 rows.
        y_pred: NumPy array of as many.
        sample_weight: NumPy array, the weights with which `expected` is the result.
        expected: the result.
        atol: how far it may be off.
    """
    data = (y_true, y_pred, sample_weight)
    metric = make()
    _check_config(metric)
    metric.update_state(*data)
    for value in (_in_batches(make(), data), to_float(metric.result()), _in_graph(make(), data)):
        np.testing.assert_allclose(value, expected, atol=atol)
    metric.reset_state()
    assert all(not np.any(ops.convert_to_numpy(variable)) for variable in metric.variables)
    metric.update_state(*(part[:0] for part in data))  # an empty batch changes nothing
    np.testing.assert_allclose(_in_batches(metric, data), expected, atol=atol)
    np.testing.assert_allclose(_in_evaluate(make(name="found"), data), expected, atol=atol)
    if y_pred.dtype.kind == "f":
        half = make()
        half.update_state(y_true, ops.cast(y_pred, "bfloat16"), sample_weight)
        np.testing.assert_allclose(to_float(half.result()), expected, rtol=HALF_PRECISION, atol=HALF_PRECISION)


def _check_config(metric):
    config = metric.get_config()
    signature = inspect.signature(type(metric).__init__).parameters
    assert set(signature) - {"self"} <= set(config)
    assert json.loads(json.dumps(config)) == config
    assert type(metric).from_config(config).get_config() == config
    assert keras.saving.get_registered_name(type(metric)) == f"keras_bert_layers>{type(metric).__name__}"
    loaded = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert loaded.get_config() == config
    assert type(loaded) is type(metric)


def _in_batches(metric, data):
    for rows in (slice(0, 2), slice(2, 3), slice(3, None)):
        metric.update_state(*(part[rows] for part in data))
    return to_float(metric.result())


def _in_graph(metric, data):
    """In batches whose size the graph does not know, and the result compiled by XLA, from one program."""
    if keras.backend.backend() == "jax":
        import jax

        state = jax.jit(metric.stateless_update_state)([variable.value for variable in metric.variables], *data)
        return to_float(jax.jit(metric.stateless_result)(state))
    if keras.backend.backend() != "tensorflow":
        return _in_batches(metric, data)
    import tensorflow as tf

    signature = [tf.TensorSpec((None, *(None,) * (p.ndim == 2), *p.shape[2:]), p.dtype) for p in data]
    signature[1] = tf.TensorSpec((*(None,) * min(data[1].ndim - 1, 2), data[1].shape[-1]), data[1].dtype)
    open_sizes = tf.function(metric.update_state, input_signature=signature, autograph=False)
    compiled = tf.function(metric.stateless_update_state, jit_compile=True, autograph=False)
    open_sizes(*(part[:2] for part in data))
    state = compiled([variable.value for variable in metric.variables], *(part[2:] for part in data))
    return to_float(tf.function(metric.stateless_result, jit_compile=True, autograph=False)(state))


def _in_evaluate(metric, data):
    y_true, y_pred, sample_weight = data
    given = keras.Input(y_pred.shape[1:], dtype=y_pred.dtype.name)
    model = keras.Model(given, keras.layers.Identity(dtype=y_pred.dtype.name)(given))
    # Eagerly: for a few batches, far less work than a trace; `_in_graph` has the graphs.
    loss = lambda true, _: ops.zeros_like(true, dtype="float32")  # noqa: E731
    model.compile(loss=loss, weighted_metrics=[metric], run_eagerly=True)
    return model.evaluate(y_pred, y_true, sample_weight=sample_weight, batch_size=2, verbose=0, return_dict=True)[
        "found"
    ]
