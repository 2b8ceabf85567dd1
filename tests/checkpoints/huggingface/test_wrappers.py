import numpy as np
import pytest

from keras_bert_layers import load_backbone
from keras_bert_layers.checkpoints import CheckpointError, load_report
from keras_bert_layers.checkpoints.huggingface.weight_files import unwrapped, unwrapped_name


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


def test_the_report_says_what_was_removed(in_memory):
    file = in_memory({"module.model.bert.a": np.ones(2), "module.b": np.ones(1), "c": np.ones(1)})
    found, notes = unwrapped(file, "x.bin")
    assert list(found.infos) == ["bert.a", "b", "c"]
    assert notes == ["module., module.model. was removed from the names of 2 tensors"]
    assert unwrapped(found, "x.bin") == (found, [])


def test_two_models_in_one_file(in_memory):
    file = in_memory({"model.bert.a": np.ones(2), "bert.a": np.ones(2)})
    with pytest.raises(
        CheckpointError, match=r"must hold one model\. Found: the tensors 'model\.bert\.a' and 'bert\.a'"
    ):
        unwrapped(file, "x.bin")


@pytest.mark.parametrize("prefix", ["module.bert.", "_orig_mod.model.", "model."])
def test_a_wrapped_checkpoint(huggingface, tmp_path, prefix):
    plain = load_backbone(huggingface.write(tmp_path / "plain"))
    tensors = huggingface.random_tensors(prefix=prefix)
    wrapped = load_backbone(huggingface.write(tmp_path / "wrapped", tensors=tensors))
    for ours, expected in zip(wrapped.weights, plain.weights, strict=True):
        np.testing.assert_array_equal(ours.numpy(), expected.numpy())
    removed = prefix.removesuffix("bert.")
    assert f"note: {removed} was removed from the names of 39 tensors" in str(load_report(wrapped))
