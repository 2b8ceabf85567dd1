"""Registers classes with Keras, so that it finds them when it loads a `.keras` file.

Keras finds a saved class only if it is registered, that is, if its module was imported. But `import keras_bert_layers`
must be quick and must not import Keras (which imports its backend). So right after Keras is imported, a stand-in is
registered for each class; it imports the class when Keras first creates an instance. The modules themselves cannot be
imported at that time, because one of them, half imported, may be the one that imports Keras.
"""

import importlib
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar

PACKAGE = "keras_bert_layers"
BACKENDS = ("tensorflow", "jax", "torch")

Class = TypeVar("Class", bound=type)


def register(cls: Class) -> Class:
    """Registers a class with Keras as `keras_bert_layers>Name`; a decorator."""
    import keras

    return keras.saving.register_keras_serializable(package=PACKAGE)(cls)


def register_stand_ins(homes: Mapping[str, str]) -> None:
    """Registers classes by name, now or right after Keras is imported, without importing their modules.

    Args:
        homes: class name -> module in which it is defined.
    """

    def register_all() -> None:
        import keras

        known = keras.saving.get_custom_objects()
        for name, module in homes.items():
            known.setdefault(f"{PACKAGE}>{name}", _stand_in(name, module))

    after_keras(register_all)


def _stand_in(name: str, module: str) -> type:
    """A class whose `from_config` imports another class, which registers itself, and returns an instance of it."""

    def from_config(cls: type, config: dict[str, Any], **kwargs: Any) -> Any:
        return getattr(importlib.import_module(module), name).from_config(config, **kwargs)

    return type(name, (), {"from_config": classmethod(from_config), "__module__": module})


def _no_backend(name: str) -> ModuleNotFoundError:
    """What to do where Keras does not find its backend; its own error names a module alone."""
    found = [backend for backend in BACKENDS if importlib.util.find_spec(backend)]
    install, backend = ("", found[0]) if found else ("Install one, such as `pip install jax`. ", "jax")
    return ModuleNotFoundError(
        f"`keras_bert_layers`: Keras needs TensorFlow, JAX or torch, and {name!r} is not installed here. Received: "
        f"KERAS_BACKEND={os.environ.get('KERAS_BACKEND', '')!r}. {install}Set KERAS_BACKEND={backend} before Keras is "
        "imported. TensorFlow has no wheels for Python 3.14.",
        name=name,
    )


def after_keras(action: Callable[[], None]) -> None:
    """Runs `action` now if Keras is imported, else right after its first import."""
    if "keras" in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _AfterKeras(action))


class _AfterKeras(importlib.abc.MetaPathFinder):
    """Runs an action after the first import of Keras, which the other finders find.

    It is removed only then, because many libraries just look for Keras with `importlib.util.find_spec`.
    """

    def __init__(self, action: Callable[[], None]):
        self._action = action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "keras":
            return None
        others = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, others), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_then_act(module: ModuleType) -> None:
                try:
                    execute(module)
                except ModuleNotFoundError as error:
                    if str(error.name).split(".")[0] not in BACKENDS:
                        raise
                    raise _no_backend(str(error.name)) from error
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    self._action()

            spec.loader.exec_module = execute_then_act  # type: ignore[method-assign]
        return spec
