"""Convert frozen dataclasses to Avro records and back, by their type hints.

A field `start_clean_time` is the Avro field `startCleanTime`, unless `on_disk(...)` gives another Avro name.
A hint may be str, int, float, bool, such a dataclass, `tuple[T, ...]`, `Mapping[str, T]`, or `T | None`.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from typing import Any, Final, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from hoodie.errors import CorruptFileError
from hoodie.format.avro.file import RecordSchema, parse_record, record_to_bytes

_NAME: Final = "hoodie_name_on_disk"
_T = TypeVar("_T")
_Parse = Callable[[Any, str, str], Any]  # decoded value, name of the field, path of the file
_Write = Callable[[Any], Any]


def on_disk(name: str) -> dict[str, str]:
    """Return the `metadata` of a dataclass field whose Avro name is not derived from its own name."""
    return {_NAME: name}


class InstantRecord:
    """Base class of the records that are the only content of an instant file, as an Avro container."""

    __slots__ = ()

    @classmethod
    def schema(cls) -> RecordSchema:
        """Return the schema with which the record is written."""
        return RecordSchema.load(f"Hoodie{cls.__name__}")

    @classmethod
    def parse(cls, data: bytes, *, path: str = "<memory>") -> Self:
        """Parse an instant file's content; fields that an older writer did not write get their defaults.

        Some writers leave empty files. An empty file gives a record with only default values.

        Raises: CorruptFileError if the content is truncated, holds another record, or lacks a required field.
        """
        if not data:
            return from_record(cls, {}, path=path)
        schema, record = parse_record(data, path=path)
        expected = cls.schema().name
        if schema.name != expected:
            raise CorruptFileError(f"the record {expected} expected, found {schema.name}", path=path)
        return from_record(cls, record, path=path)

    def to_bytes(self, *, sync_marker: bytes | None = None) -> bytes:
        """Encode an instant file's content; `sync_marker` has 16 bytes and is random unless given."""
        return record_to_bytes(self.schema(), to_record(self), sync_marker=sync_marker)


def from_record(cls: type[_T], record: Mapping[str, Any], *, path: str) -> _T:
    """Build a dataclass from a decoded Avro record; null counts as absent unless the hint allows None.

    Raises: CorruptFileError if a value has another type, or a field without default is absent.
    """
    values: dict[str, Any] = {}
    for field in _fields_of(cls):
        value = record.get(field.name)
        if value is not None:
            values[field.attribute] = field.parse(value, field.name, path)
        elif field.is_nullable and field.name in record:
            values[field.attribute] = None
        elif field.is_needed:
            raise CorruptFileError(f"the field {cls.__name__}.{field.name} expected, found none", path=path)
    return cls(**values)


def to_record(instance: Any) -> dict[str, Any]:
    """Return the decoded Avro record of a dataclass."""
    values = ((field, getattr(instance, field.attribute)) for field in _fields_of(type(instance)))
    return {field.name: None if value is None else field.write(value) for field, value in values}


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    attribute: str
    name: str
    parse: _Parse
    write: _Write
    is_nullable: bool
    is_needed: bool


_FIELDS_OF: Final[dict[type, tuple[_Field, ...]]] = {}


def _fields_of(cls: Any) -> tuple[_Field, ...]:
    """Return the fields of a class; the type hints of each class are evaluated once."""
    known = _FIELDS_OF.get(cls)
    if known is not None:
        return known
    hints = get_type_hints(cls)
    found = []
    for field in dataclasses.fields(cls):
        hint, is_nullable = _without_none(hints[field.name])
        parse, write = _converters(hint)
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        name = field.metadata.get(_NAME) or _camel_case(field.name)
        found.append(_Field(field.name, name, parse, write, is_nullable, needed))
    return _FIELDS_OF.setdefault(cls, tuple(found))


def _camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    (kept,) = (arm for arm in get_args(hint) if arm is not type(None))
    return kept, True


def _converters(hint: Any) -> tuple[_Parse, _Write]:
    hint, _ = _without_none(hint)
    origin = get_origin(hint)
    if origin is tuple:
        return _list_converters(get_args(hint)[0])
    if origin is Mapping:
        return _map_converters(get_args(hint)[1])
    if dataclasses.is_dataclass(hint):
        return _record_parser(hint), to_record
    return _scalar_parser(hint), lambda value: value


def _list_converters(item: Any) -> tuple[_Parse, _Write]:
    parse_item, write_item = _converters(item)

    def parse(value: Any, name: str, path: str) -> tuple[Any, ...]:
        _expect(value, list, name, path)
        return tuple(parse_item(entry, name, path) for entry in value if entry is not None)

    return parse, lambda value: [write_item(entry) for entry in value]


def _map_converters(item: Any) -> tuple[_Parse, _Write]:
    parse_item, write_item = _converters(item)

    def parse(value: Any, name: str, path: str) -> dict[str, Any]:
        _expect(value, dict, name, path)
        return {key: parse_item(entry, f"{name}.{key}", path) for key, entry in value.items()}

    return parse, lambda value: {key: write_item(entry) for key, entry in value.items()}


def _record_parser(cls: Any) -> _Parse:
    def parse(value: Any, name: str, path: str) -> Any:
        _expect(value, dict, name, path)
        return from_record(cls, value, path=path)

    return parse


def _scalar_parser(kind: type) -> _Parse:
    def parse(value: Any, name: str, path: str) -> Any:
        if type(value) is not kind:
            raise CorruptFileError(f"{name}: {kind.__name__} expected, found {value!r}", path=path)
        return value

    return parse


def _expect(value: Any, kind: type, name: str, path: str) -> None:
    if not isinstance(value, kind):
        raise CorruptFileError(f"{name}: {kind.__name__} expected, found {type(value).__name__}", path=path)
