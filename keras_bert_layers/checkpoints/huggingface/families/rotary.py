"""Rotary positions as a `config.json` states them: in transformers' form, and in those of the code before it.

References:
    transformers, modeling_rope_utils.py. "ntk" is of the code in the repositories of GTE: one larger base, and slower
    angles besides, as Su 2023 has it, https://kexue.fm/archives/9706, equation 6. text-embeddings-inference and vLLM
    compute the same.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal import checks
from keras_bert_layers.checkpoints.huggingface.families.family import READER, PartsForm, described
from keras_bert_layers.config import BertConfig

if TYPE_CHECKING:
    from keras_bert_layers.layers.encoder_parts import EncoderParts
    from keras_bert_layers.layers.positions import RotaryPositions

ROTARY_KEYS = frozenset({"rope_parameters", "rope_scaling", "rope_theta", "rotary_emb_base", "head_dim"})
"""The keys that state the positions."""
BLOCK_TENSORS = {
    "self_attn.q_proj.": "attention.self.query.",
    "self_attn.k_proj.": "attention.self.key.",
    "self_attn.v_proj.": "attention.self.value.",
    "self_attn.o_proj.": "attention.output.dense.",
    "post_attention_layernorm.": "attention.output.LayerNorm.",
    "post_mlp_layernorm.": "output.LayerNorm.",
}
"""transformers' names of the tensors in a block, but for the feed-forward layer."""
GATED_TENSORS = {
    "mlp.gate_proj.": "intermediate.gate.",
    "mlp.up_proj.": "intermediate.up.",
    "mlp.down_proj.": "output.dense.",
}
"""Those of a gated feed-forward layer."""
QUERY_KEY_VALUE = tuple(f"self_attn.{letter}_proj." for letter in "qkv")
"""What the files of the former code hold as one tensor, in this order."""


@dataclasses.dataclass(frozen=True)
class RotaryParts(PartsForm):
    """The parts of a BERT with rotary positions; a family's own form gives its blocks too.

    Args:
        default: the base where a `config.json` states none.
        kinds: the values of `rope_type` that the family has.
    """

    default: float
    kinds: tuple[str, ...] = ("default",)

    def blocks(self, config: BertConfig) -> dict[str, Any]:
        """The parts of the blocks that are not BERT's, by the names of arguments of `EncoderParts`."""
        return {}

    def read(self, values: Mapping[str, Any], config: BertConfig) -> EncoderParts | None:
        """The positions by the keys of the file, and the family's blocks."""
        from keras_bert_layers.layers import EncoderParts

        width = config.hidden_dim // config.num_heads
        if values.get("head_dim") not in (width, None):
            raise ValueError(checks.message(READER, "head_dim", f"be {width}", values["head_dim"]))
        return EncoderParts(positions=_positions(values, width, self.default, self.kinds), **self.blocks(config))

    def written(self, parts: EncoderParts, config: BertConfig) -> dict[str, Any] | None:
        """`rope_parameters` of transformers, if the family has these parts."""
        positions = parts.positions
        base, factor = getattr(positions, "base", None), getattr(positions, "interpolation", 1.0)
        kind = {"rope_type": "default"} if factor == 1 else {"rope_type": "linear", "factor": factor}
        if base is None or kind["rope_type"] not in self.kinds:
            return None
        values = {"rope_parameters": {**kind, "rope_theta": base}}
        return values if described(self.read(values, config)) == described(parts) else None


def _positions(values: Mapping[str, Any], width: int, default: float, kinds: tuple[str, ...]) -> RotaryPositions:
    """The positions by all keys that speak of them, which must agree."""
    from keras_bert_layers.layers import RotaryPositions

    stated = {key: values[key] for key in ("rope_parameters", "rope_scaling") if values.get(key)}
    empty: tuple[str, Any] = "rope_parameters", {}
    key, parameters = next(iter(stated.items()), empty)
    checks.instance(READER, key, parameters, dict)
    if any(other != parameters for other in stated.values()):
        raise ValueError(checks.message(READER, "rope_scaling", f"be `{key}` where both are there", stated))
    # transformers: `type` is an older name of `rope_type`.
    parameters = {"rope_type": parameters.get("type", "default"), **parameters}
    kind = checks.one_of(READER, f"{key}.rope_type", parameters["rope_type"], kinds)
    for name, allowed in {"partial_rotary_factor": 1.0, "mixed_b": None}.items():
        if parameters.get(name, allowed) != allowed:
            raise ValueError(checks.message(READER, f"{key}.{name}", f"be {allowed!r}", parameters))
    base, factor = _base(values, key, parameters, default), 1.0
    if kind != "default":
        factor = checks.positive_number(READER, f"{key}.factor", parameters.get("factor"))
        if not 1 <= factor < math.inf:
            raise ValueError(checks.message(READER, f"{key}.factor", "be finite and at least 1", factor))
    if kind == "ntk":
        base, factor = base * factor, factor ** (2 / width)
    return RotaryPositions(base=base, halves=True, interpolation=factor)


def _base(values: Mapping[str, Any], key: str, parameters: Mapping[str, Any], default: float) -> float:
    """How slowly the last columns rotate, by every key that states it."""
    found = {f"{key}.rope_theta": parameters.get("rope_theta"), "rope_theta": values.get("rope_theta")}
    found["rotary_emb_base"] = values.get("rotary_emb_base")
    bases = {name: checks.positive_number(READER, name, base) for name, base in found.items() if base is not None}
    for name, base in bases.items():
        if not math.isfinite(base) or base != next(iter(bases.values())):
            raise ValueError(checks.message(READER, name, "be finite, and one number in all forms", bases))
    return float(next(iter(bases.values()), default))
