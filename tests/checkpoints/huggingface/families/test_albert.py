"""ALBERT's `config.json`, its heads, and files of it that claim too much."""

import json
import re

import numpy as np
import pytest

from keras_bert_layers import BertBackbone, BertClassifier, BertConfig, BertPretrainer
from keras_bert_layers.checkpoints import CheckpointError, load_backbone, load_task, save_huggingface
from keras_bert_layers.checkpoints.files.keras_file import check_model_config
from keras_bert_layers.checkpoints.huggingface.config_keys import ignored_keys, read_fields
from keras_bert_layers.layers import EncoderParts

SIZES = {"vocabulary_size": 97, "hidden_dim": 12, "num_layers": 3, "num_heads": 3, "intermediate_dim": 20}
CONFIG = BertConfig(**SIZES, embedding_dim=5, dropout=0.0, attention_dropout=0.0)
# The keys of the released checkpoints that transformers does not read.
OLD = {"down_scale_factor": 1, "gap_size": 0, "net_structure_type": 0, "num_memory_blocks": 0}


def model(task=BertPretrainer):
    made = task(BertBackbone(CONFIG, parts=EncoderParts(shares_block=True)))
    rng = np.random.default_rng(2)
    for weight in made.weights:
        weight.assign(rng.normal(0.5, 0.3, weight.shape))
    return made


def change(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_the_config_and_both_heads_of_the_pretrained_model(tmp_path):
    ours = model()
    folder = save_huggingface(ours, tmp_path / "x")
    values = json.loads((folder / "config.json").read_text())
    assert (values["architectures"], values["embedding_size"]) == (["AlbertForPreTraining"], 5)
    assert (values["num_hidden_groups"], values["inner_group_num"]) == (1, 1)
    again = load_task(folder, preprocessor=None)
    assert isinstance(again, BertPretrainer)
    assert again.backbone.config == CONFIG
    assert again.backbone.parts == EncoderParts(shares_block=True)
    for weight, other in zip(ours.weights, again.weights, strict=True):
        np.testing.assert_array_equal(weight, other)
    assert ignored_keys({**values, **OLD}) == {}
    # transformers' defaults, where they are not BERT's.
    bare = {key: value for key, value in values.items() if "dropout" not in key and key != "embedding_size"}
    assert read_fields(bare)["dropout"] == read_fields(bare)["attention_dropout"] == 0
    assert read_fields(bare)["embedding_dim"] == 128


def test_a_head_without_a_rate_of_its_own(tmp_path):
    """The key takes numbers only in transformers."""
    folder = save_huggingface(model(lambda backbone: BertClassifier(backbone, 2)), tmp_path / "x")
    assert json.loads((folder / "config.json").read_text())["classifier_dropout_prob"] == CONFIG.dropout


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"num_hidden_groups": 2}, "`num_hidden_groups` must be 1"),
        ({"inner_group_num": 2}, "`inner_group_num` must be 1"),
        ({"num_hidden_layers": 10**9}, "`num_hidden_layers` must be at most 1000"),
        ({"embedding_size": 12}, "`embedding_size` must be less than `hidden_size`, 12"),
    ],
)
def test_refused_configs(tmp_path, values, text):
    folder = save_huggingface(model().backbone, tmp_path / "x")
    change(folder, **values)
    with pytest.raises(CheckpointError, match=re.escape(text)):
        load_backbone(folder)


def test_more_layers_than_tensors(tmp_path):
    folder = save_huggingface(model().backbone, tmp_path / "x")
    change(folder, num_hidden_layers=60)
    assert load_backbone(folder).config.num_layers == 60


def test_refused_parts(tmp_path):
    """transformers projects every embedding, and has no other parts beside the shared block."""
    wide = BertBackbone(BertConfig(**SIZES), parts=EncoderParts(shares_block=True))
    causal = BertBackbone(CONFIG, parts=EncoderParts(shares_block=True, causal=True))
    for backbone in (wide, causal):
        with pytest.raises(ValueError, match="No model type of transformers has these parts"):
            save_huggingface(backbone, tmp_path / "x")


def test_what_a_keras_file_may_claim():
    """One block is in the file, however often it is called."""
    config = {**model().backbone.get_config()}
    stored = 4 * sum(int(np.prod(weight.shape)) for weight in model().backbone.weights)
    config["config"]["num_layers"] = 900
    check_model_config("x", config, stored)
    for claimed in ({"num_layers": 10**9}, {"num_layers": 3, "hidden_dim": 10**6}):
        with pytest.raises(CheckpointError, match="takes at least"):
            check_model_config("x", {**config, "config": {**config["config"], **claimed}}, stored)
