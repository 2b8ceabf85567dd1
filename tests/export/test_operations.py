import json
from importlib import resources

import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from keras_bert_layers.export import Signature, read_model_card, write_saved_model

TEXT = {"text": ((None,), "string")}
NUMBERS = {"x": ((None, 3), "float32")}


def refused(folder, function, inputs, match, **options):
    with pytest.raises(ValueError, match=match):
        write_saved_model(folder / "model", [Signature("serve", function, inputs)], **options)
    assert list(folder.iterdir()) == []


def test_an_operation_that_servers_got_later(tmp_path):
    tf_text = pytest.importorskip("tensorflow_text")

    def trim(text):
        return {"kept": tf_text.RoundRobinTrimmer(3).trim([tf.strings.split(text)])[0].to_tensor()}

    refused(
        tmp_path,
        trim,
        TEXT,
        r"TensorFlow Serving has since 2\.13\. Received: 'TFText>RoundRobinTrim' in the function '.*', which came in "
        r"2\.20\. If no server is older, give `serving_version='2\.20'`\.",
    )
    path = write_saved_model(tmp_path / "model", [Signature("serve", trim, TEXT)], serving_version="2.20")
    assert read_model_card(path)["oldest_tensorflow_serving"] == "2.20"


def test_an_operation_deep_in_the_library(tmp_path):
    def step(x):
        return (tf.ensure_shape(tf.numpy_function(lambda y: y + 1, [x], tf.float32), [None, 3]),)

    def grown(x):
        return {"y": tf.while_loop(lambda x: tf.reduce_sum(x) < 9, step, [x])[0]}

    match = r"Received: '(Eager)?PyFunc' in the function '.*', which runs Python\. Compute"
    refused(tmp_path, grown, NUMBERS, match)


def test_what_no_server_is_known_to_have(tmp_path):
    def watched(x):
        return {"y": x + tf.reduce_sum(tf.raw_ops.DebugNumericSummaryV2(input=x))}

    match = r"Received: 'DebugNumericSummaryV2' in .*\. None of the versions 2\.13 to 2\.21 is known"
    refused(tmp_path, watched, NUMBERS, match)


def test_what_xla_must_compile(tmp_path):
    doubled = tf.function(lambda x: x * 2, jit_compile=True)
    match = r"`jit_compile=True` in .*, which XLA must compile\. A server"
    refused(tmp_path, lambda x: {"y": doubled(x)}, NUMBERS, match)


def test_an_attribute_that_servers_got_later(tmp_path):
    def best(x):
        return {"y": tf.raw_ops.TopKV2(input=x, k=1, index_type=tf.int64).indices}

    write_saved_model(tmp_path / "model", [Signature("serve", best, NUMBERS)])  # since 2.13, the oldest

    def gathered(x):
        return {"y": tf.gather_nd(x, tf.constant([[0]]), bad_indices_policy="IGNORE")[0][None] + x}

    folder = tmp_path / "new"
    folder.mkdir()
    refused(folder, gathered, NUMBERS, r"Received: 'GatherNd' in .*, which came in 2\.17\.")
    path = write_saved_model(folder / "model", [Signature("serve", gathered, NUMBERS)], serving_version="2.19")
    assert read_model_card(path)["oldest_tensorflow_serving"] == "2.17"


def test_gradients_of_matrix_products_are_for_every_server(tmp_path):
    weight = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            stacked = tf.matmul(tf.stack([x, x], axis=1), tf.tile(weight[None], [tf.shape(x)[0], 1, 1]))
            total = tf.reduce_sum(tf.square(x @ weight)) + tf.reduce_sum(stacked)
        return {"y": tape.gradient(total, x)}

    path = write_saved_model(tmp_path / "model", [Signature("serve", gradients, NUMBERS)])
    assert read_model_card(path)["oldest_tensorflow_serving"] == "2.13"
    x = tf.constant([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    found = tf.saved_model.load(str(path)).signatures["serve"](x=x)["y"]
    expected = 2 * x @ weight @ tf.transpose(weight) + 2 * tf.reduce_sum(weight, axis=1)
    tf.debugging.assert_near(found, expected)


def test_an_unknown_server(tmp_path):
    match = r"`serving_version` must be one of \['2\.13', .*'2\.21'\]\. Received: serving_version='2\.12'"
    refused(tmp_path, lambda x: {"y": x}, NUMBERS, match, serving_version="2.12")


def test_the_table_names_what_tensorflow_registers():
    pytest.importorskip("tensorflow_text")
    table = json.loads((resources.files("keras_bert_layers") / "export" / "serving_ops.json").read_text("utf-8"))
    names = {name for names in table["operations"].values() for name in names}
    assert len(names) == sum(map(len, table["operations"].values()))
    gone = {name for name in names if op_def_registry.get(name) is None}
    assert len(gone) < 9, gone  # TensorFlow 2.19 dropped one, and tensorflow_text moves some
    installed = tuple(map(int, tf.__version__.split(".")[:2]))
    for version, changed in table["attributes"].items():
        if tuple(map(int, version.split("."))) > installed:
            continue
        for name, attributes in changed.items():
            found = op_def_registry.get(name)
            assert found is None or set(attributes) <= {attribute.name for attribute in found.attr}
