"""Functions of the user, given as objects or by name, as in a job file; libraries that are optional."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from hoodie.errors import InvalidConfigError, UnsupportedError


def function_of(given: object, what: str) -> Callable[..., Any]:
    """Return a function that is given as such, or as `package.module:name`.

    `what` names the option in errors. Raises: InvalidConfigError if there is no such function; as its module, which is
    imported.
    """
    if callable(given):
        return given
    if not isinstance(given, str) or given.count(":") != 1:
        raise InvalidConfigError(
            f'{what}: expected a function, or its name as in "package.module:name", found {given!r}'
        )
    module, _, name = given.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidConfigError(
            f"{what}: {given!r} is not found ({error}); the module must be on PYTHONPATH or installed"
        ) from error
    if not callable(found):
        raise InvalidConfigError(f"{what}: {given!r} is no function but a {type(found).__name__}")
    loaded: Callable[..., Any] = found
    return loaded


def library(name: str, advice: str) -> Any:
    """Return the module of an optional library. Raises: UnsupportedError with the advice if it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UnsupportedError(advice) from error
