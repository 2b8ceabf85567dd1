"""`BertConfig`: the numbers that fix the shape and the arithmetic of a BERT encoder."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from keras_bert_layers._internal import checks
from keras_bert_layers._internal import foreign_config_keys as foreign

ACTIVATIONS = (
    "gelu_erf",
    "gelu_tanh",
    "relu",
    "relu6",
    "silu",
    "mish",
    "tanh",
    "sigmoid",
    "linear",
)
"""Activation names that a config may hold; `layers.activations` has one function for each."""

_TWO_GELUS = (
    'Say "gelu_erf" (what HuggingFace calls "gelu") or "gelu_tanh" '
    '(what Google\'s code calls "gelu" and HuggingFace "gelu_new").'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BertConfig:
    """The numbers that fix the shape and the arithmetic of a BERT encoder.

    A config holds no weights and reads no files; who reads them gives their content to `from_huggingface`,
    `from_google` or `from_kerashub`. It is immutable and hashable;
    `dataclasses.replace(config, num_layers=3)` makes a changed copy, checked like a new one.

    Args:
        vocabulary_size: number of token ids, that is, rows of the token embedding matrix.
        hidden_dim: width of the hidden states.
        num_layers: number of encoder blocks.
        num_heads: attention heads of a block; divides `hidden_dim`.
        intermediate_dim: width inside the feed-forward layer.
        activation: function inside the feed-forward layer, one of `ACTIVATIONS`. GELU has two forms that differ by up
            to 4.7e-4, so "gelu" alone is refused.
        dropout: rate on the embeddings and on the output of each sub-layer, in [0, 1).
        attention_dropout: rate on the attention probabilities, in [0, 1).
        max_sequence_length: rows of the position embedding matrix, in tokens.
        num_segments: rows of the segment embedding matrix.
        layer_norm_epsilon: what LayerNorm adds to the variance.
        embedding_dim: width of the embeddings where it is smaller than `hidden_dim`: they are then projected.
        initializer_range: standard deviation of fresh weights.

    Raises:
        ValueError: if a value is out of its range, or `num_heads` does not divide `hidden_dim`.
        TypeError: if a value is of the wrong type.

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

    def __post_init__(self) -> None:
        for name in ("vocabulary_size", "hidden_dim", "num_layers", "num_heads", "intermediate_dim"):
            self._check(checks.positive_integer, name)
        for name in ("max_sequence_length", "num_segments"):
            self._check(checks.positive_integer, name)
        for name in ("dropout", "attention_dropout"):
            self._check(checks.fraction, name)
        for name in ("layer_norm_epsilon", "initializer_range"):
            self._check(checks.positive_number, name)
        check_activation("BertConfig", self.activation)
        checks.divides("BertConfig", "num_heads", self.num_heads, "hidden_dim", self.hidden_dim)
        if self.embedding_dim is not None:
            self._check(checks.positive_integer, "embedding_dim")
            if self.embedding_dim > self.hidden_dim:
                rule = f"not be greater than `hidden_dim` ({self.hidden_dim})"
                raise ValueError(checks.message("BertConfig", "embedding_dim", rule, self.embedding_dim))
            if self.embedding_dim == self.hidden_dim:  # equal models get equal configs
                object.__setattr__(self, "embedding_dim", None)

    def _check(self, check: Any, name: str) -> None:
        object.__setattr__(self, name, check("BertConfig", name, getattr(self, name)))

    def to_dict(self) -> dict[str, Any]:
        """The config as a dictionary of plain Python values; `from_dict` takes it back.

        Returns:
            Every field by its name, in the order of the class.
        """
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BertConfig:
        """The config that `to_dict` wrote.

        Args:
            values: fields by name; those with a default may be left out.

        Returns:
            The config.

        Raises:
            ValueError: if a key is no field, or a field without a default is missing.
        """
        _check_mapping("BertConfig.from_dict", values)
        fields = {field.name: field for field in dataclasses.fields(cls)}
        _check_known("BertConfig.from_dict", values, fields)
        required = [name for name, field in fields.items() if field.default is dataclasses.MISSING]
        _check_present("BertConfig.from_dict", values, required)
        return cls(**values)

    @classmethod
    def from_huggingface(cls, values: Mapping[str, Any]) -> BertConfig:
        """The config that a HuggingFace `config.json` describes.

        Every key is honoured, or is known not to change the encoder (special token ids, labels, settings of text
        generation, ...), or is refused. Older files have no `model_type`; they are read as BERT.

        Args:
            values: the parsed `config.json`.

        Returns:
            The config. The dropout rates, `initializer_range` and `layer_norm_eps` default as in transformers.

        Raises:
            ValueError: if a key is missing, unknown, or has a value that BERT's encoder here does not implement.

        Examples:
            >>> values = {"model_type": "bert", "vocab_size": 30522, "hidden_size": 128, "num_hidden_layers": 2,
            ...           "num_attention_heads": 2, "intermediate_size": 512, "hidden_act": "gelu_new",
            ...           "max_position_embeddings": 512, "type_vocab_size": 2}
            >>> BertConfig.from_huggingface(values).activation
            'gelu_tanh'
        """
        owner = "BertConfig.from_huggingface"
        _check_mapping(owner, values)
        if "model_type" not in values and not all(str(n).startswith("Bert") for n in values.get("architectures") or ()):
            rule = "name BERT's classes where there is no `model_type`"
            raise ValueError(checks.message(owner, "architectures", rule, values["architectures"], foreign.OTHER_MODEL))
        _check_only(owner, values, foreign.HUGGINGFACE_ONLY)
        known = {*foreign.HUGGINGFACE_NAMES, *foreign.HUGGINGFACE_ONLY, *foreign.HUGGINGFACE_IGNORED}
        return cls._from_foreign(owner, values, foreign.HUGGINGFACE_NAMES, known, foreign.HUGGINGFACE_ACTIVATIONS)

    def to_huggingface(self) -> dict[str, Any]:
        """What `from_huggingface` reads, and transformers makes its `BertConfig` from.

        Nothing is lost: `from_huggingface(config.to_huggingface()) == config`.

        Returns:
            The part of a `config.json` that says what the encoder is.

        Raises:
            ValueError: if the model has a narrower embedding: transformers' BERT has none.

        Examples:
            >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)
            >>> config.to_huggingface()["hidden_act"], BertConfig.from_huggingface(config.to_huggingface()) == config
            ('gelu', True)
        """
        if self.embedding_dim is not None:
            cure = "transformers' BERT has embeddings as wide as its hidden states. Save a `.keras` file."
            rule = "be None for HuggingFace"
            raise ValueError(
                checks.message("BertConfig.to_huggingface", "embedding_dim", rule, self.embedding_dim, cure)
            )
        values = {
            key: getattr(self, name) for key, name in foreign.HUGGINGFACE_NAMES.items() if name != "embedding_dim"
        }
        return {"model_type": "bert", **values, "hidden_act": foreign.TO_HUGGINGFACE_ACTIVATIONS[self.activation]}

    @classmethod
    def from_google(cls, values: Mapping[str, Any]) -> BertConfig:
        """The config that a `bert_config.json` of google-research/bert describes.

        Args:
            values: the parsed `bert_config.json`. "gelu" there is the tanh form.

        Returns:
            The config, with Google's fixed LayerNorm epsilon of 1e-12.

        Raises:
            ValueError: if a key is missing, unknown, or has a value that BERT's encoder here does not implement.
        """
        owner = "BertConfig.from_google"
        _check_mapping(owner, values)
        _check_only(owner, values, foreign.GOOGLE_ONLY)
        known = {*foreign.GOOGLE_NAMES, *foreign.GOOGLE_ONLY, *foreign.GOOGLE_IGNORED}
        return cls._from_foreign(owner, values, foreign.GOOGLE_NAMES, known, foreign.GOOGLE_ACTIVATIONS)

    def to_google(self) -> dict[str, Any]:
        """What `from_google` and google-research/bert's `modeling.BertConfig` read.

        Google's format has one word for both forms of GELU, which it computes in the tanh form, and none for
        `layer_norm_epsilon`; what it takes instead, `from_google` says. `embedding_size` is written only for a narrower
        embedding, which Google's own code does not have.

        Returns:
            The content of a `bert_config.json`.

        Raises:
            ValueError: if Google's code does not have the activation.

        Examples:
            >>> config = BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=1, num_heads=2, intermediate_dim=7)
            >>> BertConfig.from_google(config.to_google()).activation
            'gelu_tanh'
        """
        if self.activation not in foreign.TO_GOOGLE_ACTIVATIONS:
            rule = f"be one of {list(foreign.TO_GOOGLE_ACTIVATIONS)} for Google"
            cure = "Google's code has no other. Save a `.keras` file, or in HuggingFace's layout."
            raise ValueError(checks.message("BertConfig.to_google", "activation", rule, self.activation, cure))
        values = {key: getattr(self, name) for key, name in sorted(foreign.GOOGLE_NAMES.items())}
        if self.embedding_dim is None:
            del values["embedding_size"]
        return {**values, "hidden_act": foreign.TO_GOOGLE_ACTIVATIONS[self.activation]}

    @classmethod
    def from_kerashub(cls, values: Mapping[str, Any]) -> BertConfig:
        """The config that the `config.json` of a KerasHub preset describes.

        Args:
            values: the parsed `config.json`: Keras's frame round the arguments of `keras_hub.models.BertBackbone`.

        Returns:
            The config, with what KerasHub's BERT always has: the tanh form of GELU, a LayerNorm epsilon of 1e-12, and
            one dropout rate for all.

        Raises:
            ValueError: if a key is missing or unknown, or the file is of another class or of quantised weights.
        """
        owner = "BertConfig.from_kerashub"
        _check_mapping(owner, values)
        _check_known(owner, values, {"config", *foreign.KERASHUB_FRAME, *foreign.KERASHUB_FRAME_IGNORED})
        _check_present(owner, values, ("class_name", "config"))
        _check_only(owner, values, foreign.KERASHUB_FRAME)
        arguments = values["config"]
        _check_mapping(owner, arguments)
        _check_known(owner, arguments, {*foreign.KERASHUB_NAMES, *foreign.KERASHUB_IGNORED, "dtype"})
        _check_present(owner, arguments, foreign.KERASHUB_REQUIRED)
        dtype = arguments.get("dtype")
        if isinstance(dtype, Mapping) and dtype.get("class_name") != "DTypePolicy":
            cure = "Quantised weights cannot be read."
            raise ValueError(checks.message(owner, "dtype", "be a DTypePolicy", dtype, cure))
        ours = {key: arguments[key] for key in foreign.KERASHUB_NAMES if key in arguments}
        attention = {"attention_dropout": ours["dropout"]} if "dropout" in ours else {}
        return cls(**foreign.KERASHUB_FIXED, **ours, **attention)

    def to_kerashub(self) -> dict[str, Any]:
        """What `from_kerashub` reads and `keras_hub.models.BertBackbone` is made from.

        KerasHub has no word for `activation`, `layer_norm_epsilon`, `attention_dropout` and `initializer_range`; what
        it takes instead, `from_kerashub` says.

        Returns:
            The content of a `config.json`.

        Raises:
            ValueError: if the model has a narrower embedding, or is not of a GELU: KerasHub has no such BERT.
        """
        owner = "BertConfig.to_kerashub"
        if self.embedding_dim is not None:
            raise ValueError(checks.message(owner, "embedding_dim", "be None for KerasHub", self.embedding_dim))
        if not self.activation.startswith("gelu"):
            raise ValueError(checks.message(owner, "activation", "be a GELU for KerasHub", self.activation))
        arguments = {name: getattr(self, name) for name in foreign.KERASHUB_NAMES}
        return {
            "module": "keras_hub.src.models.bert.bert_backbone",
            "class_name": "BertBackbone",
            "config": {"name": "bert_backbone", "trainable": True, **arguments},
            "registered_name": "keras_hub>BertBackbone",
        }

    @classmethod
    def _from_foreign(
        cls,
        owner: str,
        values: Mapping[str, Any],
        names: Mapping[str, str],
        known: set[str],
        activations: Mapping[str, str],
    ) -> BertConfig:
        _check_known(owner, values, known)
        _check_present(owner, values, foreign.REQUIRED)
        checks.one_of(owner, "hidden_act", values["hidden_act"], list(activations))
        ours = {names[key]: value for key, value in values.items() if key in names}
        return cls(**{**ours, "activation": activations[values["hidden_act"]]})


