"""Modules that are imported when first used, so that what needs no TensorFlow runs without it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
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


class _LazyPackage(ModuleType):
    """A package whose public names are imported when they are first used."""

    _homes: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        if name not in self._homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{self.__name__}.{self._homes[name]}"), name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Keeps the import of a module from hiding the function of the same name that it holds."""
        if name not in self._homes or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._homes})


def make_lazy(package: str, homes: Mapping[str, str]) -> None:
    """Makes an imported package import its public names when they are first used.

    Args:
        package: its `__name__`.
        homes: public name -> the module of the package that holds it.
    """
    module = sys.modules[package]
    vars(module)["_homes"] = homes
    module.__class__ = _LazyPackage


if TYPE_CHECKING:
    import tensorflow as tf
    import tensorflow_text as tf_text
else:
    # tensorflow-text brings the TensorFlow that it was built for.
    tf = LazyModule("tensorflow", "tensorflow-text")
    tf_text = LazyModule("tensorflow_text", "tensorflow-text")

__all__ = ["LazyModule", "make_lazy", "tf", "tf_text"]
