import dataclasses
import json

import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertMaskedLM, load_task, save_huggingface
from keras_bert_layers.checkpoints import CheckpointError
from keras_bert_layers.checkpoints.huggingface import weight_files
from keras_bert_layers.checkpoints.huggingface.directory import HuggingFaceDirectory, ignored_reason, table_name


def opened(source):
    return HuggingFaceDirectory(source, owner="load_backbone")


def test_no_config(checkpoint):
    (checkpoint / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"must hold config\.json. Found: model\.safetensors, vocab\.txt"):
        _ = opened(checkpoint).config


def test_invalid_config(checkpoint):
    (checkpoint / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json: must be valid JSON"):
        _ = opened(checkpoint).config


def test_config_of_another_model(checkpoint, huggingface):
    huggingface.write_json(checkpoint / "config.json", {**huggingface.CONFIG, "model_type": "big_bird"})
    with pytest.raises(CheckpointError, match=r"config\.json: .*`model_type` must be one of \['bert', .*'big_bird'"):
        _ = opened(checkpoint).config


def test_no_weights(checkpoint):
    (checkpoint / "model.safetensors").rename(checkpoint / "model.onnx")
    with pytest.raises(
        CheckpointError,
        match=r"must hold weights, one of model\.safetensors.*Found: config\.json, model\.onnx, vocab\.txt",
    ):
        opened(checkpoint).open_weights()


def test_safetensors_go_before_a_pickle(checkpoint):
    (checkpoint / "pytorch_model.bin").write_bytes(b"not a pickle")
    assert len(opened(checkpoint).open_weights().infos) == 39


def test_weights_that_may_not_be_opened(checkpoint, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(weight_files, "SafetensorsFile", refuse)
    with pytest.raises(CheckpointError, match=r"model\.safetensors: cannot be read: Permission denied"):
        opened(checkpoint).open_weights()


def test_prefix_and_old_names():
    stored = ["bert.embeddings.LayerNorm.gamma", "bert.pooler.dense.bias", "cls.predictions.transform.LayerNorm.beta"]
    assert [table_name(name) for name in stored] == [
        "embeddings.LayerNorm.weight",
        "pooler.dense.bias",
        "cls.predictions.transform.LayerNorm.bias",
    ]


@pytest.mark.parametrize("other", ["bert.embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"])
def test_one_weight_under_two_names(other, tmp_path):
    with pytest.raises(
        CheckpointError, match=f"{tmp_path}: the tensors 'embeddings.LayerNorm.weight' and '{other}' are the same"
    ):
        HuggingFaceDirectory(tmp_path, owner="x").stored_names(["embeddings.LayerNorm.weight", other])


def test_reasons():
    assert "buffer" in ignored_reason("embeddings.position_ids")
    assert "question" in ignored_reason("qa_outputs.weight")
    assert ignored_reason("classifiers.weight") is None
    assert ignored_reason("encoder.layer.0.crossattention.self.query.weight") is None


CHANGES = {
    "DistilBert": {"num_segments": 0, "pooler_activation": "relu", "layer_norm_epsilon": 1e-12},
    "Electra": {"embedding_dim": 6, "pooler_activation": "gelu_erf", "activation": "gelu_erf"},
    "XLMRoberta": {"position_offset": 1},
}


@pytest.fixture(params=CHANGES)
def make(request, our_models):
    config = dataclasses.replace(our_models.CONFIG, **CHANGES[request.param])

    def made(kind):
        return our_models.randomised(our_models.MAKERS[kind](BertBackbone(config), our_models.preprocessor()))

    made.beginning = request.param
    return made


@pytest.mark.filterwarnings("ignore:.*dropout=0.35 is not written")
@pytest.mark.parametrize("kind", ["classifier", "multiple_choice"])
def test_round_trip(make, our_models, tmp_path, kind):
    task = make(kind)
    directory = save_huggingface(task, tmp_path / "x")
    values = json.loads((directory / "config.json").read_text())
    assert values["architectures"][0].startswith(f"{make.beginning}For")
    loses_rate = (make.beginning, kind) == ("XLMRoberta", "multiple_choice")
    again = load_task(directory)
    assert (type(again), again.backbone.config) == (type(task), task.backbone.config)
    assert again.dropout == (0.1 if loses_rate else task.dropout)
    for path, value in our_models.weights(task).items():
        np.testing.assert_array_equal(our_models.weights(again)[path], value)


def test_a_pretrainer_is_refused(make, tmp_path):
    directory = save_huggingface(make("classifier"), tmp_path / "x")
    with pytest.raises(CheckpointError, match="predicts no next sentences. Give task='masked_lm'"):
        load_task(directory, "pretrainer")
    with pytest.raises(ValueError, match="`model` must be of BERT or ALBERT for pairs of sentences"):
        save_huggingface(make("pretrainer"), tmp_path / "y")


def test_a_masked_lm_with_another_activation(our_models, tmp_path):
    """The head of ELECTRA and RoBERTa has the erf form of GELU, whatever the encoder has."""
    backbone = BertBackbone(dataclasses.replace(our_models.CONFIG, position_offset=1))
    with pytest.raises(ValueError, match=r"`model\.head_activation` must be 'gelu_erf'\. Received: .*=None"):
        save_huggingface(BertMaskedLM(backbone, our_models.preprocessor()), tmp_path / "x")
    task = BertMaskedLM(backbone, our_models.preprocessor(), head_activation="gelu_erf")
    assert load_task(save_huggingface(task, tmp_path / "x")).head_activation == "gelu_erf"


def test_another_padding_than_the_positions(our_models, tmp_path):
    backbone = BertBackbone(dataclasses.replace(our_models.CONFIG, position_offset=2))
    text = r"`preprocessor\.tokenizer\.pad_id` must be the model's `position_offset` less 1, 1\. Received: .*=0"
    with pytest.raises(ValueError, match=text):
        save_huggingface(backbone, tmp_path / "x", preprocessor=our_models.preprocessor())
