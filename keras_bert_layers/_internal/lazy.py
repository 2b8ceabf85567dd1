"""Lazy imports, so that code that does not need TensorFlow runs without it."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any


class LazyModule(ModuleType):
    """A module that is imported when one of its names is first used.

    Args:
        name: the module, such as `"tensorflow"`.
        distribution: the distribution to install, for the error.
    """

    def __init__(self, name: str, distribution: str):
        super().__init__(name)
        self._distribution = distribution

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # inspect and doctest look for these; users of the module do not
            raise AttributeError(attribute)
        try:
            module = importlib.import_module(self.__name__)
        except ModuleNotFoundError as error:
            if error.name != self.__name__.split(".")[0]:
                raise
            raise ModuleNotFoundError(
                f"`keras_bert_layers`: reading raw text needs {self._distribution}, which is not installed here. "
                f"Install it with `pip install {self._distribution}`, or pass token ids to the model.",
                name=self.__name__,
            ) from error
        value = getattr(module, attribute)
        setattr(self, attribute, value)
        return value


class _LazyPackage(ModuleType):
    """A package that imports its public names when they are first used."""

    _homes: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        own = f"{self.__name__}.{name}"
        home = self._homes.get(name)
        unknown = AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if home is None and name.startswith("_"):
            raise unknown
        try:  # a subpackage, or the module of a public name
            value = importlib.import_module(own if home in (None, self.__name__) else home)
        except ModuleNotFoundError as error:
            if error.name != own:
                raise
            raise unknown from None
        if home not in (None, self.__name__):
            value = getattr(value, name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Prevents that the import of a module hides the function of the same name in it."""
        if self._homes.get(name, self.__name__) == self.__name__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._homes})


def make_lazy(package: str, file: str) -> Mapping[str, str]:
    """Makes an imported package import its public names when they are first used.

    The names stand once, in the stub beside the package: `__init__.pyi`, which type checkers read too. It holds lines
    of the form `from module import name as name`.

    Args:
        package: its `__name__`.
        file: its `__file__`.

    Returns:
        Public name -> the module that defines it; for a subpackage, the package itself.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_bytes())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: str(node.module) for node in imports for alias in node.names}
    module = sys.modules[package]
    vars(module).update(_homes=homes, __all__=sorted(homes))
    module.__class__ = _LazyPackage
    return homes


if TYPE_CHECKING:
    import tensorflow as tf
    import tensorflow_text as tf_text
else:
    # tensorflow-text installs the TensorFlow that it was built for. There is none for Windows.
    tf = LazyModule("tensorflow", "tensorflow" if sys.platform == "win32" else "tensorflow-text")
    tf_text = LazyModule("tensorflow_text", "tensorflow-text")

__all__ = ["LazyModule", "make_lazy", "tf", "tf_text"]
