import re

import pytest

from keras_bert_layers.presets import PRESETS, preset_config


def num_encoder_parameters(config):
    """Counted by hand from the shapes of the paper: embeddings, blocks, pooler."""
    width, inner = config.hidden_dim, config.intermediate_dim
    norm = 2 * width
    embedding = (config.vocabulary_size + config.max_sequence_length + config.num_segments) * width + norm
    attention = 4 * (width * width + width)
    feed_forward = width * inner + inner + inner * width + width
    block = attention + norm + feed_forward + norm
    return embedding + config.num_layers * block + width * width + width


def num_pretraining_parameters(config):
    """Those of the encoder, the masked-LM transform and bias, and the next-sentence layer."""
    width = config.hidden_dim
    transform = width * width + width + 2 * width
    return num_encoder_parameters(config) + transform + config.vocabulary_size + 2 * width + 2


def test_names_and_sizes_of_the_24_small_models():
    small = {name: config for name, config in PRESETS.items() if name.startswith("bert_uncased_L-")}
    assert len(small) == 24
    for name, config in small.items():
        layers, width, heads = map(int, re.fullmatch(r"bert_uncased_L-(\d+)_H-(\d+)_A-(\d+)", name).groups())
        assert (config.num_layers, config.hidden_dim, config.num_heads) == (layers, width, heads)
        assert config.intermediate_dim == 4 * width
        assert config.activation == "gelu_tanh"
        assert config.vocabulary_size == 30522


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        # Turc et al. 2019, arXiv:1908.08962, table 1: with the heads of pretraining.
        ("bert_uncased_L-2_H-128_A-2", 4.4),
        ("bert_uncased_L-4_H-256_A-4", 11.3),
        ("bert_uncased_L-4_H-512_A-8", 29.1),
        ("bert_uncased_L-8_H-512_A-8", 41.7),
        ("bert_uncased_L-12_H-768_A-12", 110.1),
    ],
)
def test_published_counts(name, millions):
    assert round(num_pretraining_parameters(preset_config(name)) / 1e6, 1) == millions


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("bert_base_uncased", 109_482_240),
        ("bert_base_cased", 108_310_272),
        ("bert_base_multilingual_cased", 177_853_440),
        ("bert_large_uncased", 335_141_888),
        ("bert_large_cased", 333_579_264),
    ],
)
def test_counts_of_the_encoders(name, count):
    assert num_encoder_parameters(preset_config(name)) == count


def test_the_model_has_the_weights_that_the_presets_promise():
    from keras_bert_layers.backbone import BertBackbone

    config = preset_config("bert_uncased_L-2_H-128_A-2")
    assert BertBackbone(config).count_params() == num_encoder_parameters(config) == 4_385_920


@pytest.mark.parametrize(
    ("file", "name"), [("bert-base-uncased.txt", "bert_base_uncased"), ("bert-base-cased.txt", "bert_base_cased")]
)
def test_vocabulary_sizes_of_the_released_files(file, name, shared_data):
    lines = (shared_data / "vocab" / file).read_bytes().count(b"\n")
    assert lines == preset_config(name).vocabulary_size


def test_presets_cannot_be_changed():
    with pytest.raises(TypeError, match="does not support item assignment"):
        PRESETS["mine"] = PRESETS["bert_base_uncased"]


def test_unknown_name():
    text = "`preset_config`: `name` must be one of ['bert_uncased_L-2_H-128_A-2', "
    with pytest.raises(ValueError, match=re.escape(text)) as error:
        preset_config("bert_huge")
    assert "'bert_large_cased']. Received: name='bert_huge'." in str(error.value)
