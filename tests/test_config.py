import dataclasses
import json
import re

import pytest

from keras_bert_layers.config import ACTIVATIONS, BertConfig

SIZES = {"vocabulary_size": 97, "hidden_dim": 12, "num_layers": 2, "num_heads": 3, "intermediate_dim": 20}
GOOGLE = {
    "attention_probs_dropout_prob": 0.2,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.3,
    "hidden_size": 12,
    "initializer_range": 0.04,
    "intermediate_size": 20,
    "max_position_embeddings": 11,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "type_vocab_size": 5,
    "vocab_size": 97,
}
HUGGINGFACE = {**GOOGLE, "model_type": "bert", "layer_norm_eps": 1e-5}
EXPECTED = {
    **SIZES,
    "dropout": 0.3,
    "attention_dropout": 0.2,
    "initializer_range": 0.04,
    "max_sequence_length": 11,
    "num_segments": 5,
}


def test_defaults():
    config = BertConfig(**SIZES)
    assert config.to_dict() == {
        **SIZES,
        "activation": "gelu_erf",
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "max_sequence_length": 512,
        "num_segments": 2,
        "layer_norm_epsilon": 1e-12,
        "embedding_dim": None,
        "initializer_range": 0.02,
        "position_offset": 0,
        "pooler_activation": "tanh",
    }


def test_round_trip_through_json():
    config = BertConfig(**SIZES, activation="relu", dropout=0, embedding_dim=5)
    assert BertConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert hash(BertConfig.from_dict(config.to_dict())) == hash(config)


def test_it_is_frozen_and_a_changed_copy_is_checked():
    config = BertConfig(**SIZES)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.num_heads = 4
    assert dataclasses.replace(config, num_heads=4).num_heads == 4
    with pytest.raises(ValueError, match="must divide"):
        dataclasses.replace(config, num_heads=5)


def test_arguments_are_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        BertConfig(97, 12, 2, 3, 20)


def test_numbers_become_plain_python():
    numpy = pytest.importorskip("numpy")
    config = BertConfig(**{name: numpy.int64(value) for name, value in SIZES.items()}, dropout=numpy.float32(0.5))
    assert config == BertConfig(**SIZES, dropout=0.5)
    assert {type(value) for value in config.to_dict().values()} == {int, float, str, type(None)}


def test_an_embedding_as_wide_as_the_hidden_states_is_none():
    assert BertConfig(**SIZES, embedding_dim=12) == BertConfig(**SIZES)


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"vocabulary_size": 0}, ValueError, "`vocabulary_size` must be at least 1. Received: vocabulary_size=0."),
        ({"hidden_dim": "12"}, TypeError, "`hidden_dim` must be an integer. Received: hidden_dim='12'."),
        ({"num_layers": True}, TypeError, "`num_layers` must be an integer. Received: num_layers=True."),
        ({"num_heads": 5}, ValueError, "`num_heads` must divide `hidden_dim` (12). Received: num_heads=5."),
        ({"intermediate_dim": -1}, ValueError, "`intermediate_dim` must be at least 1. Received: intermediate_dim=-1."),
        ({"activation": "swoosh"}, ValueError, "`activation` must be one of ['gelu_erf', 'gelu_tanh', 'relu'"),
        ({"activation": None}, ValueError, "`activation` must be one of ['gelu_erf', 'gelu_tanh', 'relu'"),
        ({"dropout": 1}, ValueError, "`dropout` must be at least 0 and less than 1. Received: dropout=1."),
        ({"attention_dropout": None}, TypeError, "`attention_dropout` must be a number."),
        ({"max_sequence_length": 0}, ValueError, "`max_sequence_length` must be at least 1."),
        ({"num_segments": 1.0}, TypeError, "`num_segments` must be an integer."),
        ({"num_segments": -1}, ValueError, "`num_segments` must be at least 0."),
        ({"position_offset": -1}, ValueError, "`position_offset` must be at least 0."),
        ({"pooler_activation": "gelu"}, ValueError, "`pooler_activation` must be one of ['gelu_erf', 'gelu_tanh',"),
        ({"layer_norm_epsilon": 0}, ValueError, "`layer_norm_epsilon` must be greater than 0."),
        ({"initializer_range": float("nan")}, ValueError, "`initializer_range` must be greater than 0."),
        ({"layer_norm_epsilon": 10**400}, ValueError, "`layer_norm_epsilon` must be a number that a float can hold."),
        ({"embedding_dim": 13}, ValueError, "`embedding_dim` must not be greater than `hidden_dim` (12)."),
        ({"embedding_dim": 0}, ValueError, "`embedding_dim` must be at least 1."),
    ],
)
def test_errors(changed, error, text):
    with pytest.raises(error, match=re.escape(f"`BertConfig`: {text}")):
        BertConfig(**{**SIZES, **changed})


