import contextlib
import importlib
import random

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_bert_layers import load_backbone, load_task
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.files.hdf5_file import Hdf5File, TfModelFile, write_hdf5

NAME = "layers/dense/vars/0"


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "model.weights.h5", "w") as file:
        file[NAME] = np.arange(6, dtype="float32").reshape(2, 3)
        file["layers/dense/vars/1"] = np.ones(3, "float16")
        file["layers/empty/vars/0"] = np.ones((0, 4), "float32")
        file["optimizer/vars/0"] = np.int64(7)
    return tmp_path / "model.weights.h5"


def edit(path, change):
    with h5py.File(path, "a") as file:
        change(file)
    return path


def test_names_and_numbers(path):
    file = Hdf5File(path)
    assert {name: tuple(info) for name, info in file.infos.items()} == {
        "layers/dense/vars/0": ("F32", (2, 3)),
        "layers/dense/vars/1": ("F16", (3,)),
        "layers/empty/vars/0": ("F32", (0, 4)),
        "optimizer/vars/0": ("I64", ()),
    }
    np.testing.assert_array_equal(file.read(NAME), [[0, 1, 2], [3, 4, 5]])
    assert file.read("layers/dense/vars/1").dtype == np.float32


def test_bfloat16_as_keras_stores_it(path):
    bfloat16 = importlib.import_module("ml_dtypes").bfloat16  # Keras brings it
    values = np.array([[1.5, -2.0, 3.0e38]])

    def change(file):
        file.create_dataset("layers/half/vars/0", data=values.astype(bfloat16)).attrs["dtype"] = "bfloat16"

    file = Hdf5File(edit(path, change))
    assert file.infos["layers/half/vars/0"].dtype == "BF16"
    np.testing.assert_array_equal(file.read("layers/half/vars/0"), values.astype(bfloat16).astype("float32"))


def test_integers_are_not_read(path):
    with pytest.raises(
        CheckpointError, match=r"model\.weights\.h5: tensor 'optimizer/vars/0' must hold floats, one of .*I64"
    ):
        Hdf5File(path).read("optimizer/vars/0")


def test_truncated(path):
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"model\.weights\.h5: not a complete HDF5 file: .*truncated.*Download"):
        Hdf5File(path)


@pytest.mark.parametrize("content", [b"", b"not an HDF5 file", b"\x89HDF\r\n\x1a\n" + bytes(90)])
def test_no_hdf5_file(path, content):
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="not a complete HDF5 file"):
        Hdf5File(path)


def test_every_damaged_byte_gives_an_error_or_a_right_file(path):
    whole = path.read_bytes()
    right = Hdf5File(path).infos
    rng = np.random.default_rng(2)
    for _ in range(300):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            file = Hdf5File(path)
            for name, (dtype, _) in file.infos.items():
                if dtype in ("F32", "F16", "F64") and name in right:
                    file.read(name)
        except CheckpointError:
            continue


def test_shape_without_numbers(path):
    def change(file):
        file.create_dataset("layers/bomb/vars/0", shape=(1 << 20, 1 << 20), dtype="float32", chunks=(64, 64))

    with pytest.raises(CheckpointError, match=r"'layers/bomb/vars/0' must hold the 4398046511104 bytes.*: 0 bytes"):
        Hdf5File(edit(path, change))


def test_compressed(path):
    def change(file):
        file.create_dataset("layers/zip/vars/0", data=np.zeros((99, 99)), compression="gzip")

    with pytest.raises(CheckpointError, match=r"'layers/zip/vars/0' must hold the 78408 bytes of its shape \(99, 99\)"):
        Hdf5File(edit(path, change))


@pytest.mark.parametrize("link", [h5py.SoftLink("/layers"), h5py.ExternalLink("/etc/hosts", "/a")])
def test_links(path, link):
    def change(file):
        file["layers/other"] = link

    with pytest.raises(CheckpointError, match=r"'layers/other' must not be a link. Do not trust this checkpoint"):
        Hdf5File(edit(path, change))


def test_numbers_in_another_file(path, tmp_path):
    (tmp_path / "other").write_bytes(bytes(400))

    def change(file):
        file.create_dataset("elsewhere", shape=(100,), dtype="float32", external=[(str(tmp_path / "other"), 0, 400)])

    with pytest.raises(CheckpointError, match=r"'elsewhere' must be stored in this file"):
        Hdf5File(edit(path, change))


def test_virtual_numbers(path):
    def change(file):
        layout = h5py.VirtualLayout(shape=(2, 3), dtype="float32")
        layout[...] = h5py.VirtualSource(str(path), NAME, shape=(2, 3))
        file.create_virtual_dataset("virtual", layout)

    with pytest.raises(CheckpointError, match=r"'virtual' must be stored in this file"):
        Hdf5File(edit(path, change))


def test_a_group_in_itself(path):
    def change(file):
        file["layers/again"] = file["layers"]

    with pytest.raises(CheckpointError, match=r"'layers(/again)+' is deeper, or among more entries"):
        Hdf5File(edit(path, change))


def test_file_that_changed_since(path):
    file = Hdf5File(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=rf"tensor '{NAME}' cannot be read"):
        file.read(NAME)


TENSORS = {
    "layers/dense/vars/0": np.arange(6, dtype="float32").reshape(3, 2).T,
    "layers/dense/vars/1": np.float16([1, 2, 65504]),
    "layers/a/b/vars/0": np.zeros((0, 4), "float32"),
}


@pytest.fixture
def source(tmp_path):
    with h5py.File(tmp_path / "source", "w") as file:
        for name, tensor in TENSORS.items():
            file[name] = tensor
    return Hdf5File(tmp_path / "source")


def test_all_tensors_as_float32(source, tmp_path):
    write_hdf5(tmp_path / "model.weights.h5", source)
    file = Hdf5File(tmp_path / "model.weights.h5")
    assert {info.dtype for info in file.infos.values()} == {"F32"}
    assert set(file.infos) == set(TENSORS)
    for name, tensor in TENSORS.items():
        np.testing.assert_array_equal(file.read(name), tensor)


def test_same_tensors_same_bytes(source, tmp_path):
    for name in ("one", "two"):
        write_hdf5(tmp_path / name, source)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


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
