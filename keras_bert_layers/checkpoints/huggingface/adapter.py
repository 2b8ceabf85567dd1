"""`merged_adapter`: the tensors of a base with a LoRA adapter of PEFT."""

import math
import re
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_bert_layers.checkpoints.checkpoint_error import CheckpointError, damaged
from keras_bert_layers.checkpoints.files.json_file import read_json_object, shown
from keras_bert_layers.checkpoints.files.tensor_file import TensorFile
from keras_bert_layers.checkpoints.files.tensor_views import TensorView

ADAPTER_CONFIG = "adapter_config.json"

# peft, tuners/lora/config.py: keys without influence on a merged weight, given the adapter's tensors.
_IGNORED = frozenset(
    {
        *("auto_mapping", "base_model_name_or_path", "bias", "inference_mode", "peft_version", "revision", "task_type"),
        *("exclude_modules", "fan_in_fan_out", "layers_pattern", "layers_to_transform", "lora_bias", "lora_dropout"),
        *("modules_to_save", "target_modules", "corda_config", "ensure_weight_tying", "eva_config", "loftq_config"),
        *("megatron_core", "qalora_group_size", "runtime_config", "lora_ga_config"),
    }
)
_USED = frozenset({"peft_type", "r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern", "init_lora_weights"})
# The other ways to begin (PiSSA, OLoRA, LoftQ, ...) change the base's weights too.
_INITIAL = (True, False, None, "gaussian", "eva", "orthogonal")
PREFIX = "base_model.model."
# What PEFT puts into the names of the modules that it wraps.
_WRAPPERS = re.compile(r"\.(?:base_layer|modules_to_save(?:\.default)?)(?=\.)")
_PART = re.compile(r"(?P<module>.+)\.lora_(?P<kind>embedding_[AB]|[AB])(?:\.default)?(?:\.(?P<last>weight|bias))?")
# PEFT takes any regular expression, and a hostile one could take for ever. These match in one pass: names, one `.*`,
# classes of characters, alternatives of names, and numbers between dots.
_LITERAL = r"(?:[\w-]|\\?\.)"
_PIECES = rf"(?:\\?\.(?:\\d|\[0-9\])\+(?=\\?\.)|{_LITERAL}|\[[\w-]+\]|\({_LITERAL}+(?:\|{_LITERAL}+)*\))*"
_PATTERN = re.compile(rf"\^?{_PIECES}(?:\.\*{_PIECES})?\$?")
_LONGEST_PATTERN, _MOST_PATTERNS, _LONGEST_MODULE = 200, 1000, 1000
_CLASSES = {
    "SEQ_CLS": "AutoPeftModelForSequenceClassification",
    "TOKEN_CLS": "AutoPeftModelForTokenClassification",
    "QUESTION_ANS": "AutoPeftModelForQuestionAnswering",
    "FEATURE_EXTRACTION": "AutoPeftModelForFeatureExtraction",
}
_EMBEDDING, _MASKED_LM = "embeddings.word_embeddings.weight", "cls.predictions."
_DECODER = f"{_MASKED_LM}decoder.weight"
_NAMES_IN_AN_ERROR = 3
_CURE_IF_MERGED = f"If they hold the adapter's changes already, remove {ADAPTER_CONFIG}."


class _Delta(NamedTuple):
    """What is added to a weight: `scale * up @ down`, transposed for embeddings; or `scale * up` to a bias."""

    up: str
    down: str | None
    rank: float
    scale: float
    transposed: bool = False


