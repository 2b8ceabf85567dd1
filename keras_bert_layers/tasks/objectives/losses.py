"""Losses of `compile`, for models whose outputs are logits."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

import keras

from keras_bert_layers._internal import checks


def on_logits(owner: str, loss: str | Callable[..., Any] | Mapping[str, Any]) -> Any:
    """A loss of `compile`, or a list or dictionary of losses, for outputs that are logits.

    A cross-entropy by name, or as a function, is made with `from_logits=True`: Keras's default takes the outputs for
    probabilities. An object that was made otherwise is refused.

    Raises:
        ValueError: a loss object with `from_logits=False`.
    """
    return keras.tree.map_structure(lambda one: _one_on_logits(owner, one), loss)


def _one_on_logits(owner: str, loss: Any) -> Any:
    if isinstance(loss, keras.losses.Loss):
        if loss.get_config().get("from_logits") is False:
            rule = "read logits, which are this model's outputs"
            cure = f"Make it with `keras.losses.{type(loss).__name__}(from_logits=True)`."
            raise ValueError(checks.message(owner, "loss", rule, f"{type(loss).__name__}(from_logits=False)", cure))
        return loss
    by_name = keras.losses.get(loss) if isinstance(loss, str) else loss
    if isinstance(by_name, keras.losses.Loss):  # by the name of a class
        by_name = type(by_name)
    elif getattr(keras.losses, getattr(by_name, "__name__", ""), None) is by_name is not None:
        by_name = getattr(keras.losses, "".join(map(str.capitalize, by_name.__name__.split("_"))), by_name)
    if inspect.isclass(by_name) and "from_logits" in inspect.signature(by_name).parameters:
        return cast(Any, by_name)(from_logits=True)
    return loss


def takes_columns(loss: str | Callable[..., Any] | Mapping[str, Any]) -> bool:
    """Whether a compiled loss is one of Keras's that compare one column per class."""
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
    is_kerass = isinstance(loss, str) or getattr(keras.losses, name, None) in (loss, type(loss))
    return is_kerass and not name.lower().startswith("sparse")
