import re

import pytest

from keras_bert_layers import BertConfig
from keras_bert_layers.checkpoints import config_from_huggingface
from keras_bert_layers.checkpoints.huggingface.families.distilbert import DISTILBERT
from keras_bert_layers.checkpoints.huggingface.families.table import stated_family

SIZES = {"vocabulary_size": 97, "hidden_dim": 12, "num_layers": 2, "num_heads": 3, "intermediate_dim": 20}
CONFIG = BertConfig(**SIZES, num_segments=0, pooler_activation="relu", dropout=0.3)
VALUES = {
    "model_type": "distilbert",
    "architectures": ["DistilBertForMaskedLM"],
    "vocab_size": 97,
    "dim": 12,
    "n_layers": 2,
    "n_heads": 3,
    "hidden_dim": 20,
    "activation": "gelu",
    "dropout": 0.3,
    "attention_dropout": 0.1,
    "max_position_embeddings": 512,
    "initializer_range": 0.02,
    "sinusoidal_pos_embds": True,
    "qa_dropout": 0.1,
    "seq_classif_dropout": 0.2,
    "tie_weights_": True,
    "pad_token_id": 0,
}


def test_keys():
    assert config_from_huggingface(VALUES) == CONFIG
    # transformers knows three keys by BERT's names too; a key of BERT that DistilBERT does not read changes nothing.
    renamed = {key: value for key, value in VALUES.items() if key not in ("dim", "n_heads", "n_layers")}
    renamed |= {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2, "type_vocab_size": 2}
    assert config_from_huggingface(renamed) == CONFIG
    for key in ("dim", "hidden_dim", "activation"):
        values = {name: value for name, value in VALUES.items() if name != key}
        with pytest.raises(ValueError, match=re.escape(f"must have the keys ['{key}'], which have no default")):
            config_from_huggingface(values)


def test_old_files_without_a_type():
    values = {key: value for key, value in VALUES.items() if key != "model_type"}
    assert stated_family(values) is DISTILBERT