def test_gelu_alone_is_refused_with_a_cure():
    with pytest.raises(ValueError, match=re.escape("Received: activation='gelu'. Say \"gelu_erf\" (what HuggingFace")):
        BertConfig(**SIZES, activation="gelu")


def test_from_dict_refuses_unknown_and_missing_keys():
    text = (
        "`BertConfig.from_dict`: every key must be known. Received: num_layer=2 (did you mean 'num_layers'?), "
        "language='de'. Remove those that do not change the encoder from the config."
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        BertConfig.from_dict({**SIZES, "num_layer": 2, "language": "de"})
    incomplete = {"vocabulary_size": 97, "num_layers": 2, "num_heads": 3}
    with pytest.raises(
        ValueError, match=re.escape("the keys ['hidden_dim', 'intermediate_dim'], which have no default")
    ):
        BertConfig.from_dict(incomplete)


@pytest.mark.parametrize("reader", [BertConfig.from_dict, BertConfig.from_huggingface, BertConfig.from_google])
def test_readers_want_a_dictionary(reader):
    with pytest.raises(
        TypeError, match=r"`values` must be a dictionary. Received: values='config.json'. Read the file"
    ):
        reader("config.json")


def test_google():
    assert BertConfig.from_google(GOOGLE) == BertConfig(**EXPECTED, activation="gelu_tanh")
    assert BertConfig.from_google({**GOOGLE, "hidden_act": "relu"}).activation == "relu"
    assert BertConfig.from_google({**GOOGLE, "embedding_size": 7}).embedding_dim == 7


def test_google_multilingual_keys():
    # As in multi_cased_L-12_H-768_A-12/bert_config.json.
    more = {
        "directionality": "bidi",
        "pooler_fc_size": 768,
        "pooler_num_attention_heads": 12,
        "pooler_num_fc_layers": 3,
        "pooler_size_per_head": 128,
        "pooler_type": "first_token_transform",
    }
    assert BertConfig.from_google({**GOOGLE, **more}) == BertConfig.from_google(GOOGLE)
    assert BertConfig.from_huggingface({**HUGGINGFACE, **more}) == BertConfig.from_huggingface(HUGGINGFACE)


@pytest.mark.parametrize(
    ("ours", "word"), [("gelu_tanh", "gelu"), ("relu", "relu"), ("tanh", "tanh"), ("linear", "linear")]
)
def test_to_google(ours, word):
    config = BertConfig(**EXPECTED, activation=ours)
    assert config.to_google() == {**GOOGLE, "hidden_act": word}
    assert list(config.to_google()) == list(GOOGLE)  # in the order of Google's own files
    assert BertConfig.from_google(config.to_google()) == config


def test_to_google_narrower_embedding():
    config = BertConfig(**EXPECTED, activation="gelu_tanh", embedding_dim=7)
    assert config.to_google() == {**GOOGLE, "embedding_size": 7}
    assert BertConfig.from_google(config.to_google()) == config


def test_what_google_cannot_say():
    """The erf form and the epsilon, for which Google's files have no words."""
    config = BertConfig(**EXPECTED, activation="gelu_erf", layer_norm_epsilon=1e-5)
    assert config.to_google() == GOOGLE
    text = "`BertConfig.to_google`: `activation` must be one of ['gelu_erf', 'gelu_tanh', 'relu', 'tanh', 'linear'] for"
    for activation in ("silu", "mish", "relu6", "sigmoid"):
        with pytest.raises(ValueError, match=re.escape(text)):
            BertConfig(**EXPECTED, activation=activation).to_google()


def test_google_casing_is_the_tokenizers():
    assert BertConfig.from_google({**GOOGLE, "do_lower_case": False}) == BertConfig.from_google(GOOGLE)


def test_huggingface():
    assert BertConfig.from_huggingface(HUGGINGFACE) == BertConfig(
        **EXPECTED, activation="gelu_erf", layer_norm_epsilon=1e-5
    )
    assert BertConfig.from_huggingface({**HUGGINGFACE, "embedding_size": 7}).embedding_dim == 7


def test_huggingface_old_files_without_some_keys():
    # As in the config.json of the small BERTs: no model_type, no layer_norm_eps.
    config = BertConfig.from_huggingface(GOOGLE)
    assert config.layer_norm_epsilon == 1e-12
    assert config.activation == "gelu_erf"


def test_huggingface_rates_default_as_in_transformers():
    required = {key: value for key, value in HUGGINGFACE.items() if "dropout" not in key and "range" not in key}
    config = BertConfig.from_huggingface(required)
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
    assert BertConfig.from_huggingface({**HUGGINGFACE, "hidden_act": word}).activation == activation


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_nothing_is_lost_on_the_way_to_huggingface(activation):
    config = BertConfig(**{**EXPECTED, "activation": activation, "layer_norm_epsilon": 1e-5, "dropout": 0})
    values = config.to_huggingface()
    assert BertConfig.from_huggingface(json.loads(json.dumps(values))) == config
    assert values["hidden_act"] == {"gelu_erf": "gelu", "gelu_tanh": "gelu_new"}.get(activation, activation)
    assert values.keys() == HUGGINGFACE.keys()


def test_a_narrower_embedding_is_refused_by_huggingface():
    text = "`BertConfig.to_huggingface`: `embedding_dim` must be None for HuggingFace's BERT. Received:"
    with pytest.raises(ValueError, match=re.escape(text)):
        BertConfig(**SIZES, embedding_dim=5).to_huggingface()


@pytest.mark.peers
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_transformers_reads_what_is_written_for_it(activation):
    transformers = pytest.importorskip("transformers")
    config = BertConfig(**{**EXPECTED, "activation": activation, "layer_norm_epsilon": 1e-5})
    theirs = transformers.BertConfig(**config.to_huggingface())
    assert BertConfig.from_huggingface(theirs.to_dict()) == config
    assert theirs.hidden_act in transformers.activations.ACT2FN


@pytest.mark.parametrize("word", ["quick_gelu", "gelu_10", "leaky_relu", "gelu_erf", None, ["gelu"]])
def test_huggingface_activations_that_are_other_functions(word):
    text = "`BertConfig.from_huggingface`: `hidden_act` must be one of ['gelu', "
    with pytest.raises(ValueError, match=re.escape(text)):
        BertConfig.from_huggingface({**HUGGINGFACE, "hidden_act": word})


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
    assert BertConfig.from_huggingface({**HUGGINGFACE, **bookkeeping}) == BertConfig.from_huggingface(HUGGINGFACE)


_TYPES = "be one of ['bert', 'distilbert', 'electra', 'xlm-roberta', 'camembert', 'roberta']"


@pytest.mark.parametrize(
    ("key", "value", "rule", "reason"),
    [
        ("model_type", "gpt2", _TYPES, "This package has BERT's own"),
        ("position_embedding_type", "relative_key", "be 'absolute'", "Relative positions change the attention"),
        ("is_decoder", True, "be False", "A decoder sees only the tokens before"),
        ("add_cross_attention", True, "be False", "A decoder sees"),
        ("is_encoder_decoder", True, "be False", "A decoder sees"),
        ("pruned_heads", {"0": [1]}, "be {} or None", "Blocks with fewer heads"),
        ("auto_map", {"AutoModel": "modeling.MyBert"}, "be None", "It names code of the checkpoint's own"),
        ("quantization_config", {"bits": 4}, "be None", "The weights are quantized"),
        ("pooler_type", "mean", "be 'first_token_transform'", "This package has BERT's own"),
        ("directionality", "left", "be 'bidi'", "This package has BERT's own"),
    ],
)
def test_huggingface_values_that_ask_for_another_model(key, value, rule, reason):
    text = f"`BertConfig.from_huggingface`: `{key}` must {rule}. Received: {key}={value!r}. {reason}"
    with pytest.raises(ValueError, match=re.escape(text)):
        BertConfig.from_huggingface({**HUGGINGFACE, key: value})


def test_huggingface_old_files_of_another_model():
    with pytest.raises(ValueError, match=r"`architectures` must name BERT's classes where there is no `model_type`"):
        BertConfig.from_huggingface({**GOOGLE, "architectures": ["AlbertForMaskedLM"]})


def test_another_model_is_named_before_anything_else_of_its_config():
    for kind, reason in (
        ("albert", "one block that all layers share"),
        ("modernbert", "rotary"),
        ("mpnet", "relative"),
    ):
        with pytest.raises(
            ValueError, match=rf"`model_type` must be one of \['bert', .*\. Received: model_type='{kind}'\..*{reason}"
        ):
            BertConfig.from_huggingface({"model_type": kind, "n_layers": 6, "is_decoder": True})


def test_unknown_keys_of_huggingface():
    """They change nothing in transformers' own BERT, and are warned of all at once."""
    values = {**HUGGINGFACE, "layer_norm_epsilon": 1e-12, "my_note": [1]}
    words = "layer_norm_epsilon=1e-12 (did you mean 'layer_norm_eps'?), my_note=[1]"
    with pytest.warns(UserWarning, match=re.escape(f"some keys are unknown, and are not read: {words}")):
        assert BertConfig.from_huggingface(values) == BertConfig.from_huggingface(HUGGINGFACE)
    with pytest.raises(ValueError, match=re.escape("`BertConfig.from_huggingface`: every key must be known. Rec")):
        BertConfig.from_huggingface(values, strict=True)


def test_keys_of_other_programs():
    others = {"cell": {}, "emb_size": 312, "structure": [], "pre_trained": "", "training": "", "language": "de"}
    others |= {"name": "mine", "split": 1, "transformers.js_config": {}, "binary_labels": True}
    others |= {"rnn_dim": 3, "rnn": "lstm", "summary_type": "first"}
    config = BertConfig.from_huggingface({**HUGGINGFACE, **others}, strict=True)
    assert config == BertConfig.from_huggingface(HUGGINGFACE)


def test_unknown_keys_of_google():
    text = "`BertConfig.from_google`: every key must be known. Received: rotary=True, layer_norm_epsilon=1e-12."
    with pytest.raises(ValueError, match=re.escape(text)):
        BertConfig.from_google({**GOOGLE, "rotary": True, "layer_norm_epsilon": 1e-12})


@pytest.mark.parametrize("reader", [BertConfig.from_huggingface, BertConfig.from_google])
def test_missing_keys(reader):
    for key in ("vocab_size", "num_attention_heads", "hidden_act", "type_vocab_size"):
        incomplete = {other: value for other, value in GOOGLE.items() if other != key}
        with pytest.raises(ValueError, match=re.escape(f"must have the keys ['{key}'], which have no default")):
            reader(incomplete)


KERASHUB = {
    "module": "keras_hub.src.models.bert.bert_backbone",
    "class_name": "BertBackbone",
    "config": {
        "name": "bert_backbone",
        "trainable": True,
        "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}},
        **SIZES,
        "dropout": 0.3,
        "max_sequence_length": 11,
        "num_segments": 5,
    },
    "registered_name": "keras_hub>BertBackbone",
}


def kerashub(**arguments):
    return {**KERASHUB, "config": {**KERASHUB["config"], **arguments}}


def test_kerashub_has_one_gelu_one_epsilon_and_one_rate():
    config = BertConfig.from_kerashub(KERASHUB)
    assert config == BertConfig(
        **{**EXPECTED, "activation": "gelu_tanh", "attention_dropout": 0.3, "initializer_range": 0.02}
    )
    assert BertConfig.from_kerashub(config.to_kerashub()) == config


def test_kerashub_of_old_files():
    values = {**KERASHUB, "registered_name": "keras_nlp>BertBackbone", "config": SIZES}
    assert BertConfig.from_kerashub(values) == BertConfig(**SIZES, activation="gelu_tanh")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({**KERASHUB, "class_name": "RobertaBackbone"}, "`class_name` must be 'BertBackbone'. Received:"),
        ({**KERASHUB, "registered_name": "mine>BertBackbone"}, "`registered_name` must be 'keras_hub>BertBackbone' or"),
        ({**KERASHUB, "heads": 3}, "every key must be known. Received: heads=3"),
        ({"class_name": "BertBackbone"}, "must have the keys ['config']"),
        ({**KERASHUB, "config": [1]}, "`values` must be a dictionary. Received: values=[1]"),
        (kerashub(layer_norm_epsilon=1e-5), "every key must be known. Received: layer_norm_epsilon=1e-05"),
        (kerashub(dtype={"class_name": "DTypePolicyMap"}), "`dtype` must be a DTypePolicy. Received:"),
        (kerashub(num_heads=5), "`num_heads` must divide `hidden_dim` (12). Received: num_heads=5"),
        ({**KERASHUB, "config": {**SIZES, "num_heads": None}}, "`num_heads` must be an integer"),
        ({**KERASHUB, "config": {"num_heads": 3}}, "must have the keys ['vocabulary_size', 'num_layers'"),
    ],
)
def test_kerashub_values_that_are_refused(values, text):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        BertConfig.from_kerashub(values)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"embedding_dim": 4}, "`embedding_dim` must be None for KerasHub. Received: embedding_dim=4"),
        ({"activation": "relu"}, "`activation` must be a GELU for KerasHub. Received: activation='relu'"),
    ],
)
def test_models_that_kerashub_does_not_have(change, text):
    with pytest.raises(ValueError, match=re.escape(f"`BertConfig.to_kerashub`: {text}")):
        BertConfig(**SIZES, **change).to_kerashub()


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
    with pytest.raises(ValueError, match=re.escape(f"`BertConfig.to_{dialect}`: {text}")):
        getattr(BertConfig(**SIZES, **change), f"to_{dialect}")()


def test_foreign_values_are_checked_like_our_own():
    with pytest.raises(ValueError, match=re.escape("`num_heads` must divide `hidden_dim` (12). Received: num_heads=5")):
        BertConfig.from_huggingface({**HUGGINGFACE, "num_attention_heads": 5})


def test_the_real_config_of_minilm(minilm):
    values = json.loads((minilm / "config.json").read_text())
    assert BertConfig.from_huggingface(values) == BertConfig(
        vocabulary_size=30522, hidden_dim=384, num_layers=6, num_heads=12, intermediate_dim=1536
    )


@pytest.mark.peers
def test_every_key_that_transformers_writes_is_known():
    transformers = pytest.importorskip("transformers")
    values = json.loads(transformers.BertConfig(num_labels=3).to_json_string(use_diff=False))
    assert BertConfig.from_huggingface(values).vocabulary_size == 30522
