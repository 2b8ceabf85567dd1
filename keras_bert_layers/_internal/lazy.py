"""Modules that are imported when first used, so that what needs no TensorFlow runs without it."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any


class LazyModule(ModuleType):
    """A module that is imported at the first use of one of its names.

    Args:
        name: the module, e.g. `"tensorflow"`.
        distribution: what a user installs to have it, named in the error.
    """

    def __init__(self, name: str, distribution: str):
        super().__init__(name)
        self._distribution = distribution

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # what inspect and doctest probe for; no user of the module asks for it
            raise AttributeError(attribute)
        try:
            module = importlib.import_module(self.__name__)
        except ModuleNotFoundError as error:
            if error.name != self.__name__.split(".")[0]:
                raise
            raise ModuleNotFoundError(
                f"`keras_bert_layers`: reading raw text needs {self._distribution}, which is not installed here. "
                f"Install it with `pip install {self._distribution}`, or give the model token ids.",
                name=self.__name__,
            ) from error
        value = getattr(module, attribute)
        setattr(self, attribute, value)
        return value


if TYPE_CHECKING:
    import tensorflow as tf
    import tensorflow_text as tf_text
else:
    # tensorflow-text brings the TensorFlow that it was built for.
    tf = LazyModule("tensorflow", "tensorflow-text")
    tf_text = LazyModule("tensorflow_text", "tensorflow-text")

__all__ = ["LazyModule", "tf", "tf_text"]
