"""Lazy imports, so that code that does not need TensorFlow runs without it."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from keras_bert_layers._internal.other_libraries import NAMES, RELATIVES

# What stands for TensorFlow where it is not installed.
SUBSTITUTE = "keras_bert_layers._internal.numpy_tensorflow"
# TensorFlow 2.21 has wheels for older ones.
WITHOUT_TENSORFLOW = (3, 14)


class LazyModule(ModuleType):
    """A module that is imported when one of its names is first used.

    Args:
        name: the module, such as `"tensorflow"`.
        distribution: the distribution to install, for the error.
        substitute: the module that is imported where this one is not installed.
    """

    def __init__(self, name: str, distribution: str, substitute: str | None = None):
        super().__init__(name)
        self._distribution, self._substitute = distribution, substitute

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # inspect and doctest look for these; users of the module do not
            raise AttributeError(attribute)
        try:
            module = importlib.import_module(self.__name__)
        except ModuleNotFoundError as error:
            if error.name != self.__name__.split(".")[0]:
                raise
            if self._substitute is None:
                raise not_installed("reading raw text", self._distribution, self.__name__) from error
            module = importlib.import_module(self._substitute)
        value = getattr(module, attribute)
        setattr(self, attribute, value)
        return value


def not_installed(what: str, distribution: str = "TensorFlow", name: str = "tensorflow") -> ModuleNotFoundError:
    """The error for what needs a distribution that is not installed.

    Args:
        what: such as "reading raw text", or a name of TensorFlow.
        distribution: the distribution to install.
        name: the module that is missing.
    """
    cure = f"Install it with `pip install {distribution.lower()}`"
    if sys.version_info >= WITHOUT_TENSORFLOW:
        cure = "There is no TensorFlow for this Python: use Python 3.13 or older"
    return ModuleNotFoundError(
        f"`keras_bert_layers`: {what} needs {distribution}, which is not installed here. {cure}.",
        name=name,
    )


def is_tensorflow() -> bool:
    """Whether `tf` is TensorFlow itself, and not what stands for it where it is not installed."""
    return not tf.Tensor.__module__.startswith(SUBSTITUTE)


def needs_tensorflow(what: str) -> None:
    """ModuleNotFoundError where `tf` is not TensorFlow itself; `what` is as for `not_installed`."""
    if not is_tensorflow():
        raise not_installed(what)


def extensions_library() -> str:
    """The path of the library of onnxruntime-extensions, without its Python package.

    The package imports transformers and torch where they are installed, which takes seconds.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    package = "onnxruntime_extensions"
    found = importlib.util.find_spec(package)
    if found is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    files = [
        path for path in Path(str(found.origin)).parent.glob("_extensions_pydll.*") if path.suffix in (".so", ".pyd")
    ]
    return str(files[0]) if files else importlib.import_module(package).get_library_path()


class _LazyPackage(ModuleType):
    """A package that imports its public names when they are first used."""

    _homes: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        if (own := _name_of_bert(name)) in self._homes:
            return getattr(self, own)
        home = self._homes.get(name, self.__name__)
        value = self._submodule(name) if home == self.__name__ else getattr(importlib.import_module(home), name)
        super().__setattr__(name, value)
        return value

    def _submodule(self, name: str) -> ModuleType:
        """A subpackage or a module of the package, as if the package imported all of its modules."""
        own = f"{self.__name__}.{name}"
        try:
            if not name.startswith("_"):
                return importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name != own:
                raise
        near = [NAMES.get(_name_of_bert(name) or name, "")]
        near = near if near[0] else difflib.get_close_matches(name, dir(self), n=1)
        hint = f" Did you mean `{near[0]}`?" if near else ""
        # Without an object, as Python would add a second hint; its own does not reach notebooks.
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}.{hint}", name=name, obj=None)

    def __setattr__(self, name: str, value: object) -> None:
        """Prevents that the import of a module hides the function of the same name in it."""
        if self._homes.get(name, self.__name__) == self.__name__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._homes})


def _name_of_bert(name: str) -> str:
    """BERT's name for a class that is named after a relative; "" for any other name.

    Examples:
        >>> _name_of_bert("RobertaClassifier"), _name_of_bert("load_task")
        ('BertClassifier', '')
    """
    prefix = next((prefix for prefix in RELATIVES if name.startswith(prefix)), None)
    return "" if prefix is None else "Bert" + name.removeprefix(prefix)


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
    module = sys.modules[package]
    # The loader reads from wherever the package is, a zip file too.
    stub = ast.parse(module.__spec__.loader.get_data(f"{os.path.splitext(file)[0]}.pyi"))  # type: ignore[union-attr]
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.name: str(node.module) for node in imports for alias in node.names}
    vars(module).update(_homes=homes, __all__=sorted(homes))
    module.__class__ = _LazyPackage
    return homes


if TYPE_CHECKING:
    import tensorflow as tf
    import tensorflow_text as tf_text
else:
    tf = LazyModule("tensorflow", "tensorflow", SUBSTITUTE)
    tf_text = LazyModule("tensorflow_text", "tensorflow-text")

__all__ = ["SUBSTITUTE", "LazyModule", "is_tensorflow", "make_lazy", "needs_tensorflow", "tf", "tf_text"]