def check_activation(owner: str, activation: Any) -> str:
    """`activation` if it is one of `ACTIVATIONS`; ValueError otherwise."""
    return checks.one_of(owner, "activation", activation, ACTIVATIONS, _TWO_GELUS if activation == "gelu" else "")


def _check_mapping(owner: str, values: Any) -> None:
    if not isinstance(values, Mapping):
        cure = "Read the file first, say with json.load; a config does no input or output."
        raise TypeError(checks.message(owner, "values", "be a dictionary", values, cure))


def _check_known(owner: str, values: Mapping[str, Any], known: Any) -> None:
    for key in values:
        if key not in known:
            raise ValueError(_unknown_key(owner, key, values[key], known))


def _check_present(owner: str, values: Mapping[str, Any], required: Any) -> None:
    missing = [key for key in required if key not in values]
    if missing:
        rule = f"have the keys {missing}, which have no default"
        raise ValueError(checks.message(owner, "values", rule, sorted(values)))


def _check_only(owner: str, values: Mapping[str, Any], only: Mapping[str, tuple[Any, ...]]) -> None:
    for key, allowed in only.items():
        if key in values and values[key] not in allowed:
            rule = f"be {' or '.join(repr(value) for value in allowed)}"
            raise ValueError(checks.message(owner, key, rule, values[key], foreign.OTHER_MODEL))


def _unknown_key(owner: str, key: str, value: Any, known: Any) -> str:
    close = difflib.get_close_matches(key, sorted(known), n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    cure = f"{hint}If it does not change the encoder, remove it from the dictionary and call again."
    return checks.message(owner, key, "be a known key", value, cure)
