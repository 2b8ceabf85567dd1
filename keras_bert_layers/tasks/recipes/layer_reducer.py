"""`reduce_layers` and `reinitialize_layers`: a model with fewer blocks, or with new weights in its last ones."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_layers._internal import checks
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.layers.adapters import refuse_adapters
from keras_bert_layers.tasks.graphs.heads import backbones_of
from keras_bert_layers.tasks.task import Task

_OWNER = "reduce_layers"


def reduce_layers(model: keras.Model, keep: int | Sequence[int]) -> Any:
    """Makes a smaller model of some of a model's blocks, with their weights: a student that need not start from zero.

    Embedding, pooler and head are copied. Train the new model further, best with the old one as its teacher.

    Args:
        model: a task or a `BertBackbone`; it stays as it is.
        keep: how many blocks to keep, evenly spread from the first to the last; or their indices, in ascending order,
            counted from 0. With local attention, as in ModernBERT, local blocks take the places of local ones, and the
            first stays the first.

    Returns:
        A new model of the same class, compiled as a new one is.

    Raises:
        TypeError: the model is neither a task nor a backbone.
        ValueError: more blocks than there are; indices out of range or not in ascending order; a block with global
            attention in the place of a local one; a block that all layers share; a quantized model.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=6, num_heads=2, intermediate_dim=16)
        >>> reduce_layers(kbl.BertBackbone(config), [0, 2, 5]).config.num_layers
        3

    References:
        Sanh et al. 2019, DistilBERT, arXiv:1910.01108, section 3, takes every second block.
    """
    backbones = _checked(_OWNER, model)
    if any(backbone.parts.shares_block for backbone in backbones):
        cure = "Make a smaller one with `BertConfig`, and train it with `distill`."
        raise ValueError(checks.message(_OWNER, "model", "have a block for each layer, not one for all", model, cure))
    kinds = min((_kinds(backbone) for backbone in backbones), key=len)
    chosen = _indices(keep, kinds)
    config = model.get_config()
    _refuse_quantized(_OWNER, config)
    new = type(model).from_config(_with_layers(config, len(chosen)))
    sources = {f"encoder_block_{place}": f"encoder_block_{index}" for place, index in enumerate(chosen)}
    copied: set[int] = set()
    for old, backbone in zip(backbones, backbones_of(new), strict=True):
        for layer in backbone.layers:
            _copy(old.get_layer(sources.get(layer.name, layer.name)).weights, layer.weights)
        copied |= {id(weight) for weight in (*old.weights, *backbone.weights)}
    _copy(*([weight for weight in whole.weights if id(weight) not in copied] for whole in (model, new)))
    return new


def reinitialize_layers(model: keras.Model, num_layers: int) -> None:
    """Gives the pooler and the last blocks of a model new random weights, before it is fine-tuned.

    The last blocks are the most specialized ones of pretraining. On a few thousand examples, new weights in one or two
    of them can make training more stable.

    Args:
        model: a task or a `BertBackbone`; it is changed.
        num_layers: how many of the last blocks get new weights; 0 for the pooler alone.

    Raises:
        TypeError: the model is neither a task nor a backbone.
        ValueError: more blocks than there are; some of the layers of a shared block; a quantized model.

    Examples:
        >>> import keras_bert_layers as kbl
        >>> config = kbl.BertConfig(vocabulary_size=9, hidden_dim=8, num_layers=6, num_heads=2, intermediate_dim=16)
        >>> reinitialize_layers(kbl.BertBackbone(config), 2)

    References:
        Zhang et al. 2021, Revisiting Few-sample BERT Fine-tuning, arXiv:2006.05987, section 5.
    """
    owner = "reinitialize_layers"
    for backbone in _checked(owner, model):
        count, total = checks.whole_number(owner, "num_layers", num_layers), backbone.config.num_layers
        if count > total:
            raise ValueError(checks.message(owner, "num_layers", f"be at most {total}", num_layers))
        backbone.check_blocks(owner, "num_layers", count)
        _refuse_quantized(owner, backbone.get_config())
        new = BertBackbone.from_config(backbone.get_config())
        for name in ("pooler", *{block.name for block in backbone.blocks[total - count :]}):
            _copy(new.get_layer(name).weights, backbone.get_layer(name).weights)


def _checked(owner: str, model: keras.Model) -> list[BertBackbone]:
    """The backbones of a model; TypeError without one."""
    if not isinstance(model, Task | BertBackbone) or not (found := backbones_of(model)):
        raise TypeError(checks.message(owner, "model", "be a task of a BertBackbone, or a BertBackbone", model))
    refuse_adapters(owner, model)
    return found


def _refuse_quantized(owner: str, config: Any) -> None:
    if "quantized_layers" in str(config):
        cure = "Change the model first, and quantize the result."
        raise ValueError(checks.message(owner, "model", "not be quantized", checks.Shown("a quantized model"), cure))


def _kinds(backbone: BertBackbone) -> list[tuple[bool, bool]]:
    """Of each block, whether its attention is local, and whether it is the first one and has other parts."""
    parts = backbone.parts
    local = parts.local_attention
    differs = not parts.normalizes_first_attention or parts.convolution is not None
    return [(bool(local and local.is_local(i)), differs and i == 0) for i in range(backbone.config.num_layers)]


def _indices(keep: Any, kinds: Sequence[Any]) -> list[int]:
    num_layers = len(kinds)
    rule = f"be at most {num_layers} blocks, or ascending indices below {num_layers}"
    if isinstance(keep, Sequence | np.ndarray) and not isinstance(keep, str):
        chosen = [checks.whole_number(_OWNER, "keep", index) for index in keep]
        if not chosen or chosen != sorted(set(chosen)) or chosen[-1] >= num_layers:
            raise ValueError(checks.message(_OWNER, "keep", rule, list(keep)))
        if [kinds[index] for index in chosen] != [*kinds[: len(chosen)]]:
            rule = "give each place a block with its attention, local or global, and the first place the first block"
            raise ValueError(checks.message(_OWNER, "keep", rule, list(keep)))
        return chosen
    if checks.positive_integer(_OWNER, "keep", keep) > num_layers:
        raise ValueError(checks.message(_OWNER, "keep", rule, keep))
    latest = [num_layers]  # the last block that leaves enough for the places after it
    for kind in reversed(kinds[:keep]):
        latest.append(max(index for index in range(latest[-1]) if kinds[index] == kind))
    chosen = [-1]
    for place, nearest in enumerate(np.linspace(0, num_layers - 1, keep).round()):
        fits = range(chosen[-1] + 1, latest[keep - place] + 1)
        chosen.append(min((abs(index - nearest), index) for index in fits if kinds[index] == kinds[place])[1])
    return chosen[1:]


def _with_layers(value: object, num_layers: int) -> Any:
    """A config with another number of blocks wherever there is an encoder."""
    if isinstance(value, dict):
        return {
            key: num_layers if key == "num_layers" else _with_layers(item, num_layers) for key, item in value.items()
        }
    return value


def _copy(old: Sequence[Any], new: Sequence[Any]) -> None:
    for source, weight in zip(old, new, strict=True):
        weight.assign(source)
