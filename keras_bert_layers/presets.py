"""Configs of the published BERT encoders, by name; without weights or URLs."""

from collections.abc import Mapping
from types import MappingProxyType

from keras_bert_layers._internal import checks
from keras_bert_layers.config import BertConfig

_UNCASED, _CASED, _MULTILINGUAL_CASED = 30522, 28996, 119547


def _google(num_layers: int, hidden_dim: int, vocabulary_size: int = _UNCASED) -> BertConfig:
    """In every release, heads are 64 wide, and the feed-forward layer is four times as wide as the hidden states."""
    return BertConfig(
        vocabulary_size=vocabulary_size,
        hidden_dim=hidden_dim,
        num_layers=num_layers,
        num_heads=hidden_dim // 64,
        intermediate_dim=4 * hidden_dim,
        activation="gelu_tanh",
    )


_SMALL = {
    f"bert_uncased_L-{num_layers}_H-{hidden_dim}_A-{hidden_dim // 64}": _google(num_layers, hidden_dim)
    for num_layers in (2, 4, 6, 8, 10, 12)
    for hidden_dim in (128, 256, 512, 768)
}
PRESETS: Mapping[str, BertConfig] = MappingProxyType(
    {
        **_SMALL,
        "bert_base_uncased": _google(12, 768),
        "bert_base_cased": _google(12, 768, _CASED),
        "bert_base_multilingual_cased": _google(12, 768, _MULTILINGUAL_CASED),
        "bert_large_uncased": _google(24, 1024),
        "bert_large_cased": _google(24, 1024, _CASED),
    }
)
"""Name -> config: the 24 small BERTs (with the names of Google's releases), base and large.

All have the tanh form of GELU, with which Google trained them. A checkpoint converted by HuggingFace has "gelu", the
erf form, in its `config.json`, which is what `load_backbone` uses.

References:
    Turc et al. 2019, https://arxiv.org/abs/1908.08962, table 1 (L 2 to 12, H 128 to 768, A = H / 64).
    Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3 (base and large).
    Vocabulary sizes: lines of `vocab.txt` in Google's releases (uncased, cased, multilingual cased).
"""


def preset_config(name: str) -> BertConfig:
    """The config of a published BERT.

    Args:
        name: a key of `PRESETS`.

    Returns:
        The config; `dataclasses.replace` makes a modified copy.

    Raises:
        ValueError: if there is no preset of that name.

    Examples:
        >>> preset_config("bert_uncased_L-2_H-128_A-2").num_heads
        2
    """
    checks.one_of("preset_config", "name", name, PRESETS)
    return PRESETS[name]
