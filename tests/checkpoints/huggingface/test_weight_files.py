import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from keras_bert_layers import load_backbone
from keras_bert_layers.checkpoints import CheckpointError, load_report
from keras_bert_layers.checkpoints.huggingface.weight_files import find_weights, open_weights, unwrapped, unwrapped_name

PLAIN = "model.safetensors"


def found(folder):
    path, note = find_weights(folder, owner="load_backbone")
    return path.name, note


@pytest.fixture
def folder(tmp_path):
    """A function that writes empty files, and gives their folder."""

    def write(*names):
        for name in names:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).touch()
        return tmp_path

    return write


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("model.safetensors model.safetensors.index.json pytorch_model.bin tf_model.h5", "model.safetensors"),
        ("model.safetensors.index.json pytorch_model.bin", "model.safetensors.index.json"),
        ("model.fp16.safetensors pytorch_model.bin.index.json tf_model.h5", "pytorch_model.bin.index.json"),
        ("model.fp16.safetensors tf_model.h5", "tf_model.h5"),
    ],
)
def test_plain_files_go_first(folder, names, expected):
    assert found(folder(*names.split())) == (expected, None)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("model.fp16.safetensors pytorch_model.fp16.bin", "model.fp16.safetensors"),
        ("pytorch_model.fp16.bin adapter_model.safetensors", "pytorch_model.fp16.bin"),
        (
            "pytorch_model.bin.index.bf16.json pytorch_model.bf16-00001-of-00001.bin",
            "pytorch_model.bin.index.bf16.json",
        ),
        (
            "model.safetensors.index.non-ema.json model.non-ema-00001-of-00002.safetensors",
            "model.safetensors.index.non-ema.json",
        ),
    ],
)
def test_the_only_variant(folder, names, expected):
    assert found(folder(*names.split())) == (expected, f"the weights are {expected}, the only variant")


def test_the_only_file_of_another_name(folder):
    names = ("best.safetensors", "adapter_model.safetensors", "model-00001-of-00002.safetensors")
    assert found(folder(*names)) == ("best.safetensors", "the weights are best.safetensors, the only safetensors file")


@pytest.mark.parametrize("names", ["model.fp16.safetensors model.bf16.safetensors", "a.safetensors b.safetensors"])
def test_several_candidates(folder, names):
    with pytest.raises(CheckpointError, match=r"must hold one file of weights\. Found: .*, .*\. Give the path of one"):
        found(folder(*names.split()))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("onnx/model.onnx", r"Not read here: onnx \(ONNX Runtime's models\)\. Copy the model's model\.safetensors"),
        ("openvino/openvino_model.xml", r"Not read here: openvino \(OpenVINO's models\)"),
        (
            "flax_model.msgpack rust_model.ot",
            r"flax_model\.msgpack \(Flax's weights\), rust_model\.ot \(the weights for",
        ),
        ("onnx/model.onnx best.pt", r"onnx \(.*\)\. If best\.pt holds the weights, give its path: '.*best\.pt'"),
        ("adapter_model.bin", r"Found: adapter_model\.bin\. Copy the model's"),
    ],
)
def test_no_weights(folder, names, message):
    with pytest.raises(CheckpointError, match=rf"must hold weights, one of model\.safetensors, .*{message}"):
        found(folder(*names.split()))


def weights_of(model):
    return [weight.numpy() for weight in model.weights]


