"""Files as the TensorFlow classes of transformers 4 wrote them: Keras 2's layout, Keras's names and shapes."""

import contextlib
import random

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_bert_layers import load_backbone, load_task
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.hdf5_file import TfModelFile

KERNELS = ("query", "key", "value", "dense", "classifier", "seq_relationship", "qa_outputs")
LAYERS = {"cls.predictions": "mlm___cls", "cls.seq_relationship": "nsp___cls"}


def keras_name(name):
    """The name of a torch tensor in the file, from its layer on."""
    *parts, last = name.replace(".layer.", ".layer@").split(".")
    if parts[-1] in KERNELS:
        last = {"weight": "kernel"}.get(last, last)
    elif parts[-1] == "LayerNorm":
        last = {"weight": "gamma", "bias": "beta"}[last]
    elif parts[-1] in ("token_type_embeddings", "position_embeddings"):
        last = "embeddings"
    if parts[0] == "cls":
        parts[0] = LAYERS[".".join(parts[:2])]
    return "/".join([*parts, f"{last}:0"]).replace("@", "_._")


def write_tf_model(path, tensors, *, model="tf_bert_for_pre_training", heads=None):
    """Writes torch's tensors; `heads` gives the kernels of attention an axis for heads, as some releases did."""
    groups = {}
    for name, array in tensors.items():
        stored = keras_name(name)
        tensor = array.T if stored.endswith("kernel:0") else array
        shape = tensor.shape
        if heads and ".self." in name:
            shape = (*shape[:-1], heads, -1)
        if heads and ".attention.output.dense.weight" in name:
            shape = (heads, -1, shape[-1])
        groups.setdefault(stored.partition("/")[0], {})[f"{model}/{stored}".lstrip("/")] = tensor.reshape(shape)
    if "mlm___cls" in groups:  # the head holds the embeddings' layer, as it predicts with it
        shared = {name: tensor for name, tensor in groups["bert"].items() if "bert/embeddings/" in name}
        groups["mlm___cls"].update(shared)
    with h5py.File(path, "w") as file:
        file.attrs["layer_names"] = [group.encode() for group in [*groups, "dropout_37"]]
        file.attrs["backend"], file.attrs["keras_version"] = b"tensorflow", b"2.11.0"
        file.create_group("top_level_model_weights").attrs["weight_names"] = np.zeros(0, "S1")
        file.create_group("dropout_37").attrs["weight_names"] = np.zeros(0, "S1")
        for group, weights in groups.items():
            file.create_group(group).attrs["weight_names"] = [name.encode() for name in weights]
            for name, tensor in weights.items():
                file[group][name] = tensor


@pytest.fixture
def tensors(huggingface):
    """All tensors of a BertForPreTraining."""
    config = huggingface.CONFIG
    hidden, vocabulary = config["hidden_size"], config["vocab_size"]
    transform, relation = "cls.predictions.transform", "cls.seq_relationship"
    heads = {
        **{f"{transform}.dense.weight": (hidden, hidden), f"{transform}.dense.bias": (hidden,)},
        **{f"{transform}.LayerNorm.weight": (hidden,), f"{transform}.LayerNorm.bias": (hidden,)},
        **{"cls.predictions.bias": (vocabulary,), f"{relation}.weight": (2, hidden), f"{relation}.bias": (2,)},
    }
    rng = np.random.default_rng(3)
    more = {name: rng.normal(size=shape).astype("float32") for name, shape in heads.items()}
    return {**huggingface.random_tensors(prefix="bert."), **more}


def weights_of(model):
    return {weight.path.partition("/")[2]: weight.numpy() for weight in model.weights}


def test_the_layout():
    """Names from a listing of a released file."""
    names = {
        "bert.embeddings.word_embeddings.weight": "bert/embeddings/word_embeddings/weight:0",
        "bert.embeddings.token_type_embeddings.weight": "bert/embeddings/token_type_embeddings/embeddings:0",
        "bert.encoder.layer.0.attention.self.query.weight": "bert/encoder/layer_._0/attention/self/query/kernel:0",
        "bert.encoder.layer.11.output.LayerNorm.bias": "bert/encoder/layer_._11/output/LayerNorm/beta:0",
        "cls.predictions.bias": "mlm___cls/predictions/bias:0",
        "cls.seq_relationship.weight": "nsp___cls/seq_relationship/kernel:0",
        "classifier.weight": "classifier/kernel:0",
    }
    assert {name: keras_name(name) for name in names} == names


