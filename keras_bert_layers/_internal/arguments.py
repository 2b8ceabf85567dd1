"""Constructor arguments, for `get_config`."""

from __future__ import annotations

import inspect
from typing import Any


def constructor_arguments(cls: type, instance: Any) -> dict[str, Any]:
    """The constructor arguments of a class, read from the attributes of the same names.

    Args:
        cls: the class whose own `__init__` has the arguments; `*args` and `**kwargs` are left out.
        instance: an instance of `cls` or of a subclass, which may have other arguments.

    Returns:
        Argument name -> value.

    Examples:
        >>> class Brick:
        ...     def __init__(self, width, *, rate=0.1, **kwargs):
        ...         self.width, self.rate = width, rate
        >>> constructor_arguments(Brick, Brick(3))
        {'width': 3, 'rate': 0.1}
    """
    _, *parameters = inspect.signature(vars(cls)["__init__"]).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {p.name: getattr(instance, p.name) for p in parameters if p.kind not in variable}
