"""How Keras finds our classes again when it loads a `.keras` file.

Keras resolves a saved class only if it was registered before, that is, if its module was imported. `import
keras_bert_layers` alone must stay quick and must not import Keras (Keras imports its backend). So the modules that
register are imported with Keras: at once where Keras is there already, else right after it comes.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TypeVar

PACKAGE = "keras_bert_layers"

Class = TypeVar("Class", bound=type)


def register(cls: Class) -> Class:
    """Registers a class with Keras as `keras_bert_layers>Name`; a decorator."""
    import keras

    return keras.saving.register_keras_serializable(package=PACKAGE)(cls)


def after_keras(action: Callable[[], None]) -> None:
    """Runs `action` now if Keras is imported, else right after its first import."""
    if "keras" in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _AfterKeras(action))


class _AfterKeras(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it steps aside at the first `import keras` and runs an action after it."""

    def __init__(self, action: Callable[[], None]):
        self._action = action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "keras":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_then_act(module: ModuleType) -> None:
                execute(module)
                self._action()

            spec.loader.exec_module = execute_then_act  # type: ignore[method-assign]
        return spec
