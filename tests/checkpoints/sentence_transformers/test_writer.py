import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_bert_layers import BertBackbone, BertDualEncoder, BertSentenceEncoder, save_huggingface
from keras_bert_layers.checkpoints.sentence_transformers.modules import sentence_encoder_options
from keras_bert_layers.checkpoints.sentence_transformers.writer import write_sentence_transformers


@pytest.fixture
def backbone(our_models):
    return BertBackbone(our_models.CONFIG)


def read(path):
    return json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
@pytest.mark.parametrize("normalize", [True, False])
def test_modules(backbone, tmp_path, pooling, normalize):
    write_sentence_transformers(tmp_path, BertSentenceEncoder(backbone, pooling, normalize=normalize), max_length=9)
    modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")][: 2 + normalize]
    assert read(tmp_path / "modules.json") == [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (kind, path) in enumerate(modules)
    ]
    flags = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
    values = read(tmp_path / "1_Pooling" / "config.json")
    assert values["word_embedding_dimension"] == 15
    assert [flag for flag, is_on in values.items() if is_on is True] == [
        f"pooling_mode_{flags[pooling]}",
        "include_prompt",
    ]
    assert sentence_encoder_options(tmp_path, hidden_dim=15) == {"pooling": pooling, "normalize": normalize}
    assert read(tmp_path / "sentence_bert_config.json") == {"max_seq_length": 9, "do_lower_case": False}


def test_dense_layer(backbone, our_models, tmp_path):
    model = our_models.randomised(
        BertSentenceEncoder(backbone, projection_dim=7, projection_activation="linear", normalize=True)
    )
    write_sentence_transformers(tmp_path, model, max_length=None)
    assert [module["path"] for module in read(tmp_path / "modules.json")] == ["", "1_Pooling", "2_Dense", "3_Normalize"]
    assert read(tmp_path / "2_Dense" / "config.json") == {
        "in_features": 15,
        "out_features": 7,
        "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    tensors = load_file(tmp_path / "2_Dense" / "model.safetensors")
    dense = model.get_layer("dense_projection")
    assert tensors.keys() == {"linear.weight", "linear.bias"}
    np.testing.assert_array_equal(tensors["linear.weight"], np.asarray(dense.kernel.value).T)
    np.testing.assert_array_equal(tensors["linear.bias"], np.asarray(dense.bias.value))
    assert not (tmp_path / "sentence_bert_config.json").exists()


@pytest.mark.parametrize("activation", ["tanh", "relu", "relu6", "gelu_erf", "silu", "mish", "sigmoid"])
def test_activations(backbone, tmp_path, activation):
    model = BertSentenceEncoder(backbone, projection_dim=7, projection_activation=activation)
    write_sentence_transformers(tmp_path, model, max_length=None)
    name = read(tmp_path / "2_Dense" / "config.json")["activation_function"]
    assert name.startswith("torch.nn.modules.activation.")
    assert sentence_encoder_options(tmp_path, hidden_dim=15)["projection_activation"] == activation


def test_activation_without_a_class(backbone, tmp_path):
    model = BertSentenceEncoder(backbone, projection_dim=7, projection_activation="gelu_tanh")
    text = r"`save_huggingface`: `model\.projection_activation` must be one of \['tanh', .*Received: .*'gelu_tanh'"
    with pytest.raises(ValueError, match=text):
        save_huggingface(model, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "normalize", "similarity"),
    [
        (BertSentenceEncoder, True, "cosine"),
        (BertSentenceEncoder, False, "cosine"),
        (BertDualEncoder, True, "cosine"),
        (BertDualEncoder, False, "dot"),
    ],
)
def test_similarity(backbone, tmp_path, kind, normalize, similarity):
    write_sentence_transformers(tmp_path, kind(backbone, normalize=normalize), max_length=None)
    values = read(tmp_path / "config_sentence_transformers.json")
    assert (values["similarity_fn_name"], values["model_type"]) == (similarity, "SentenceTransformer")
