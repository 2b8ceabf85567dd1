"""`BertConfig`: the hyperparameters of a BERT encoder."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from keras_bert_layers._internal import checks, keys
from keras_bert_layers._internal.hints import hint_transformers_names, unavailable

#: The inputs of an encoder, int32 `(batch, sequence)` each.
IDS = ("token_ids", "segment_ids", "padding_mask")
#: The input of a classifier that reads columns beside a text, float32 `(batch, features)`.
COLUMNS = "columns"

ACTIVATIONS = (
    *("gelu_erf", "gelu_tanh", "relu", "relu6", "silu", "mish", "tanh", "sigmoid", "linear"),
    *("quick_gelu", "gelu_10", "elu", "leaky_relu", "softplus"),
)
"""Names of the activations, as torch and transformers compute them: `leaky_relu` has the slope 0.01 below 0,
`quick_gelu` is `x * sigmoid(1.702 * x)`, and `gelu_10` is `gelu_erf` between -10 and 10."""

_TWO_GELUS = (
    'Use "gelu_erf" (what HuggingFace calls "gelu") or "gelu_tanh" '
    '(what Google\'s code calls "gelu" and HuggingFace "gelu_new").'
)

_CONVERT = "Use `keras_bert_layers.checkpoints.config_{name}`."

_CHECKS: dict[Any, tuple[str, ...]] = {
    checks.positive_integer: (
        *("vocabulary_size", "hidden_dim", "num_layers", "num_heads", "intermediate_dim"),
        "max_sequence_length",
    ),
    checks.whole_number: ("num_segments", "position_offset"),
    checks.fraction: ("dropout", "attention_dropout"),
    checks.positive_number: ("layer_norm_epsilon", "initializer_range"),
    functools.partial(checks.optional, checks.positive_integer): ("embedding_dim",),
}


@hint_transformers_names
@dataclasses.dataclass(frozen=True, kw_only=True)
class BertConfig:
    """The hyperparameters of a BERT encoder.

    A config holds no weights and reads no files: `checkpoints.config_from_huggingface` and its like convert the content
    of a file. It is immutable and hashable. `dataclasses.replace(config, num_layers=3)` returns a changed copy, which
    is checked like a new config.

    Args:
        vocabulary_size: number of token ids, which is the number of rows of the token embedding matrix.
        hidden_dim: width of the hidden states.
        num_layers: number of encoder blocks.
        num_heads: number of attention heads in a block; must divide `hidden_dim`.
        intermediate_dim: width inside the feed-forward layer.
        activation: activation of the feed-forward layer, one of `ACTIVATIONS`. GELU has two forms that differ by up to
            4.7e-4, so "gelu" alone is refused.
        dropout: dropout rate on the embeddings and on the output of each sub-layer, in [0, 1).
        attention_dropout: dropout rate on the attention probabilities, in [0, 1).
        max_sequence_length: number of positions, which is the length of the longest text in tokens.
        num_segments: number of segment ids; 0 for an encoder without segment embeddings, such as DistilBERT, which
            ignores segment ids.
        layer_norm_epsilon: added to the variance in LayerNorm.
        embedding_dim: width of the embeddings if it is smaller than `hidden_dim`; they are then projected.
        initializer_range: standard deviation of newly initialized weights.
        position_offset: 0 for BERT, whose first token has position 0. Otherwise the position of the first token, as in
            RoBERTa (2); see `layers.BertEmbedding`.
        pooler_activation: activation of the pooler, one of `ACTIVATIONS`: "tanh" for BERT and RoBERTa, "gelu_erf" for
            ELECTRA, "relu" for DistilBERT.

    Raises:
        ValueError: if a value is out of its range, or `num_heads` does not divide `hidden_dim`.
        TypeError: if a value is of the wrong type; if an argument has another name, such as transformers' `vocab_size`:
            the message has the name here.

    Examples:
        >>> config = BertConfig(vocabulary_size=30522, hidden_dim=128, num_layers=2, num_heads=2, intermediate_dim=512)
        >>> config.activation
        'gelu_erf'
        >>> BertConfig.from_dict(config.to_dict()) == config
        True

    References:
        Devlin et al. 2018, https://arxiv.org/abs/1810.04805, section 3. The factorised embedding is that of Lan et
        al. 2019, https://arxiv.org/abs/1909.11942, section 3.1.
    """

    vocabulary_size: int
    hidden_dim: int
    num_layers: int
    num_heads: int
    intermediate_dim: int
    activation: str = "gelu_erf"
    dropout: float = 0.1
    attention_dropout: float = 0.1
    max_sequence_length: int = 512
    num_segments: int = 2
    layer_norm_epsilon: float = 1e-12
    embedding_dim: int | None = None
    initializer_range: float = 0.02
    position_offset: int = 0
    pooler_activation: str = "tanh"

    from_preset, from_pretrained = unavailable("Use `presets.preset_config(name)` or `load_backbone(source).config`.")
    from_huggingface, to_huggingface = unavailable(_CONVERT)
    from_google, to_google = unavailable(_CONVERT)
    from_kerashub, to_kerashub = unavailable(_CONVERT)

    def __post_init__(self) -> None:
        for check, names in _CHECKS.items():
            for name in names:
                object.__setattr__(self, name, check("BertConfig", name, getattr(self, name)))
        check_activation("BertConfig", self.activation)
        check_activation("BertConfig", self.pooler_activation, "pooler_activation")
        checks.divides("BertConfig", "num_heads", self.num_heads, "hidden_dim", self.hidden_dim)
        if self.embedding_dim == self.hidden_dim:  # equal models get equal configs
            object.__setattr__(self, "embedding_dim", None)
        elif self.embedding_dim is not None and self.embedding_dim > self.hidden_dim:
            rule = f"not be greater than `hidden_dim` ({self.hidden_dim})"
            raise ValueError(checks.message("BertConfig", "embedding_dim", rule, self.embedding_dim))

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name, as plain Python values; `from_dict` reads them back."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BertConfig:
        """Creates a config from what `to_dict` returned.

        Args:
            values: the fields by name. Fields with a default may be left out.

        Raises:
            ValueError: if a key is not a field, or a field without a default is missing.
        """
        owner = "BertConfig.from_dict"
        keys.check_mapping(owner, values)
        fields = {field.name: field for field in dataclasses.fields(cls)}
        keys.check_known(owner, values, fields)
        keys.check_present(owner, values, [n for n, field in fields.items() if field.default is dataclasses.MISSING])
        return cls(**values)


def check_activation(owner: str, activation: Any, argument: str = "activation") -> str:
    """`activation` if it is one of `ACTIVATIONS`; ValueError otherwise."""
    return checks.one_of(owner, argument, activation, ACTIVATIONS, _TWO_GELUS if activation == "gelu" else "")
