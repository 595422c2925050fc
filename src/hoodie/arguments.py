"""Arguments of public functions and methods, read by their annotations before anything else is done.

`check_arguments` decorates a function, `check_methods` a class. Each argument is read by its annotation: an argument
with one obvious meaning is converted (a NumPy integer, a number in `properties`), any other is refused by name.
Arguments whose annotation is `Any` are the caller's data, which `engine/inputs.py` reads.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import operator
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Set
from datetime import date
from decimal import Decimal
from typing import Any, Final, TypeVar

from hoodie.errors import HoodieWarning, InvalidConfigError

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type[Any])
_SHOWN_MAX: Final = 80
_INSTANT_DIGITS: Final = (14, 17)
_UNREAD: Final = object()
"""What a reader returns for a value that it does not accept."""
_INSTANT: Final = ("the requested time of an instant as text", '"20261125120000000"')
_CONDITION: Final = ("a condition in Spark SQL as text", '"fare > 2"')
_EXPECTED: Final[Mapping[str, tuple[str, str]]] = {
    "where": _CONDITION,
    "condition": _CONDITION,
    "on": ("equalities of columns in Spark SQL as text", '"t.id = s.id"'),
    "statement": ("a Spark SQL statement as text", "\"DELETE FROM trips WHERE id = 'a'\""),
    "instant": _INSTANT,
    "savepoint": _INSTANT,
    "requested_time": _INSTANT,
    "partitions": ("a list of partition paths", '["city=sf"]'),
}
"""What arguments of these names stand for, and an example; others are described by their annotation."""

_OPTIONS: Final = "properties"
"""The argument with `hoodie.*` options, which may have the names of JVM Hudi."""
_SECRET: Final = frozenset({"path", "storage_options"})
"""Arguments whose values may contain passwords; messages do not show them."""


def check_arguments(function: _F) -> _F:
    """Return the function with a check of its arguments. Raises: InvalidConfigError, when it is called."""

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        signature, readers = _readers(function)
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # Python's own error names the function.
        for name, reader in readers.items():
            if name in given.arguments:
                given.arguments[name] = reader(given.arguments[name])
        notes: tuple[str, ...] = ()
        if given.arguments.get(_OPTIONS) and _OPTIONS in readers:
            given.arguments[_OPTIONS], notes = _translated(given.arguments[_OPTIONS])
        result = function(*given.args, **given.kwargs)
        return _noted(result, notes) if notes else result

    return checked  # type: ignore[return-value]  # the same signature


def _translated(properties: Mapping[str, str]) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Return options with names of JVM Hudi in our names, and notes."""
    from hoodie.config.translation import translated
    from hoodie.format.table.call_options import check_call_options

    found = translated(properties)
    check_call_options(found.properties)
    return found.properties, found.notes


def _noted(result: Any, notes: tuple[str, ...]) -> Any:
    """Return a result with further notes; what has no notes gets a warning instead."""
    own: Any = getattr(result, "notes", None)
    if dataclasses.is_dataclass(result) and not isinstance(result, type) and isinstance(own, tuple):
        return dataclasses.replace(result, notes=(*notes, *own))
    for note in notes:
        warnings.warn(note, HoodieWarning, stacklevel=3)
    return result


def check_methods(cls: _C) -> _C:
    """Return the class with a check of the arguments of its public methods, as `check_arguments`."""
    for name, method in list(vars(cls).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            setattr(cls, name, check_arguments(method))
    return cls


@functools.cache
def _readers(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, functools.partial[Any]]]:
    """Return the signature, and the reader of each argument that has one. Made once, when it is first called."""
    signature = inspect.signature(function)
    readers = {
        name: functools.partial(_read, name, _kinds(str(parameter.annotation)))
        for name, parameter in signature.parameters.items()
        if name != "self" and parameter.annotation != "Any"
    }
    return signature, readers


def _kinds(annotation: str) -> tuple[str, ...]:
    """Return the alternatives of an annotation: the keys of `_KINDS`. Raises: TypeError for an unknown annotation."""
    parts = annotation.split(" | ")
    kinds = tuple(part if part.startswith("Mapping") else part.partition("[")[0] for part in parts)
    if unknown := [kind for kind in kinds if kind not in _KINDS]:
        raise TypeError(f"hoodie.arguments has no reader for the annotation {annotation!r}: {unknown}")
    return kinds