class AdaptedTensors:
    """The tensors of a base with an adapter's: some replaced, to some a product of low rank added.

    Args:
        base: the base's tensors.
        adapter: the adapter's tensors.
        replaced: name in the base, or a new one -> name in the adapter.
        deltas: name of a tensor -> what is added to it.
    """

    def __init__(
        self, base: TensorFile, adapter: TensorFile, replaced: Mapping[str, str], deltas: Mapping[str, _Delta]
    ):
        self._base, self._adapter = base, adapter
        self._replaced, self._deltas = replaced, deltas
        names = f", and {len(replaced)} tensors replaced" if replaced else ""
        #: How many tensors it changes, for the report.
        self.changes = f"was added to {len(deltas)} tensors{names}"
        self.infos = {**base.infos, **{name: adapter.infos[theirs] for name, theirs in replaced.items()}}

    def low_rank(self, owner: str) -> dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]]:
        """Of every tensor that the adapter changes, what reads two matrices whose product is added.

        Args:
            owner: the adapter, for errors.

        Raises:
            CheckpointError: it replaces tensors, or adds to biases.
        """
        changed = [*self._replaced, *(name for name, delta in self._deltas.items() if delta.down is None)]
        if changed:
            raise CheckpointError(
                f"{owner} must only add products to weights. Received: it replaces {changed[0]!r}. Merge one adapter, "
                "with adapter=..., or load the weights alone with `load_backbone`."
            )
        return {name: partial(self._factors, delta) for name, delta in self._deltas.items()}

    def _factors(self, delta: _Delta) -> tuple[np.ndarray, np.ndarray]:
        up, down = self._adapter.read(delta.up), self._adapter.read(str(delta.down))
        return np.float32(delta.scale) * (down.T if delta.transposed else up), up.T if delta.transposed else down

    @property
    def rank(self) -> int:
        """The largest rank of what it adds."""
        return int(max((delta.rank for delta in self._deltas.values()), default=1))

    def read(self, name: str) -> np.ndarray:
        """Reads one tensor of a float dtype as float32, with what the adapter adds."""
        theirs = self._replaced.get(name)
        array = self._base.read(name) if theirs is None else self._adapter.read(theirs)
        delta = self._deltas.get(name)
        if delta is None:
            return array
        added = self._adapter.read(delta.up)
        if delta.down is not None:
            added = added @ self._adapter.read(delta.down)
        return array + np.float32(delta.scale) * (added.T if delta.transposed else added)


def merged_adapter(
    path: Path, values: Mapping[str, Any], base: TensorFile, adapter: TensorFile, table_name: Callable[[str], str]
) -> AdaptedTensors:
    """Adds an adapter to the weights of its base, as PEFT computes with both.

    LoRA on dense layers and embeddings, with ranks and alphas for single modules, rank-stabilized or not, trained
    biases and complete modules (`modules_to_save`). Where an adapter changes the token embedding or the decoder of a
    masked language model whose decoder is that embedding, it was trained with the other one unchanged: the tensors then
    hold both. (PEFT's `merge_and_unload` changes both, and so the outputs.)

    Args:
        path: the file that describes the adapter, for errors.
        values: what it states, in PEFT's words.
        base: the base's tensors.
        adapter: the adapter's tensors.
        table_name: from a tensor's name to the table's, to find a weight of the adapter in the base.

    Returns:
        The tensors.

    Raises:
        CheckpointError: the adapter does not fit the base.

    References:
        Hu et al. 2022, https://arxiv.org/abs/2106.09685; Kalajdzievski 2023, https://arxiv.org/abs/2312.03732;
        `LoraLayer` in peft, tuners/lora/layer.py.
    """
    homes = {table_name(name): name for name in base.infos}
    is_tied = _EMBEDDING in homes and _DECODER not in homes and any(name.startswith(_MASKED_LM) for name in homes)
    if is_tied:
        homes[_DECODER] = _DECODER
    replaced: dict[str, str] = {}
    parts: dict[tuple[str, str], dict[str, str]] = {}
    for theirs in adapter.infos:
        if ".original_module." in theirs:
            continue
        name = _WRAPPERS.sub("", theirs.removeprefix(PREFIX))
        match = _PART.fullmatch(name)
        if match is None:
            if "lora_" in name or "token_adapter" in name:
                raise _refusal(path, values, f"hold tensors of plain LoRA. Received: {theirs!r}")
            home = homes.get(table_name(name), name)
            # A layer of the head in the pooler's place stays beside the base's pooler, which no class then reads.
            replaced[home if ("pooler." in home) == ("pooler." in name) else name] = theirs
        else:
            parts.setdefault((match["module"], match["last"] or "weight"), {})[match["kind"]] = theirs
    deltas = {}
    for (module, last), kinds in parts.items():
        name = homes.get(table_name(f"{module}.{last}"), "")
        delta = _delta(path, values, module, kinds)
        if not name or delta is None:
            raise _refusal(path, values, f"fit the weights beside it. Received: {shown(sorted(kinds.values()))}")
        deltas[name] = delta
    if is_tied and not {homes[_EMBEDDING], _DECODER}.isdisjoint({*replaced, *deltas}):
        base = TensorView({**{name: (base, name) for name in base.infos}, _DECODER: (base, homes[_EMBEDDING])})
    merged = AdaptedTensors(base, adapter, replaced, deltas)
    _check_shapes(path, values, merged, adapter, deltas)
    return merged


