"""`examples/serving/grpc_client.py`, against a server of PredictionService that runs an exported model."""

from concurrent import futures

import numpy as np
import pytest

TEXTS = ["a good film", "", "a bad, bad night !"]

pytestmark = pytest.mark.serving


@pytest.fixture
def module(import_example):
    pytest.importorskip("tensorflow_serving")
    return import_example("grpc_client")


def make_server(signatures, failures):
    """A server on a free port that answers with the functions of a SavedModel, after the failures of a list."""
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import get_model_status_pb2, model_service_pb2_grpc, predict_pb2
    from tensorflow_serving.apis import prediction_service_pb2_grpc as predictions

    class Predictions(predictions.PredictionServiceServicer):
        def __init__(self):
            self.asked = []

        def Predict(self, request, context):  # noqa: N802
            self.asked.append(request.model_spec)
            if failures:
                context.abort(*failures.pop(0))
            signature = signatures[request.model_spec.signature_name]
            try:
                answer = signature(**{name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()})
            except (TypeError, ValueError) as error:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error)[:80])
            response = predict_pb2.PredictResponse()
            for name, tensor in answer.items():
                response.outputs[name].CopyFrom(tf.make_tensor_proto(tensor.numpy()))
            return response

    class Models(model_service_pb2_grpc.ModelServiceServicer):
        def GetModelStatus(self, request, context):  # noqa: N802
            response = get_model_status_pb2.GetModelStatusResponse()
            response.model_version_status.add(version=3, state="AVAILABLE")
            return response

    server, service = grpc.server(futures.ThreadPoolExecutor(2)), Predictions()
    predictions.add_PredictionServiceServicer_to_server(service, server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(Models(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, service, f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A small classifier and the signatures of what it exports."""
    import tensorflow as tf

    from keras_bert_layers import BertBackbone, BertClassifier, BertConfig, BertPreprocessor, BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"a good bad film night , !".split()]
    config = BertConfig(vocabulary_size=len(words), hidden_dim=15, num_layers=1, num_heads=3, intermediate_dim=21)
    preprocessor = BertPreprocessor(BertTokenizer(words), max_length=9)
    classifier = BertClassifier(BertBackbone(config), class_names=["bad", "good"], preprocessor=preprocessor)
    path = tmp_path_factory.mktemp("models") / "1"
    classifier.export(path)
    loaded = tf.saved_model.load(str(path))
    return classifier, loaded


@pytest.fixture
def served(module, exported):
    failures = []
    _, loaded = exported
    server, service, address = make_server(loaded.signatures, failures)
    client = module.GrpcClient(address, "sentiment", timeout=5.0)
    yield client, service, failures
    client.close()
    server.stop(None).wait()


def test_answers_are_those_of_the_model(served, exported):
    client, service, _ = served
    answer, expected = client.predict({"text": TEXTS}), exported[0].answer(TEXTS)
    assert [label.decode() for label in answer["label"]] == expected["label"].tolist()
    np.testing.assert_allclose(answer["probabilities"], expected["probabilities"], rtol=0, atol=1e-6)
    assert (service.asked[0].name, service.asked[0].signature_name) == ("sentiment", "serving_default")
    assert not service.asked[0].HasField("version")


def test_ids_and_versions(served):
    client, service, _ = served
    ids = client.predict({"text": TEXTS}, "tokenize", version=3)
    assert service.asked[0].version.value == 3
    lists = {name: array.tolist() for name, array in ids.items()}
    logits = client.predict(lists, "token_ids")["logits"]
    np.testing.assert_array_equal(logits, client.predict(ids, "token_ids")["logits"])
    assert client.versions() == {3: "AVAILABLE"}


def test_what_passes_is_tried_again(served):
    import grpc

    client, service, failures = served
    failures += [(grpc.StatusCode.UNAVAILABLE, "queue is full"), (grpc.StatusCode.RESOURCE_EXHAUSTED, "too many")]
    assert client.predict({"text": TEXTS})["label"].shape == (3,)
    assert len(service.asked) == 3


def test_tries_are_bounded(served):
    import grpc

    client, service, failures = served
    failures += [(grpc.StatusCode.UNAVAILABLE, "queue is full")] * 9
    with pytest.raises(grpc.RpcError) as caught:
        client.predict({"text": TEXTS})
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.UNAVAILABLE, "queue is full")
    assert len(service.asked) == 4


def test_a_refusal_is_not_tried_again(served):
    import grpc

    client, service, _ = served
    with pytest.raises(grpc.RpcError) as caught:
        client.predict({"words": TEXTS})
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert len(service.asked) == 1


def test_no_server(module):
    import grpc

    client = module.GrpcClient("127.0.0.1:1", "sentiment", timeout=0.5)
    with pytest.raises(grpc.RpcError) as caught:
        client.predict({"text": TEXTS})
    assert caught.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    client.close()


def test_program(module, served, exported, monkeypatch, capsys):
    _, _, address = server = make_server(exported[1].signatures, [])
    monkeypatch.setattr("sys.argv", ["grpc_client", "--model", "sentiment", "--address", address, "good", "bad"])
    module.main()
    assert '"label": ["' in capsys.readouterr().out
    server[0].stop(None).wait()
