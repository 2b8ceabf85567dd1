import re
from pathlib import Path

import pytest

from keras_bert_layers.presets import PRESETS, preset_config

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "presets.md"
# What is published of the parameters. The small ones: Turc et al. 2019, arXiv:1908.08962, table 1, with the heads of
# pretraining. The large ones: README of google-research/bert.
PUBLISHED = {
    "bert_uncased_L-2_H-128_A-2": "4.4",  # tiny
    "bert_uncased_L-4_H-256_A-4": "11.3",  # mini
    "bert_uncased_L-4_H-512_A-8": "29.1",  # small
    "bert_uncased_L-8_H-512_A-8": "41.7",  # medium
    "bert_uncased_L-12_H-768_A-12": "110.1",
    "bert_base_uncased": "110",
    "bert_base_cased": "110",
    "bert_large_uncased": "340",
    "bert_large_cased": "340",
}


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


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name):
    """To the last digit that the paper gives; Google's README gives one round figure for uncased and cased."""
    millions = num_pretraining_parameters(preset_config(name)) / 1e6
    if "." in PUBLISHED[name]:
        assert PUBLISHED[name] == f"{millions:.1f}"
    else:
        assert float(PUBLISHED[name]) == pytest.approx(millions, rel=0.02)


def table():
    """The table of docs/reference/presets.md."""
    header = "| Name | Layers | Width | Heads | Encoder | With the heads of pretraining | Published, in millions |"
    lines = [header, "|---|--:|--:|--:|--:|--:|--:|"]
    for name, config in PRESETS.items():
        sizes = f"{config.num_layers} | {config.hidden_dim} | {config.num_heads}"
        counts = f"{num_encoder_parameters(config):,} | {num_pretraining_parameters(config):,}"
        lines.append(f"| `{name}` | {sizes} | {counts} | {PUBLISHED.get(name, '')} |")
    return "\n".join(lines)


def page_table():
    """The table that the page shows, and the page around it."""
    page = PAGE.read_text(encoding="utf-8")
    before, line, rest = page.partition("| Name |")
    shown, _, after = rest.partition("\n\n")
    return before, line + shown, after


def test_the_table_of_the_docs():
    assert page_table()[1] == table(), "write it anew with: python tests/test_presets.py"


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


@pytest.mark.parametrize("name", ["bert_uncased_L-2_H-128_A-2", "bert_uncased_L-4_H-256_A-4"])
def test_the_heads_of_pretraining_too(name):
    from keras_bert_layers import BertBackbone, BertPretrainer

    config = preset_config(name)
    assert BertPretrainer(BertBackbone(config)).count_params() == num_pretraining_parameters(config)


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


if __name__ == "__main__":
    before, _, after = page_table()
    PAGE.write_text(f"{before}{table()}\n\n{after}", encoding="utf-8")
