"""Errors for names of other libraries, which state the name in this package, and for a library that is missing."""

import functools
import inspect
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)

# Keys of a `config.json` of transformers -> fields of `BertConfig`, in the order in which they are written.
TRANSFORMERS_NAMES = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_act": "activation",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "initializer_range": "initializer_range",
    "embedding_size": "embedding_dim",
    "layer_norm_eps": "layer_norm_epsilon",
}


class _Unavailable:
    """A method of other libraries' classes that this package does not have."""

    def __init__(self, cure: str):
        self._cure = cure

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        raise AttributeError(f"`{owner.__name__}` has no `{self._name}`. {self._cure.format(name=self._name)}")


def unavailable(cure: str, count: int = 2) -> tuple[Any, ...]:
    """Methods that a class does not have, such as `from_preset` and `from_pretrained`.

    Args:
        cure: what to call instead; "{name}" in it stands for the method's name.
        count: how many methods.

    Returns:
        As many class attributes, each of which raises an AttributeError with the cure.
    """
    return tuple(_Unavailable(cure) for _ in range(count))


def hint_transformers_names(cls: Class) -> Class:
    """Makes a config report all unknown arguments at once, with our names for those of transformers; a decorator."""
    init = cls.__init__  # type: ignore[misc]
    known = list(inspect.signature(cls).parameters)

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **values: Any) -> None:
        unknown = {name: TRANSFORMERS_NAMES.get(name) for name in values if name not in known}
        if unknown:
            hints = [f"{name} (here {our!r})" if our else name for name, our in unknown.items()]
            raise TypeError(
                f"`{cls.__name__}`: every argument must be one of {known}. Received: {', '.join(hints)}. "
                "For the content of a config.json: `keras_bert_layers.checkpoints.config_from_huggingface(values)`."
            )
        init(self, *args, **values)

    cls.__init__ = checked  # type: ignore[misc]
    return cls


def check_scikit_learn(owner: str, user: str) -> None:
    """Raises a ModuleNotFoundError that names the owner and the user of scikit-learn if it is not installed."""
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"`{owner}`: `{user}` needs scikit-learn, which is not installed here. Install it with "
            "`pip install scikit-learn`.",
            name="sklearn",
        ) from error
