"""Check Avro schemas from files of a table before anything decodes with them.

The writer's schema comes from the file, so whoever writes the file decides what the decoder does. A checked schema
describes values whose size in memory is bounded by their size in the file, and whose nesting is bounded.

Later releases of Hudi add fields to their records: schemas that are unknown here are accepted within the limits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.json_text import parse_json

LEVELS_MAX: Final = 60
"""How deep records, lists and maps may be nested; a map has two levels. Arrow's IPC format allows 64 levels."""
TYPES_MAX: Final = 200_000
"""How many types a schema may have; a named type counts each time that it is used."""
FIXED_BYTES_MAX: Final = 1024 * 1024
"""The greatest size of a `fixed`. A column of a `fixed` takes this memory for nulls too."""
TEXT_BYTES_MAX: Final = 8 * 1024 * 1024
"""The greatest size of a schema's JSON text."""
_PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def parse_schema(text: str, *, path: str) -> Any:
    """Parse and check the JSON text of a schema. Do not change the result: it is cached.

    Raises:
        CorruptFileError: the text is not the JSON of an Avro schema; `path` is the file that has it.
        UnsupportedError: the schema contains itself, has values without bytes, or exceeds one of the limits.
    """
    return _checked(text, path)[0]


def bare_schema(text: str, *, path: str) -> Any:
    """Return a checked schema with nothing but its types: without logical types, defaults, docs and aliases.

    A decoder of such a schema returns plain values, and cannot fail on what it does not need. All names are full.

    Raises: as `parse_schema`.
    """
    return _checked(text, path)[1]


def _checked(text: str, path: str) -> tuple[Any, Any]:
    if len(text) > TEXT_BYTES_MAX:
        expected = f"an Avro schema with a text of at most {TEXT_BYTES_MAX} characters expected"
        raise UnsupportedError(f"{path}: {expected}, found {len(text)}")
    try:
        return _parsed(text)
    except _Unnamed as error:
        raise error.named(path) from error


@lru_cache(maxsize=64)
def _parsed(text: str) -> tuple[Any, Any]:
    """Parse a text once. Errors have no path, because the same text is found in many files."""
    try:
        schema = parse_json(text, path="", expected="an Avro schema")
        return schema, _Walk().whole(schema)
    except CorruptFileError as error:
        raise _Unnamed(str(error).removeprefix(": ")) from error
    except RecursionError as error:
        raise _Unnamed("an Avro schema of fewer nested levels expected", is_limit=True) from error


class _Unnamed(Exception):
    """A problem of a schema whose file is not known yet."""

    def __init__(self, message: str, *, is_limit: bool = False) -> None:
        super().__init__(message)
        self.is_limit = is_limit

    def named(self, path: str) -> CorruptFileError | UnsupportedError:
        if self.is_limit:
            return UnsupportedError(f"{path}: {self}; hoodie does not read or write it, see docs/format/table.md §2.3")
        return CorruptFileError(str(self), path=path)