def test_shards_of_a_variant(checkpoint, huggingface):
    expected = weights_of(load_backbone(checkpoint))
    tensors = load_file(checkpoint / PLAIN)
    (checkpoint / PLAIN).unlink()
    shards = [f"model.fp16-0000{number}-of-00002.safetensors" for number in (1, 2)]
    files = {name: shards[index % 2] for index, name in enumerate(tensors)}
    for shard in shards:
        save_file({name: tensor for name, tensor in tensors.items() if files[name] == shard}, checkpoint / shard)
    huggingface.write_json(checkpoint / "model.safetensors.index.fp16.json", {"weight_map": files})
    backbone = load_backbone(checkpoint)
    assert load_report(backbone).notes == ("the weights are model.safetensors.index.fp16.json, the only variant",)
    for ours, theirs in zip(weights_of(backbone), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_file_that_the_user_named(checkpoint, huggingface):
    save_file(huggingface.random_tensors(seed=8, prefix="bert."), checkpoint / "epoch_3.safetensors")
    plain, chosen = load_backbone(checkpoint / PLAIN), load_backbone(str(checkpoint / "epoch_3.safetensors"))
    assert load_report(plain).notes == ("the weights are model.safetensors, as asked",)
    assert load_report(chosen).notes == ("the weights are epoch_3.safetensors, as asked",)
    gamma = load_file(checkpoint / "epoch_3.safetensors")["bert.embeddings.LayerNorm.weight"]
    np.testing.assert_array_equal(chosen.get_layer("embedding").layer_norm.gamma.numpy(), gamma)
    (checkpoint / PLAIN).rename(checkpoint / "epoch_4.safetensors")
    with pytest.raises(CheckpointError, match=r"must hold one file of weights"):
        load_backbone(checkpoint)


@pytest.mark.peers
@pytest.mark.parametrize("name", ["pytorch_model.bin", "best.pt", "epoch=3-step=9.ckpt"])
def test_what_a_training_loop_saved(checkpoint, name):
    torch = pytest.importorskip("torch")
    expected = weights_of(load_backbone(checkpoint))
    tensors = {f"module.bert.{key}": torch.tensor(value) for key, value in load_file(checkpoint / PLAIN).items()}
    (checkpoint / PLAIN).unlink()
    torch.save({"epoch": 3, "state_dict": {**tensors, "module.loss_scale": 2.0}, "best": "f1"}, checkpoint / name)
    backbone = load_backbone(checkpoint if name == "pytorch_model.bin" else checkpoint / name)
    notes = load_report(backbone).notes
    assert f"the weights are the entry 'state_dict' of {name}" in notes
    assert "not read beside the weights: epoch, best, module.loss_scale" in notes
    assert "module. was removed from the names of 39 tensors" in notes
    for ours, theirs in zip(weights_of(backbone), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.peers
def test_the_reader_follows_the_name(checkpoint):
    (checkpoint / PLAIN).rename(checkpoint / "model.bin")
    with pytest.raises(CheckpointError, match=r"model\.bin: torch\.load\(weights_only=True\) refuses|torch is not ins"):
        open_weights(checkpoint, "model.bin", owner="load_backbone")


@pytest.mark.parametrize(
    "prefix", ["module.", "model.", "_orig_mod.", "module.model.", "model.module._orig_mod.", "_orig_mod.module.model."]
)
def test_prefixes(prefix):
    assert unwrapped_name(f"{prefix}bert.pooler.dense.bias") == "bert.pooler.dense.bias"
    assert unwrapped_name(f"{prefix}embeddings.LayerNorm.weight") == "embeddings.LayerNorm.weight"


def test_wrappers_inside_a_name():
    name = "bert.encoder.layer.0._checkpoint_wrapped_module.output._orig_mod.dense.bias"
    assert unwrapped_name(name) == "bert.encoder.layer.0.output.dense.bias"
    assert unwrapped_name("classifier.model.weight") == "classifier.model.weight"
    assert unwrapped_name("model") == "model"


def test_the_report_states_what_was_removed(in_memory):
    file = in_memory({"module.model.bert.a": np.ones(2), "module.b": np.ones(1), "c": np.ones(1)})
    found, notes = unwrapped(file, "x.bin")
    assert {name: info.shape for name, info in found.infos.items()} == {"bert.a": (2,), "b": (1,), "c": (1,)}
    np.testing.assert_array_equal(found.read("bert.a"), np.ones(2))
    assert notes == ["module., module.model. was removed from the names of 2 tensors"]
    assert unwrapped(found, "x.bin") == (found, [])


def test_two_models_in_one_file(in_memory):
    file = in_memory({"model.bert.a": np.ones(2), "bert.a": np.ones(2)})
    with pytest.raises(
        CheckpointError, match=r"must hold one model\. Found: the tensors 'model\.bert\.a' and 'bert\.a'"
    ):
        unwrapped(file, "x.bin")


HOLDERS = ["0.auto_model.", "net.bert.", "transformer.", "model.encoder.", "_orig_mod.module.backbone."]


@pytest.mark.parametrize("prefix", ["module.bert.", "_orig_mod.model.", "model.", *HOLDERS])
def test_a_wrapped_checkpoint(huggingface, tmp_path, prefix):
    plain = load_backbone(huggingface.write(tmp_path / "plain"))
    tensors = huggingface.random_tensors(prefix=prefix)
    wrapped = load_backbone(huggingface.write(tmp_path / "wrapped", tensors=tensors))
    for ours, expected in zip(wrapped.weights, plain.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), expected.numpy())
    removed = prefix.removesuffix("bert.")
    assert f"note: {removed} was removed from the names of 39 tensors" in str(load_report(wrapped))
