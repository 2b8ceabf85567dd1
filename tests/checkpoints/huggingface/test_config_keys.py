import json
import re

import pytest
from config_values import EXPECTED, GOOGLE, HUGGINGFACE, SIZES

from keras_bert_layers import checkpoints
from keras_bert_layers._internal.other_libraries import FIELDS
from keras_bert_layers.checkpoints import (
    config_from_google,
    config_from_huggingface,
    config_to_huggingface,
)
from keras_bert_layers.config import ACTIVATIONS, BertConfig

# transformers has no ELU and no softplus.
WRITTEN = [name for name in ACTIVATIONS if name not in ("elu", "softplus")]


@pytest.mark.parametrize("reader", [BertConfig.from_dict, config_from_huggingface, config_from_google])
def test_readers_want_a_dictionary(reader):
    with pytest.raises(
        TypeError, match=r"`values` must be a dictionary. Received: values='config.json'. Read the file"
    ):
        reader("config.json")


def test_huggingface():
    assert config_from_huggingface(HUGGINGFACE) == BertConfig(
        **EXPECTED, activation="gelu_erf", layer_norm_epsilon=1e-5
    )
    assert config_from_huggingface({**HUGGINGFACE, "embedding_size": 7}).embedding_dim == 7


def test_huggingface_old_files_without_some_keys():
    # As in the config.json of the small BERTs: no model_type, no layer_norm_eps.
    config = config_from_huggingface(GOOGLE)
    assert config.layer_norm_epsilon == 1e-12
    assert config.activation == "gelu_erf"


def test_huggingface_rates_default_as_in_transformers():
    required = {key: value for key, value in HUGGINGFACE.items() if "dropout" not in key and "range" not in key}
    config = config_from_huggingface(required)
    assert (config.dropout, config.attention_dropout, config.initializer_range) == (0.1, 0.1, 0.02)


@pytest.mark.parametrize(
    ("word", "activation"),
    [
        ("gelu", "gelu_erf"),
        ("gelu_python", "gelu_erf"),
        ("gelu_new", "gelu_tanh"),
        ("gelu_fast", "gelu_tanh"),
        ("gelu_pytorch_tanh", "gelu_tanh"),
        ("gelu_accurate", "gelu_tanh"),
        ("relu", "relu"),
        ("silu", "silu"),
        ("swish", "silu"),
        ("tanh", "tanh"),
    ],
)
def test_huggingface_activations(word, activation):
    assert config_from_huggingface({**HUGGINGFACE, "hidden_act": word}).activation == activation


@pytest.mark.parametrize("activation", WRITTEN)
def test_nothing_is_lost_on_the_way_to_huggingface(activation):
    config = BertConfig(**{**EXPECTED, "activation": activation, "layer_norm_epsilon": 1e-5, "dropout": 0})
    values = config_to_huggingface(config)
    assert config_from_huggingface(json.loads(json.dumps(values))) == config
    assert values["hidden_act"] == {"gelu_erf": "gelu", "gelu_tanh": "gelu_new"}.get(activation, activation)
    assert values.keys() == HUGGINGFACE.keys()


def test_a_narrower_embedding_is_refused_by_huggingface():
    text = "`config_to_huggingface`: `embedding_dim` must be None for HuggingFace's BERT. Received:"
    with pytest.raises(ValueError, match=re.escape(text)):
        config_to_huggingface(BertConfig(**SIZES, embedding_dim=5))


@pytest.mark.peers
@pytest.mark.parametrize("activation", WRITTEN)
def test_transformers_reads_what_is_written_for_it(activation):
    transformers = pytest.importorskip("transformers")
    config = BertConfig(**{**EXPECTED, "activation": activation, "layer_norm_epsilon": 1e-5})
    theirs = transformers.BertConfig(**config_to_huggingface(config))
    assert config_from_huggingface(theirs.to_dict()) == config
    assert theirs.hidden_act in transformers.activations.ACT2FN


@pytest.mark.parametrize("word", ["relu2", "elu", "gelu_erf", None, ["gelu"]])
def test_huggingface_activations_that_are_other_functions(word):
    text = "`config_from_huggingface`: `hidden_act` must be one of ['gelu', "
    with pytest.raises(ValueError, match=re.escape(text)):
        config_from_huggingface({**HUGGINGFACE, "hidden_act": word})