@pytest.mark.parametrize("heads", [None, 3], ids=["two axes", "an axis for heads"])
@pytest.mark.parametrize("model", ["tf_bert_for_pre_training_2", "bert", ""])
def test_reads_every_tensor(tmp_path, tensors, model, heads):
    path = tmp_path / "tf_model.h5"
    write_tf_model(path, tensors, model=model, heads=heads)
    file = TfModelFile(path)
    assert {name: info.shape for name, info in file.infos.items()} == {n: t.shape for n, t in tensors.items()}
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(file.read(name), tensor)


@pytest.mark.parametrize(
    "head", ["BertForPreTraining", pytest.param("BertForSequenceClassification", marks=pytest.mark.slow)]
)
def test_loads_the_same_task(huggingface, tmp_path, tensors, head):
    values = {**huggingface.CONFIG, **huggingface.CLASSIFIER, "architectures": [head]}
    if head == "BertForSequenceClassification":
        tensors = huggingface.random_tensors(prefix="bert.", head=3)
    torch_directory = huggingface.write(tmp_path / "torch", config=values, tensors=tensors)
    directory = huggingface.write(tmp_path / "tf", config=values)
    (directory / "model.safetensors").unlink()
    write_tf_model(directory / "tf_model.h5", tensors, model="tf_bert_for_x")
    expected = weights_of(load_task(torch_directory, preprocessor=None))
    for path, value in weights_of(load_task(directory, preprocessor=None)).items():
        np.testing.assert_array_equal(value, expected[path], err_msg=path)


def test_shapes_are_checked(checkpoint):
    tensors = load_file(checkpoint / "model.safetensors")
    tensors = {f"bert.{name}": tensor for name, tensor in tensors.items()}
    tensors["bert.encoder.layer.0.intermediate.dense.weight"] = np.ones((15, 22), "float32")
    (checkpoint / "model.safetensors").unlink()
    write_tf_model(checkpoint / "tf_model.h5", tensors, model="tf_bert_model")
    with pytest.raises(CheckpointError, match=r"must have shape \(22, 15\)\. Received: shape=\(15, 22\)"):
        load_backbone(checkpoint)


def test_copies_that_differ(tmp_path, tensors):
    write_tf_model(tmp_path / "tf_model.h5", tensors)
    name = "tf_bert_for_pre_training/bert/embeddings/word_embeddings/weight:0"
    with h5py.File(tmp_path / "tf_model.h5", "a") as file:
        file["mlm___cls"][name][0, 0] += 1
    file = TfModelFile(tmp_path / "tf_model.h5")
    with pytest.raises(CheckpointError, match=rf"the tensors bert/{name}, mlm___cls/{name} must be equal"):
        file.read("bert.embeddings.word_embeddings.weight")


@pytest.mark.parametrize("link", [h5py.SoftLink("/bert"), h5py.ExternalLink("/etc/hosts", "/x")])
def test_links_are_refused(tmp_path, tensors, link):
    path = tmp_path / "tf_model.h5"
    write_tf_model(path, tensors)
    with h5py.File(path, "a") as file:
        file["classifier"] = link
    with pytest.raises(CheckpointError, match=r"'classifier' must not be a link\. Do not trust this checkpoint"):
        TfModelFile(path)


def test_damaged_names(tmp_path):
    """Every name gives a tensor or an error."""
    rng = random.Random(1)
    parts = ["bert", "tf_bert_model", "layer_._0", "mlm___cls", "kernel:0", "bias:0", "___", "_._", ":0", "kernel"]
    path = tmp_path / "tf_model.h5"
    for _ in range(15):
        with h5py.File(path, "w") as file:
            for shape in [(), (3,), (2, 3), (2, 2, 2), (1, 2, 1, 2)]:
                name = "/".join(rng.choices(parts, k=rng.randrange(1, 5)))
                if not any(name.startswith(key) or key.startswith(name) for key in names_in(file)):
                    file[name] = np.ones(shape, "float32")
        with contextlib.suppress(CheckpointError):
            found = TfModelFile(path)
            for name, info in found.infos.items():
                assert found.read(name).shape == info.shape


def names_in(file):
    names = []
    file.visit(names.append)
    return names
