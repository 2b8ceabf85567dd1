"""Known failures of models that run in Python and fail in a server, each with the check that `export` avoids it.

Each model of this file is made so that it fails.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from c_api.server_process import NOT_FOUND, OK, ServerDiedError, ServerProcess

tf_text = pytest.importorskip("tensorflow_text")

FLOATS = [tf.TensorSpec((None, 3), tf.float32, name="x")]
STRINGS = [tf.TensorSpec((None,), tf.string, name="x")]
ROWS = np.ones((2, 3), np.float32)
TEXTS = np.array([b"a b c d", b"e f"], object)


def save(folder, function, specs, **objects):
    """A SavedModel of one function, whose variables are in `objects`, written as Python users write it."""
    module = tf.Module()
    for name, value in objects.items():
        setattr(module, name, value)
    module.serve = tf.function(function, input_signature=specs)
    tf.saved_model.save(module, str(folder / "model"), signatures={"serving_default": module.serve})
    return folder / "model"


def ask_python(model, x):
    return tf.saved_model.load(str(model)).signatures["serving_default"](x=tf.constant(x))


def test_a_keras_model_saved_by_tensorflow_loses_its_variables(start, tmp_path):
    layer = keras.layers.Dense(2)
    layer.build((None, 3))
    model = save(tmp_path, lambda x: {"y": layer(x)}, FLOATS, layer=layer)
    assert ask_python(model, ROWS)["y"].shape == (2, 2)
    with start(model) as server:
        answer = server.ask("serving_default", {"x": ROWS})
    assert answer.code != 0
    assert "Could not find variable" in answer.message


def test_an_operation_that_older_servers_lack(start, tmp_path):
    trimmer = tf_text.RoundRobinTrimmer(3)

    def trim(x):
        return {"y": trimmer.trim([tf.strings.split(x)])[0].to_tensor()}

    model = save(tmp_path, trim, STRINGS)
    with start(model) as server:
        assert server.ask("serving_default", {"x": TEXTS}).outputs["y"].tolist() == [
            [b"a", b"b", b"c"],
            [b"e", b"f", b""],
        ]
    with pytest.raises(ServerDiedError, match="Op type not registered 'TFText>RoundRobinTrim'"):
        start(model, older=True)


def test_a_function_that_xla_must_compile(start, tmp_path):
    compiled = tf.function(lambda x: tf.nn.softmax(x * 2), jit_compile=True)
    model = save(tmp_path, lambda x: {"y": compiled(x)}, FLOATS)
    with start(model, allow_xla=True) as server:
        np.testing.assert_allclose(
            server.ask("serving_default", {"x": ROWS}).outputs["y"], np.full((2, 3), 1 / 3), 1e-6
        )
    with start(model) as server:
        answer = server.ask("serving_default", {"x": ROWS})
    assert answer.code != 0
    assert "XLA compilation disabled" in answer.message


@pytest.mark.slow
def test_a_server_without_the_text_operations_fails_at_the_first_text(served_task, serve):
    """It loads, and answers ids; so only requests that are made while it starts, as warm-up requests, keep it down."""
    served = served_task("classifier")
    with ServerProcess(serve, served.model) as server:
        answer = server.ask("serving_default", {"text": TEXTS})
        assert answer.code == NOT_FOUND
        assert "Op type not registered" in answer.message
        assert server.ask("token_ids", served.inputs("token_ids", TEXTS)).code == OK
