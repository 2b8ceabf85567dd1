"""Parts of tasks: checks of backbones and preprocessors, options of heads, and attributes that drop traces."""

from typing import Any

import keras

from keras_bert_layers._internal import checks
from keras_bert_layers._internal.keras_models import all_layers
from keras_bert_layers._internal.types import Ids
from keras_bert_layers.backbone import BertBackbone, head_transform
from keras_bert_layers.config import BertConfig
from keras_bert_layers.preprocessing.preprocessors.bert_preprocessor import BertPreprocessor
from keras_bert_layers.preprocessing.preprocessors.text_layer import TextLayer
from keras_bert_layers.static_backbone import StaticBackbone


def check_parts(
    owner: str,
    backbone: BertBackbone,
    preprocessor: TextLayer | None,
    *,
    preprocessor_class: type = BertPreprocessor,
    static: bool = False,
) -> None:
    """Refuses what is not a backbone or a preprocessor, and a preprocessor that the backbone is too small for.

    With `static`, a `StaticBackbone` is a backbone too.

    Raises:
        TypeError: a part of another type.
        ValueError: the preprocessor makes ids or lengths that the backbone has no embeddings for.
    """
    cure = "Make one with `BertBackbone(config)` or `load_backbone(source)`."
    if not (static and isinstance(backbone, StaticBackbone)):
        checks.instance(owner, "backbone", backbone, BertBackbone, cure)
    if preprocessor is None:
        return
    if not isinstance(preprocessor, preprocessor_class):
        wanted = preprocessor_class.__name__
        cure = f"Make one with `{wanted}(tokenizer)` or `load_preprocessor(source)`."
        raise TypeError(checks.message(owner, "preprocessor", f"be a {wanted} or None", preprocessor, cure))
    check_sizes(owner, backbone.config, preprocessor)


def backbones_of(model: keras.Model) -> list[BertBackbone]:
    """The backbones of a model, in the order of its layers; of a backbone, itself."""
    return [layer for layer in all_layers(model) if isinstance(layer, BertBackbone)]


def head_options(backbone: BertBackbone, name: str) -> dict[str, Any]:
    """The keyword arguments that the heads of all tasks have in common."""
    return {"initializer_range": backbone.config.initializer_range, "dtype": backbone.dtype_policy, "name": name}


def head_states(backbone: BertBackbone, ids: Ids) -> Any:
    """The hidden states that a head on tokens reads, `(batch, sequence, hidden_dim)`.

    Of an encoder with `normalizes_heads` they go through a `HeadTransform`, a part of the head. It begins as a copy of
    the pooler, which may hold what the head of a masked language model has learnt.
    """
    hidden = backbone(ids)["sequence_output"]
    transform = head_transform(backbone.config, backbone.parts, **head_options(backbone, "head_transform"))
    if transform is None:
        return hidden
    hidden = transform(hidden)
    transform.set_weights(backbone.get_layer("pooler").get_weights())
    return hidden


def check_sizes(owner: str, config: BertConfig, preprocessor: TextLayer) -> None:
    """Refuses a preprocessor that makes ids or lengths that the backbone has no embeddings for; ValueError."""
    longest, positions = preprocessor.max_length, config.max_sequence_length
    if longest > positions:
        rule = f"be at most the backbone's `max_sequence_length` ({positions})"
        raise ValueError(checks.message(owner, "preprocessor.max_length", rule, longest))
    size = preprocessor.tokenizer.vocabulary_size()
    if size > config.vocabulary_size:
        rule = f"be at most the backbone's `vocabulary_size` ({config.vocabulary_size})"
        cure = "Text and weights must come from the same checkpoint."
        raise ValueError(checks.message(owner, "preprocessor.tokenizer.vocabulary_size()", rule, size, cure))
