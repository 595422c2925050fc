"""Options of sources and transforms: objects made of them by their kind, and checks of the types of their fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from hoodie.arguments import shown
from hoodie.config.known import hint
from hoodie.errors import InvalidConfigError

_NAMES: Final[Mapping[Any, str]] = {
    str: "a text",
    bool: "true or false",
    bool | None: "true or false",
    int: "a whole number",
    int | None: "a whole number",
    float: "a number",
    str | Sequence[str]: "a text or a list of texts",
    Mapping[str, str]: "texts by column or name",
    Mapping[str, Any]: "a table of keys and values",
}


def made(options: Mapping[str, Any], kinds: Mapping[str, Callable[..., Any]], what: str) -> Any:
    """Return the object of a kind: `kind` is a name in `kinds`, the other options are arguments of what it stands for.

    `what` names the object in errors. Raises: InvalidConfigError for an unknown kind or option, for a missing one, and
    as the kind.
    """
    given = dict(options)
    kind = given.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        similar = hint(str(kind), kinds) or f": kind={kind!r}: expected one of {', '.join(kinds)}"
        raise InvalidConfigError(f"{what}, kind: unknown {kind!r}{similar}")
    known = inspect.signature(kinds[kind]).parameters
    for name in given:
        if name not in known and (similar := hint(name, known)):
            raise InvalidConfigError(f"{what}: unknown {name!r}{similar}")
    if unknown := sorted(set(given) - set(known)):
        raise InvalidConfigError(f"{what} {kind}: unknown {', '.join(unknown)}: expected some of {', '.join(known)}")
    missing = [n for n, one in known.items() if one.default is inspect.Parameter.empty and n not in given]
    if missing:
        raise InvalidConfigError(f"{what} {kind}: {', '.join(missing)} is missing")
    return kinds[kind](**given)


def check_types(options: Any, where: str = "") -> None:
    """Refuse fields of a dataclass whose values do not have the types of their annotations.

    `where` is the begin of the message, which has values of fields with choices only: others may be passwords.
    Raises: InvalidConfigError.
    """
    hints = get_type_hints(type(options))
    for one in (found for found in fields(options) if found.init):
        value, kind = getattr(options, one.name), hints[one.name]
        if fits(value, kind):
            continue
        if choices := [choice for part in _parts(kind) if get_origin(part) is Literal for choice in get_args(part)]:
            raise InvalidConfigError(f"{where}{one.name}: expected one of {', '.join(choices)}, found {value!r}")
        expected = _NAMES.get(kind, one.type)
        raise InvalidConfigError(
            f"{where}{one.name}: expected {expected}, found a value of type {type(value).__name__}"
        )


def require(is_right: bool, option: str, expected: str, found: object) -> None:
    """Raise InvalidConfigError for an option with a wrong value, unless it is right."""
    if not is_right:
        raise InvalidConfigError(f"{option}: expected {expected}, found {shown(found)}")


def name_of(kind: Any) -> str:
    """Return a type of options in words."""
    return _NAMES.get(kind, str(kind))


def text_of(value: object) -> str:
    """Return the value of an option as text, as Hudi and Spark write it.

    >>> text_of(True), text_of(1.5)
    ('true', '1.5')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def fits(value: object, kind: Any) -> bool:
    """Return whether an option has a type, which is an annotation of a field; a text is no sequence."""
    parts = _parts(kind)
    if len(parts) > 1:
        return any(fits(value, part) for part in parts)
    origin, inside = get_origin(kind) or kind, get_args(kind)
    if origin is Any or origin is Literal:
        return origin is Any or value in inside
    if origin is Mapping:
        return isinstance(value, Mapping) and all(fits(one, inside[1]) for one in value.values())
    if origin is Sequence:
        return isinstance(value, list | tuple) and all(fits(one, inside[0]) for one in value)
    if origin in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if origin is float else origin)


def _parts(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
