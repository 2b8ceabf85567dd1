import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_layers.export import Signature, write_saved_model

SIGNATURE = Signature("add", lambda x, t: {"y": x + 1, "u": t}, {"x": ((None,), "float32"), "t": ((None,), "string")})
REQUEST = {"x": np.array([1.5, 2], "float32"), "t": np.array(["é", ""], object)}


def test_requests_are_where_a_server_looks_for_them(tmp_path):
    prediction_log_pb2 = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    path = write_saved_model(tmp_path / "model", [SIGNATURE], warm_up={"add": [REQUEST, REQUEST]})
    records = list(tf.data.TFRecordDataset(str(path / "assets.extra" / "tf_serving_warmup_requests")))
    assert len(records) == 2
    request = prediction_log_pb2.PredictionLog.FromString(records[0].numpy()).predict_log.request
    assert request.model_spec.signature_name == "add"
    inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
    np.testing.assert_array_equal(inputs["x"], REQUEST["x"])
    assert inputs["t"].tolist() == ["é".encode(), b""]


def test_without_requests_there_is_no_file(tmp_path):
    assert not (write_saved_model(tmp_path / "model", [SIGNATURE]) / "assets.extra").exists()


def test_without_the_messages(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_serving", None)
    monkeypatch.setitem(sys.modules, "tensorflow_serving.apis.prediction_log_pb2", None)
    with pytest.raises(ModuleNotFoundError, match="`pip install tensorflow-serving-api`, or give `warm_up=False`"):
        write_saved_model(tmp_path / "model", [SIGNATURE], warm_up={"add": [REQUEST]})
    assert list(tmp_path.iterdir()) == []