def adapter_values(path: Path) -> dict[str, Any]:
    """The content of an `adapter_config.json`, if it is an adapter that can be merged here."""
    values = read_json_object(path)
    if values.get("peft_type") != "LORA":
        raise _refusal(path, values, f"be a LoRA adapter. Received: peft_type={shown(values.get('peft_type'))}")
    other = [key for key in values if key not in _IGNORED | _USED and values[key] not in (None, False, {}, [])]
    if values.get("init_lora_weights") not in _INITIAL:
        other.append("init_lora_weights")
    if other:
        received = ", ".join(f"{key}={shown(values[key])}" for key in other[:_NAMES_IN_AN_ERROR])
        raise _refusal(path, values, f"be plain LoRA. Received: {received}")
    return values


def missing_base(folder: Path) -> CheckpointError:
    """The error for an adapter without its base."""
    path = folder / ADAPTER_CONFIG
    values = read_json_object(path)
    base = shown(values.get("base_model_name_or_path"))
    return _refusal(path, values, f"be beside the weights and the config of its base. Received: an adapter of {base}")


def warn_of_other_base(path: Path, values: Mapping[str, Any]) -> None:
    """Warns if the adapter names a base that is not this directory."""
    base = values.get("base_model_name_or_path") or path.parent
    if not isinstance(base, str | Path) or Path(base).resolve() != path.parent.resolve():
        warnings.warn(
            f"{path}: the adapter was trained on {shown(base)}. The weights beside it are taken for that base, and the "
            f"adapter is added to them. {_CURE_IF_MERGED}",
            stacklevel=2,
        )


def _refusal(path: Path, values: Mapping[str, Any], rule: str) -> CheckpointError:
    kind = _CLASSES.get(str(values.get("task_type")), "AutoPeftModel")
    merge = f'peft.{kind}.from_pretrained("{path.parent}").merge_and_unload().save_pretrained(NEW_DIRECTORY)'
    cure = f" Merge it where peft is installed: {merge}." if path.name == ADAPTER_CONFIG else ""
    return CheckpointError(f"{path}: the adapter must {rule}.{cure}")


def _delta(path: Path, values: Mapping[str, Any], module: str, kinds: Mapping[str, str]) -> _Delta | None:
    """What a module's tensors add to its weight or bias; None if one is missing."""
    with damaged(f"{path}: not an adapter's config", (TypeError, ValueError, ArithmeticError)):
        rank = _of_module(values.get("rank_pattern"), module, values.get("r", 8))
        alpha = _of_module(values.get("alpha_pattern"), module, values.get("lora_alpha", 8))
        scale = alpha / math.sqrt(rank) if values.get("use_rslora") else alpha / rank
    match sorted(kinds):
        case ["A", "B"]:
            return _Delta(kinds["B"], kinds["A"], rank, scale)
        case ["embedding_A", "embedding_B"]:
            return _Delta(kinds["embedding_B"], kinds["embedding_A"], rank, scale, transposed=True)
        case ["B"]:  # `lora_bias`
            return _Delta(kinds["B"], None, rank, scale) if kinds["B"].endswith(".bias") else None
    return None


def _of_module(pattern: Any, module: str, default: float) -> float:
    """The value for a module: that of the first pattern that matches the end of its name, at a dot."""
    if not isinstance(pattern or {}, dict):
        raise TypeError(f"patterns must be an object. Received: {shown(pattern)}")
    if len(pattern or {}) > _MOST_PATTERNS:
        raise ValueError(f"there must be at most {_MOST_PATTERNS} patterns. Received: {len(pattern)}")
    if not all(len(key) <= _LONGEST_PATTERN and _PATTERN.fullmatch(key) for key in pattern or {}):
        raise ValueError(f"patterns must be names of modules, or simple expressions. Received: {shown(list(pattern))}")
    if len(module) > _LONGEST_MODULE:  # a pattern takes the square of its length
        raise ValueError(f"names of modules must have at most {_LONGEST_MODULE} letters. Received: {len(module)}")
    found = (value for key, value in (pattern or {}).items() if re.match(rf"(.*\.)?({key})$", module))
    return float(next(found, default))


def _check_shapes(
    path: Path, values: Mapping[str, Any], merged: AdaptedTensors, adapter: TensorFile, deltas: Mapping[str, _Delta]
) -> None:
    """Checks that every product has the rank of the config and the shape of its weight."""
    for name, delta in deltas.items():
        up = adapter.infos[delta.up].shape
        down = adapter.infos[delta.down].shape if delta.down is not None else None
        if down is None:
            shape = up
        elif len(up) != 2 or len(down) != 2 or not up[1] == down[0] == delta.rank:
            shape = None
        else:
            shape = (down[1], up[0]) if delta.transposed else (up[0], down[1])
        if shape != merged.infos[name].shape:
            raise _refusal(path, values, f"fit {name!r} of shape {merged.infos[name].shape}. Received: {up}, {down}")