def _read(name: str, kinds: tuple[str, ...], value: Any) -> Any:
    if _EXPECTED.get(name) is _INSTANT and (found := _instant(value)) is not _UNREAD:
        return found
    for kind in kinds:
        found = _KINDS[kind][0](value)
        if found is not _UNREAD:
            return found
    described, example = _EXPECTED.get(name) or _KINDS[kinds[0]][1:]
    expected = " or ".join(dict.fromkeys([described, *(_KINDS[kind][1] for kind in kinds[1:])]))
    if isinstance(value, Mapping):
        value = {key: item for key, item in value.items() if _KINDS[kinds[0]][0]({key: item}) is _UNREAD} or value
    found = f"a value of type {type(value).__qualname__}" if name in _SECRET else shown(value)
    raise InvalidConfigError(f"{name}: expected {expected}, found {found}; write for example {name}={example}")


def shown(value: object) -> str:
    """Return a value and its type for a message, in at most some eighty characters."""
    try:
        text = repr(value)
    except Exception:  # of a class of the caller
        text = "an object"
    text = text.encode("unicode_escape").decode("ascii") if not text.isprintable() else text
    return f"{text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + '…'} ({type(value).__qualname__})"


def _text(value: Any) -> Any:
    """Return a text that UTF-8 can hold, which files and messages need: it has no lone surrogates."""
    if not isinstance(value, str):
        return _UNREAD
    try:
        value.encode()
    except UnicodeEncodeError:
        return _UNREAD
    return value


def _flag(value: Any) -> Any:
    return bool(value) if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_") else _UNREAD


def _count(value: Any) -> Any:
    found = _integer(value)
    return found if found is _UNREAD or 0 <= found < 2**63 else _UNREAD


def _integer(value: Any) -> Any:
    if isinstance(value, int):
        return _UNREAD if isinstance(value, bool) else value
    # An integer of NumPy; its arrays and truth values have the method, too.
    is_number = type(value).__module__ == "numpy" and type(value).__name__.startswith(("int", "uint"))
    return operator.index(value) if is_number else _UNREAD


def _number(value: Any) -> Any:
    found = _integer(value)
    if found is _UNREAD and isinstance(value, float | Decimal):
        found = float(value)
    try:
        return found if found is _UNREAD or math.isfinite(found) else _UNREAD
    except OverflowError:  # an integer above all floats
        return _UNREAD


def _seconds(value: Any) -> Any:
    found = _number(value)
    return found if found is _UNREAD or found >= 0 else _UNREAD


def _time(value: Any) -> Any:
    if isinstance(value, date):
        return _UNREAD if value != value else value  # pandas' NaT equals nothing
    return _instant(value)


def _instant(value: Any) -> Any:
    """Return a text, the digits of an instant that is given as a number, or the requested time of an `Instant`."""
    if type(value).__name__ == "Instant" and isinstance(time := getattr(value, "requested_time", None), str):
        return time
    found = _integer(value)
    if found is _UNREAD:
        return _text(value)
    return str(found) if len(str(found)) in _INSTANT_DIGITS and found > 0 else _UNREAD


def _expression(value: Any) -> Any:
    """Return an expression of pyarrow, which is not imported for this."""
    kind = type(value)
    return value if (kind.__module__, kind.__name__) == ("pyarrow._compute", "Expression") else _UNREAD


def is_polars_expression(value: Any) -> bool:
    """Return whether a value is an expression of Polars, which is not imported for this."""
    kind = type(value)
    return kind.__module__.partition(".")[0] == "polars" and kind.__name__ == "Expr"


def _where(value: Any) -> Any:
    if is_polars_expression(value):
        return value
    found = _text(value)
    return _expression(value) if found is _UNREAD else found


def _partitions(value: Any) -> Any:
    found = _texts_or_set(value)
    if found is _UNREAD and isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value):
        return [dict(item) for item in value]
    return found


def _path(value: Any) -> Any:
    return value if isinstance(value, os.PathLike) else _UNREAD


