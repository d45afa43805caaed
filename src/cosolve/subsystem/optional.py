"""Optional methods: shown by `help` on the class that describes them, absent from objects that do not define them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class OptionalMethod:
    """A method that a base class describes and a subclass may define.

    On the class it is the plain function, so that `help` shows its signature and text. An object whose class does not
    define it has no such attribute: `hasattr` is False, and a `__getattr__` of the class is asked.

    Parameters
    ----------
    function : callable
        The described method; its body never runs.

    Examples
    --------
    >>> class Base:
    ...     @optional_method
    ...     def save(self): "Return the state."
    >>> hasattr(Base(), "save"), Base.save.__doc__
    (False, 'Return the state.')
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        # one text for all classes: engines ask in every macro step, and most answers are no
        self._missing = f"this class does not define the optional method {function.__name__}"
        self.__doc__ = function.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self.function
        raise AttributeError(self._missing)


if TYPE_CHECKING:  # type checkers see the plain method

    def optional_method(function: F) -> F: ...  # noqa: D103

else:
    optional_method = OptionalMethod