@dataclass(slots=True)
class _Walk:
    """Reads one schema; stores the named types that it has read, and how many types each consists of."""

    named: dict[str, tuple[Any, int]] = field(default_factory=dict)
    open_names: set[str] = field(default_factory=set)
    types: int = 0
    column: list[str] = field(default_factory=list)

    def whole(self, schema: Any) -> Any:
        """Check a whole schema and return its bare form; errors name the column."""
        try:
            return self.read(schema, "", 0)
        except _Unnamed as error:
            if self.column:
                column = ".".join(self.column)[:200]
                raise _Unnamed(f"column {column!r}: {error}", is_limit=error.is_limit) from error
            raise

    def read(self, avro: Any, namespace: str, level: int) -> Any:
        """Check one type and return its bare form."""
        if level > LEVELS_MAX:
            raise _Unnamed(f"an Avro schema of at most {LEVELS_MAX} nested levels expected, found more", is_limit=True)
        self._count(1)
        if isinstance(avro, list):
            return self._union(avro, namespace, level)
        if isinstance(avro, str):
            return avro if avro in _PRIMITIVES else self._reference(avro, namespace)
        if not isinstance(avro, Mapping):
            raise _Unnamed(f"an Avro type expected, found {str(avro)[:100]!r}")
        return self._object(avro, namespace, level)

    def _object(self, avro: Mapping[str, Any], namespace: str, level: int) -> Any:
        kind = avro.get("type")
        if isinstance(kind, list | dict):
            return self.read(kind, namespace, level + 1)
        if kind == "array":
            return {"type": "array", "items": self._value(avro.get("items"), namespace, level + 1)}
        if kind == "map":
            return {"type": "map", "values": self._value(avro.get("values"), namespace, level + 2)}
        if kind in ("record", "error", "fixed", "enum"):
            return self._named(kind, avro, namespace, level)
        if not isinstance(kind, str):
            raise _Unnamed(f"an Avro type expected, found {str(avro)[:100]!r}")
        return kind if kind in _PRIMITIVES else self._reference(kind, namespace)

    def _value(self, avro: Any, namespace: str, level: int) -> Any:
        """Check the type of a field, an item or a map's value: each value must have at least one byte."""
        bare = self.read(avro, namespace, level)
        if bare == "null":
            raise _Unnamed("an Avro schema whose values have bytes expected, found the type null", is_limit=True)
        return bare

    def _union(self, branches: list[Any], namespace: str, level: int) -> Any:
        if not branches or any(isinstance(branch, list) for branch in branches):
            raise _Unnamed("an Avro union of types that are no unions expected, found another")
        return [self.read(branch, namespace, level) for branch in branches]

    def _named(self, kind: str, avro: Mapping[str, Any], namespace: str, level: int) -> Any:
        name, space = avro.get("name"), avro.get("namespace")
        space = namespace if space is None else space
        if not isinstance(name, str) or not name.strip(".") or not isinstance(space, str):
            raise _Unnamed(f"a {kind} with a name expected, found the name {str(name)[:100]!r}")
        full_name = name if "." in name else f"{space}.{name}".lstrip(".")
        before = self.types
        bare: dict[str, Any] = {"type": kind, "name": full_name}
        if kind == "fixed":
            bare["size"] = _fixed_size(avro.get("size"))
        elif kind == "enum":
            bare["symbols"] = self._symbols(avro.get("symbols"))
        else:
            bare["fields"] = self._fields(avro.get("fields"), full_name, level)
        known = self.named.get(full_name)
        if known is None:
            self.named[full_name] = bare, self.types - before
            return bare
        if json.dumps(known[0], sort_keys=True) != json.dumps(bare, sort_keys=True):
            raise _Unnamed(f"one type named {full_name[:100]!r} expected, found two")
        return full_name

    def _fields(self, fields: Any, full_name: str, level: int) -> list[dict[str, Any]]:
        if not isinstance(fields, list):
            raise _Unnamed(f"the fields of {full_name[:100]!r} expected, found {str(fields)[:100]!r}")
        if not fields:
            raise _Unnamed(f"a record of at least one field expected, {full_name[:100]!r} has none", is_limit=True)
        if full_name in self.open_names:
            raise _Unnamed(f"the type {full_name[:100]!r} contains itself", is_limit=True)
        self.open_names.add(full_name)
        space = full_name.rpartition(".")[0]
        found = [self._field(one, space, level + 1) for one in fields]
        if len({one["name"] for one in found}) < len(found):
            raise _Unnamed(f"the fields of {full_name[:100]!r} have the same name")
        self.open_names.remove(full_name)
        return found

    def _field(self, one: Any, space: str, level: int) -> dict[str, Any]:
        if not isinstance(one, Mapping) or not isinstance(one.get("name"), str) or not one["name"]:
            raise _Unnamed(f"a field with a name expected, found {str(one)[:100]!r}")
        self.column.append(one["name"])
        bare = self._value(one.get("type"), space, level)
        self.column.pop()
        return {"name": one["name"], "type": bare}

    def _symbols(self, symbols: Any) -> list[str]:
        if not isinstance(symbols, list) or not all(isinstance(one, str) for one in symbols):
            raise _Unnamed(f"the symbols of an enum expected, found {str(symbols)[:100]!r}")
        if not symbols or len(set(symbols)) < len(symbols):
            raise _Unnamed("an enum of different symbols expected, found none or the same twice")
        self._count(len(symbols))
        return symbols

    def _reference(self, name: str, namespace: str) -> str:
        full_name = name if "." in name else f"{namespace}.{name}".lstrip(".")
        for candidate in (full_name, name):
            if candidate in self.open_names:
                raise _Unnamed(f"the type {candidate[:100]!r} contains itself", is_limit=True)
            if candidate in self.named:
                self._count(self.named[candidate][1])
                return candidate
        raise _Unnamed(f"{name[:100]!r} is not a known Avro type", is_limit=True)

    def _count(self, types: int) -> None:
        self.types += types
        if self.types > TYPES_MAX:
            raise _Unnamed(f"an Avro schema of at most {TYPES_MAX} types expected, found more", is_limit=True)


def _fixed_size(size: Any) -> int:
    if type(size) is not int or size < 0:
        raise _Unnamed(f"the size of a fixed expected, found {str(size)[:100]!r}")
    if not 1 <= size <= FIXED_BYTES_MAX:
        raise _Unnamed(f"a fixed of 1 to {FIXED_BYTES_MAX} bytes expected, found {size}", is_limit=True)
    return size
