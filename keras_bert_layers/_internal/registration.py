"""How Keras finds our classes again when it loads a `.keras` file.

Keras resolves a saved class only if it was registered before, that is, if its module was imported. `import
keras_bert_layers` alone must stay quick and must not import Keras (Keras imports its backend). So right after Keras is
imported, a stand-in for each class is registered, which imports the class when Keras first makes one. To import our
modules at that moment would not do: it can be one of them, half imported, that imports Keras.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar

PACKAGE = "keras_bert_layers"

Class = TypeVar("Class", bound=type)


def register(cls: Class) -> Class:
    """Registers a class with Keras as `keras_bert_layers>Name`; a decorator."""
    import keras

    return keras.saving.register_keras_serializable(package=PACKAGE)(cls)


def register_stand_ins(homes: Mapping[str, str]) -> None:
    """Registers classes by name, now or right after Keras is imported, without importing their modules.

    Args:
        homes: class name -> module that holds the class.
    """

    def register_all() -> None:
        import keras

        known = keras.saving.get_custom_objects()
        for name, module in homes.items():
            known.setdefault(f"{PACKAGE}>{name}", _stand_in(name, module))

    after_keras(register_all)


def _stand_in(name: str, module: str) -> type:
    """A class whose `from_config` gives an instance of another, which is imported then (and registers itself)."""

    def from_config(cls: type, config: dict[str, Any], **kwargs: Any) -> Any:
        return getattr(importlib.import_module(module), name).from_config(config, **kwargs)

    return type(name, (), {"from_config": classmethod(from_config), "__module__": module})


def after_keras(action: Callable[[], None]) -> None:
    """Runs `action` now if Keras is imported, else right after its first import."""
    if "keras" in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _AfterKeras(action))


class _AfterKeras(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it lets the others find Keras, and runs an action after the first import of it.

    It stays until then: many libraries only ask, with `importlib.util.find_spec`, whether Keras is there.
    """

    def __init__(self, action: Callable[[], None]):
        self._action = action
        self._is_looking = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "keras" or self._is_looking:
            return None
        self._is_looking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_looking = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_then_act(module: ModuleType) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    self._action()

            spec.loader.exec_module = execute_then_act  # type: ignore[method-assign]
        return spec