def _texts(value: Any) -> Any:
    """Return texts in their order; a text alone, bytes, a mapping, and a set, which has no order, are refused."""
    if isinstance(value, str | bytes | Mapping | Set) or not isinstance(value, Iterable):
        return _UNREAD
    try:
        listed = list(value)
    except Exception:  # an iterator of the caller, or a class
        return _UNREAD
    return listed if all(_text(item) is not _UNREAD for item in listed) else _UNREAD


def _texts_or_set(value: Any) -> Any:
    return _texts(list(value) if isinstance(value, Set) else value)


def _mapping(read: Callable[[Any], Any], value: Any) -> Any:
    """Return a mapping whose keys are texts, and whose values `read` reads."""
    if not isinstance(value, Mapping):
        return _UNREAD
    found = {name: read(item) for name, item in value.items()}
    is_read = all(_text(name) is not _UNREAD and item is not _UNREAD for name, item in found.items())
    return found if is_read else _UNREAD


def _literal(value: Any, *, is_option: bool = False) -> Any:
    """Return a text as it is; numbers, truth values and, in expressions, None are written as text."""
    if value is None and not is_option:
        return "NULL"
    if isinstance(value, str):
        return _text(value)
    flag, number = _flag(value), _number(value)
    if flag is not _UNREAD:
        return str(flag).lower()
    if isinstance(value, Decimal) and number is not _UNREAD and not is_option:
        return format(value, "f")
    return _UNREAD if number is _UNREAD else str(number)


def _callable(value: Any) -> Any:
    return value if callable(value) and not isinstance(value, type) else _UNREAD


def _session(value: Any) -> Any:
    return value if any(base.__name__ == "SparkSession" for base in type(value).__mro__) else _UNREAD


def _unchecked(value: Any) -> Any:
    return value


_options: Final = functools.partial(_mapping, functools.partial(_literal, is_option=True))
_assignments: Final = functools.partial(_mapping, _literal)
_any_by_name: Final = functools.partial(_mapping, _unchecked)
_BY_NAME: Final = (_options, "a dict of texts by name", '{"hoodie.clean.commits.retained": "3"}')
_LISTED: Final = "a list of texts"
_KINDS: Final[Mapping[str, tuple[Callable[[Any], Any], str, str]]] = {
    "str": (_text, "text that UTF-8 can hold", '"text"'),
    "None": (lambda value: None if value is None else _UNREAD, "None", "None"),
    "bool": (_flag, "True or False", "True"),
    "int": (_count, "a whole number from 0 of at most 63 bits", "10"),
    "float": (_seconds, "a finite number of seconds from 0", "60"),
    "When": (_time, "an instant or an ISO date as text, a date or a datetime", '"2026-11-25T12:00:00"'),
    "os.PathLike": (_path, "a path object", '"/data/trips"'),
    "Sequence": (_texts, _LISTED, '["id"]'),
    "Collection": (_texts_or_set, _LISTED, '["clean"]'),
    "Text": _BY_NAME,
    "Mapping[str, str]": _BY_NAME,
    "Assignments": (_assignments, "a dict of Spark SQL expressions by column", '{"fare": "fare + 1"}'),
    "Mapping[str, Any]": (_any_by_name, "a dict by name", '{"name": …}'),
    "dict": (_any_by_name, "a dict by name", '{"availableNow": True}'),
    "Expression": (_expression, "an expression of pyarrow.compute", 'pc.field("fare") > 2'),
    "Where": (_where, *_CONDITION),
    "Partitions": (_partitions, "a list of partition paths, or of dicts of partition columns", '["city=sf"]'),
    "Callable": (_callable, "a function", "print"),
    "MergeFunction": (_callable, "a function of two Arrow tables", "merge_rows"),
    "Session": (
        lambda value: value if value is None or value is False else _session(value),
        "a Spark session, None, or False to use none",
        "None",
    ),
    "Spark": (_session, "a Spark session", "SparkSession.builder.getOrCreate()"),
    "Action": (_unchecked, "an action", "None"),
    "Coordinator": (_unchecked, "a coordinator", "None"),
}
"""For each kind of annotation: its reader, what it stands for, and an example."""
