"""`examples/serving`: the configuration files against the flags and messages of TensorFlow Serving's source.

`model_server_facts.json` holds the flags and the batching parameters, read from the source that it names.
"""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "serving"
FACTS = json.loads((Path(__file__).parent / "model_server_facts.json").read_text(encoding="utf-8"))
PROBED_PATH = "/v1/models/sentiment"


def documents(name):
    yaml = pytest.importorskip("yaml")
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def compose_service():
    (compose,) = documents("compose.yaml")
    return compose["services"]["sentiment"]


def container():
    return documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]["containers"][0]


def flags_of(words):
    found = dict(re.fullmatch(r"--(\w+)=(\S+)", word).groups() for word in words)
    assert len(found) == len(words)
    return found


@pytest.fixture(params=["compose.yaml", "kubernetes.yaml"])
def flags(request):
    return flags_of(compose_service()["command"] if request.param == "compose.yaml" else container()["args"])


def parsed(text, message):
    text_format = pytest.importorskip("google.protobuf.text_format")
    return text_format.Parse(text, message)


def batching_parameters():
    """The message as its source defines it; tensorflow-serving-api does not hold it."""
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    from google.protobuf import descriptor_pool, message_factory, wrappers_pb2

    pool = descriptor_pool.DescriptorPool()
    wrappers = descriptor_pb2.FileDescriptorProto()
    wrappers_pb2.DESCRIPTOR.CopyToProto(wrappers)
    pool.Add(wrappers)
    file = descriptor_pb2.FileDescriptorProto(name="batching.proto", syntax="proto3", dependency=[wrappers.name])
    message = file.message_type.add(name="BatchingParameters")
    kinds = {
        "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
        "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    }
    for fact in FACTS["batching_parameters"]:
        field = message.field.add(name=fact["name"], number=fact["number"], label=3 if fact["repeated"] else 1)
        if fact["type"] in kinds:
            field.type = kinds[fact["type"]]
        else:
            field.type, field.type_name = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE, f".{fact['type']}"
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("BatchingParameters"))()


def test_every_flag_is_one_of_the_server(flags):
    assert set(flags) <= set(FACTS["flags"])


def test_an_unknown_flag_would_be_found():
    assert "rest_port" not in FACTS["flags"]


def test_flags_that_need_each_other(flags):
    assert flags["enable_batching"] == "true", "the server refuses batching parameters without it"
    assert "model_name" not in flags, "the server ignores it beside a model_config_file"
    assert flags["port"] != flags["rest_api_port"], "the server leaves REST out otherwise"
    assert not {name for name in flags if "xla" in name}, "what export() writes needs no XLA"


def test_flags_name_files_that_are_mounted(flags):
    names = {Path(value).name for name, value in flags.items() if name.endswith("_file")}
    assert names == {"models.config", "batching_parameters.txt"}
    assert all((FOLDER / name).is_file() for name in names)
    targets = [volume.split(":")[-2] for volume in compose_service()["volumes"]]
    assert sorted(targets) == ["/config/batching_parameters.txt", "/config/models.config", "/models"]
    assert {mount["mountPath"] for mount in container()["volumeMounts"]} == {"/config", "/models"}
    assert all(value.startswith("/config/") for name, value in flags.items() if name.endswith("_file"))


def test_both_start_the_server_alike():
    assert compose_service()["command"] == container()["args"]
    assert compose_service()["entrypoint"] == container()["command"] == ["tensorflow_model_server"]
    version = re.search(r":-([\d.]+)\}$", compose_service()["image"])[1]
    assert container()["image"] == f"tensorflow/serving:{version}"


def test_compose_listens_on_this_machine_only():
    service = compose_service()
    assert service["ports"] == ["127.0.0.1:8500:8500", "127.0.0.1:8501:8501"]
    assert all(volume.endswith(":ro") for volume in service["volumes"])
    assert "/dev/tcp/127.0.0.1/8501" in service["healthcheck"]["test"][-1]


def test_kubernetes_probes_resources_and_replacement():
    deployment, service, budget = documents("kubernetes.yaml")
    assert [deployment["kind"], service["kind"], budget["kind"]] == ["Deployment", "Service", "PodDisruptionBudget"]
    served = container()
    ports = {port["name"]: port["containerPort"] for port in served["ports"]}
    flags = flags_of(served["args"])
    assert ports == {"grpc": int(flags["port"]), "rest": int(flags["rest_api_port"])}
    for probe in ("startupProbe", "readinessProbe"):
        assert served[probe]["httpGet"] == {"path": PROBED_PATH, "port": "rest"}
    assert served["livenessProbe"]["tcpSocket"] == {"port": "grpc"}
    assert served["resources"]["requests"]["cpu"] == served["resources"]["limits"]["cpu"]
    assert int(served["resources"]["limits"]["cpu"]) == int(flags["tensorflow_intra_op_parallelism"])
    pod, update = deployment["spec"]["template"]["spec"], deployment["spec"]["strategy"]["rollingUpdate"]
    pause = int(served["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] * 1000 > pause * 1000 + int(flags["rest_api_timeout_in_ms"])
    assert update == {"maxUnavailable": 0, "maxSurge": 1}
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels == deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert budget["spec"]["selector"]["matchLabels"] == labels
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(ports)
    assert {mount["name"] for mount in served["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_batching_parameters_are_the_message_of_the_server():
    parameters = parsed((FOLDER / "batching_parameters.txt").read_text(encoding="utf-8"), batching_parameters())
    assert parameters.enable_large_batch_splitting.value
    assert 1 <= parameters.max_execution_batch_size.value <= parameters.max_batch_size.value
    assert not parameters.pad_variable_length_inputs, "it fills padding_mask up with its first number, 1"
    assert parameters.num_batch_threads.value == int(container()["resources"]["limits"]["cpu"])


def test_a_batching_parameter_that_the_server_does_not_have():
    text_format = pytest.importorskip("google.protobuf.text_format")
    with pytest.raises(text_format.ParseError, match="num_threads"):
        parsed("num_threads { value: 1 }", batching_parameters())


@pytest.mark.serving
def test_models_are_the_message_of_the_server():
    messages = pytest.importorskip("tensorflow_serving.config.model_server_config_pb2")
    config = parsed((FOLDER / "models.config").read_text(encoding="utf-8"), messages.ModelServerConfig())
    (model,) = config.model_config_list.config
    assert (model.name, model.base_path, model.model_platform) == ("sentiment", "/models/sentiment", "tensorflow")
    assert model.model_version_policy.latest.num_versions == 1
    assert PROBED_PATH.endswith(model.name)