@pytest.mark.parametrize("activation", ["elu", "softplus"])
def test_activations_that_transformers_does_not_have(activation):
    text = "`config_to_huggingface`: `config.activation` must be one of ['gelu_erf', "
    with pytest.raises(ValueError, match=re.escape(text)):
        config_to_huggingface(BertConfig(**SIZES, activation=activation))


def test_code_of_the_checkpoint_is_reported_and_not_run():
    """transformers too reads a BERT then, unless it is allowed to run the code."""
    with pytest.warns(UserWarning, match=r"`auto_map` names code .*read as a BERT, by"):
        config = config_from_huggingface({**HUGGINGFACE, "auto_map": {"AutoModel": "modeling.MyBert"}})
    assert config == config_from_huggingface(HUGGINGFACE)


def test_huggingface_bookkeeping_is_ignored():
    bookkeeping = {
        "_name_or_path": "some/where",
        "architectures": ["BertForSequenceClassification"],
        "bos_token_id": None,
        "classifier_dropout": 0.4,
        "chunk_size_feed_forward": 0,
        "dtype": "float16",
        "finetuning_task": "sst2",
        "gradient_checkpointing": False,
        "id2label": {"0": "a", "1": "b"},
        "label2id": {"a": 0, "b": 1},
        "output_attentions": False,
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
        "problem_type": "single_label_classification",
        "pruned_heads": {},
        "is_decoder": False,
        "tie_word_embeddings": True,
        "tokenizer_class": "BertTokenizer",
        "torch_dtype": "float32",
        "transformers_version": "4.8.2",
        "use_cache": True,
    }
    assert config_from_huggingface({**HUGGINGFACE, **bookkeeping}) == config_from_huggingface(HUGGINGFACE)


_TYPES = (
    "be one of ['bert', 'distilbert', 'electra', 'xlm-roberta', 'camembert', 'roberta', 'mpnet', 'modernbert', "
    "'nomic_bert', 'gte', 'new', 'jina_embeddings_v3', 'albert', 'deberta-v2']"
)


@pytest.mark.parametrize(
    ("key", "value", "rule", "reason"),
    [
        ("model_type", "gpt2", _TYPES, "This package has BERT's own"),
        ("position_embedding_type", "relative_key", "be 'absolute'", "Relative positions change the attention"),
        ("is_decoder", True, "be False", "A decoder sees only the tokens before"),
        ("add_cross_attention", True, "be False", "A decoder sees"),
        ("is_encoder_decoder", True, "be False", "A decoder sees"),
        ("pruned_heads", {"0": [1]}, "be {} or None", "Blocks with fewer heads"),
        ("quantization_config", {"bits": 4}, "be None", "The weights are quantized"),
        ("pooler_type", "mean", "be 'first_token_transform'", "This package has BERT's own"),
        ("directionality", "left", "be 'bidi'", "This package has BERT's own"),
    ],
)
def test_huggingface_values_that_ask_for_another_model(key, value, rule, reason):
    text = f"`config_from_huggingface`: `{key}` must {rule}. Received: {key}={value!r}. {reason}"
    with pytest.raises(ValueError, match=re.escape(text)):
        config_from_huggingface({**HUGGINGFACE, key: value})


def test_huggingface_old_files_of_another_model():
    with pytest.raises(ValueError, match=r"`architectures` must name BERT's classes where there is no `model_type`"):
        config_from_huggingface({**GOOGLE, "architectures": ["BigBirdForMaskedLM"]})


def test_another_model_is_named_before_anything_else_of_its_config():
    for kind, reason in (
        ("big_bird", "This package has BERT's own"),
        ("deberta", "keys without biases"),
    ):
        with pytest.raises(
            ValueError, match=rf"`model_type` must be one of \['bert', .*\. Received: model_type='{kind}'\..*{reason}"
        ):
            config_from_huggingface({"model_type": kind, "n_layers": 6, "is_decoder": True})


MPNET = {**{key: value for key, value in HUGGINGFACE.items() if key != "type_vocab_size"}, "model_type": "mpnet"}


def test_a_config_does_not_hold_the_parts_of_a_model():
    with pytest.raises(
        ValueError, match=r"`model_type` must have BERT's own parts\. .*`load_backbone\(source\)` has both"
    ):
        config_from_huggingface(MPNET)


