"""Running a model for a picture: the tokens of a text, hidden states and attention of every layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.types import Strings, Tensor
from keras_bert_layers.backbone import BertBackbone
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor

if TYPE_CHECKING:
    from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer

_IDS = ("token_ids", "segment_ids")


@dataclass(frozen=True)
class Tokens:
    """The tokens of one text or pair, special ones included.

    Args:
        names: the tokens as in the vocabulary.
        ids: int32 `(sequence,)`.
        segments: int32 `(sequence,)`.
    """

    names: list[str]
    ids: np.ndarray
    segments: np.ndarray


def parts_of(owner: str, model: keras.Model, preprocessor: TextLayer | None) -> tuple[BertBackbone, BertPreprocessor]:
    """The backbone of a model, and a preprocessor that adds no padding.

    Args:
        owner: name of the class, for errors.
        model: a `BertBackbone`, or a task.
        preprocessor: any with a tokenizer and a `max_length`; None for the task's own.

    Raises:
        TypeError: `model` has no backbone, or there is no preprocessor.
    """
    backbone = model if isinstance(model, BertBackbone) else getattr(model, "backbone", None)
    if not isinstance(backbone, BertBackbone):
        raise TypeError(checks.message(owner, "model", "be a BertBackbone or a task", model))
    preprocessor = getattr(model, "preprocessor", None) if preprocessor is None else preprocessor
    tokenizer, max_length = (getattr(preprocessor, name, None) for name in ("tokenizer", "max_length"))
    if tokenizer is None or max_length is None:
        cure = "Give a BertPreprocessor, or a task that has one."
        raise TypeError(checks.message(owner, "preprocessor", "be a preprocessor", preprocessor, cure))
    longest = min(max_length, backbone.config.max_sequence_length)
    return backbone, BertPreprocessor(tokenizer, max_length=longest)


def tokens_of(owner: str, preprocessor: BertPreprocessor, text: Strings, text_pair: Any = None) -> Tokens:
    """The tokens of a text or a pair; TypeError for what is not a string."""
    texts = {"text": text} if text_pair is None else {"text": text, "text_pair": text_pair}
    for argument, value in texts.items():
        checks.instance(owner, argument, value, str)
    inputs = preprocessor(tuple([value] for value in texts.values()) if text_pair is not None else [text])
    ids, segments = (np.asarray(inputs[name])[0] for name in _IDS)
    return Tokens([preprocessor.tokenizer.id_to_token(int(token_id)) for token_id in ids], ids, segments)


def read(
    owner: str, model: keras.Model, text: Strings, text_pair: Any = None, preprocessor: TextLayer | None = None
) -> tuple[BertBackbone, Tokens]:
    """The backbone of a model, and the tokens of a text or a pair; raises what `parts_of` and `tokens_of` raise."""
    backbone, preprocessor = parts_of(owner, model, preprocessor)
    return backbone, tokens_of(owner, preprocessor, text, text_pair)


def check_index(owner: str, argument: str, value: object, count: int) -> int:
    """`value` as an index below `count`; a negative one counts from the end. ValueError or TypeError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(checks.message(owner, argument, "be an integer", value))
    if not -count <= value < count:
        raise ValueError(checks.message(owner, argument, f"be at least {-count} and less than {count}", value))
    return int(value) % count


def run(backbone: BertBackbone, tokens: Tokens) -> tuple[list[np.ndarray], np.ndarray]:
    """Runs one row, layer by layer, with the backbone's own weights.

    Returns:
        The output of the embedding and of each block, float32 `(sequence, hidden_dim)`; and the attention
        probabilities, float32 `(num_layers, num_heads, sequence, sequence)`.
    """
    token_ids, segment_ids = (ops.convert_to_tensor(ids[None]) for ids in (tokens.ids, tokens.segments))
    hidden = backbone.get_layer("embedding")(token_ids, segment_ids, training=False)
    states, scores = [_as_array(hidden)], []
    for block in backbone.blocks:
        hidden, probabilities = block(hidden, return_attention_scores=True, training=False)
        states.append(_as_array(hidden))
        scores.append(_as_array(probabilities))
    return states, np.stack(scores)


def _as_array(tensor: Tensor) -> np.ndarray:
    return keras.ops.convert_to_numpy(ops.cast(tensor, "float32"))[0]
