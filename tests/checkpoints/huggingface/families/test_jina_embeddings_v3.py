"""Jina embeddings v3: the configs of transformers and of the code before it."""

import re

import pytest

from keras_bert_layers import BertConfig
from keras_bert_layers.checkpoints import config_to_huggingface
from keras_bert_layers.checkpoints.huggingface.config_keys import ignored_keys, read_fields
from keras_bert_layers.checkpoints.huggingface.families.jina_embeddings_v3 import JINA_EMBEDDINGS_V3
from keras_bert_layers.checkpoints.huggingface.families.table import stated_family

TODAYS = {
    "model_type": "jina_embeddings_v3",
    "vocab_size": 97,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 42,
}
FORMER = {
    **TODAYS,
    **{"model_type": "xlm-roberta", "architectures": ["XLMRobertaLoRA"], "position_embedding_type": "rotary"},
    **{"rotary_emb_base": 20000.0, "use_flash_attn": True, "truncate_dim": None, "emb_pooler": None},
    **{"load_trained_adapters": True, "lora_main_params_trainable": False, "lora_dropout_p": 0.0},
}


def read(values):
    config = BertConfig(**read_fields(values))
    return config, JINA_EMBEDDINGS_V3.parts.read(values, config)


def test_both_forms_of_the_config():
    assert stated_family(FORMER) is stated_family(TODAYS) is JINA_EMBEDDINGS_V3
    (config, parts), (former, former_parts) = read(TODAYS), read(FORMER)
    assert config == former
    assert (config.position_offset, config.num_segments, config.layer_norm_epsilon) == (0, 1, 1e-5)
    assert parts.positions.base == former_parts.positions.base == 20_000.0
    assert ignored_keys(FORMER) == {}
    written = config_to_huggingface(config, parts)
    assert (written["model_type"], written["rope_parameters"]["rope_theta"]) == ("jina_embeddings_v3", 20_000.0)
    assert read(written)[0] == config


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("truncate_dim", 64), ("emb_pooler", "mean"), ("rotary_emb_base", None), ("max_position_embeddings", 10**9)),
        *(("rope_parameters", {"rope_type": "linear", "factor": 2.0}), ("position_embedding_type", "absolute")),
    ],
)
def test_what_computes_something_else_is_refused(key, value):
    values = {**FORMER, key: value}
    if key == "position_embedding_type":  # of XLM-RoBERTa, whose positions are a table
        assert stated_family(values).title == "XLM-RoBERTa"
        values["model_type"] = "jina_embeddings_v3"
    if value is None:
        del values[key]
    with pytest.raises(ValueError, match=re.escape(key)):
        read(values)