@pytest.mark.parametrize("values", [{"relative_attention_num_buckets": 16}, {"pad_token_id": 0}])
def test_settings_that_transformers_does_not_compute_with(values):
    with pytest.raises(ValueError, match=f"`{next(iter(values))}` must be "):
        config_from_huggingface({**MPNET, **values})


def test_unknown_keys_of_huggingface():
    """They change nothing in transformers' own BERT, and are warned of all at once."""
    values = {**HUGGINGFACE, "layer_norm_epsilon": 1e-12, "my_note": [1]}
    words = "layer_norm_epsilon=1e-12 (did you mean 'layer_norm_eps'?), my_note=[1]"
    with pytest.warns(UserWarning, match=re.escape(f"some keys are unknown, and are not read: {words}")):
        assert config_from_huggingface(values) == config_from_huggingface(HUGGINGFACE)
    with pytest.raises(ValueError, match=re.escape("`config_from_huggingface`: every key must be known. Rec")):
        config_from_huggingface(values, strict=True)


def test_keys_of_other_programs():
    others = {"cell": {}, "emb_size": 312, "structure": [], "pre_trained": "", "training": "", "language": "de"}
    others |= {"name": "mine", "split": 1, "transformers.js_config": {}, "binary_labels": True}
    others |= {"rnn_dim": 3, "rnn": "lstm", "summary_type": "first"}
    config = config_from_huggingface({**HUGGINGFACE, **others}, strict=True)
    assert config == config_from_huggingface(HUGGINGFACE)


@pytest.mark.parametrize("reader", [config_from_huggingface, config_from_google])
def test_missing_keys(reader):
    for key in ("vocab_size", "num_attention_heads", "hidden_act", "type_vocab_size"):
        incomplete = {other: value for other, value in GOOGLE.items() if other != key}
        with pytest.raises(ValueError, match=re.escape(f"must have the keys ['{key}'], which have no default")):
            reader(incomplete)


@pytest.mark.parametrize("dialect", ["google", "kerashub"])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"num_segments": 0}, "`num_segments` must be at least 1 for {}. Received: num_segments=0. This is a relative"),
        ({"position_offset": 2}, "`position_offset` must be 0 for {}. Received: position_offset=2."),
        ({"pooler_activation": "relu"}, "`pooler_activation` must be 'tanh' for {}. Received: pooler_activation='rel"),
    ],
)
def test_dialects_with_bert_alone(dialect, change, text):
    text = text.format({"google": "Google", "kerashub": "KerasHub"}[dialect])
    with pytest.raises(ValueError, match=re.escape(f"`config_to_{dialect}`: {text}")):
        getattr(checkpoints, f"config_to_{dialect}")(BertConfig(**SIZES, **change))


def test_foreign_values_are_checked_like_our_own():
    with pytest.raises(ValueError, match=re.escape("`num_heads` must divide `hidden_dim` (12). Received: num_heads=5")):
        config_from_huggingface({**HUGGINGFACE, "num_attention_heads": 5})


def test_the_real_config_of_minilm(minilm):
    values = json.loads((minilm / "config.json").read_text())
    assert config_from_huggingface(values) == BertConfig(
        vocabulary_size=30522, hidden_dim=384, num_layers=6, num_heads=12, intermediate_dim=1536
    )


@pytest.mark.peers
def test_every_key_that_transformers_writes_is_known():
    transformers = pytest.importorskip("transformers")
    values = json.loads(transformers.BertConfig(num_labels=3).to_json_string(use_diff=False))
    assert config_from_huggingface(values).vocabulary_size == 30522


@pytest.mark.parametrize(("key", "name"), FIELDS.items())
def test_the_hints_of_bert_config_are_the_names_that_are_read(key, name):
    changed = {"hidden_act": "relu", "hidden_size": 24, "num_attention_heads": 6}
    value = changed.get(key, 0.5 if key.endswith(("_prob", "_range", "_eps")) else 7)
    values = {**HUGGINGFACE, "embedding_size": 6}
    before, after = (config_from_huggingface(one).to_dict() for one in (values, {**values, key: value}))
    assert [field for field in before if before[field] != after[field]] == [name]
