"""Changes of a table's columns by statements: what each does to the record of the columns, and what it needs.

On-disk format: docs/format/table.md §3.8. Columns and nested fields are named by paths: `s.y`, `m.value.u`,
`l.element.v`. The rules are those of the JVM's ALTER TABLE, except that no change of a type may make reads fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa

from hoodie.errors import SchemaMismatchError
from hoodie.format.avro.schema import DOC, META_FIELDS, OPERATION_FIELD
from hoodie.format.schema.arrow_types import LIST_ITEM
from hoodie.format.schema.id_record import MAX_ID, Record, new_field, plain_type, type_text

_META: Final = frozenset({*META_FIELDS, OPERATION_FIELD})
_NUMBERS: Final = (pa.int32(), pa.int64(), pa.float32(), pa.float64())
_TEXT_OF: Final = (*_NUMBERS, pa.date32(), pa.binary())
"""Types that may become text, and decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a column stands: as the first one of the table or of its struct, or after another one of it."""

    first: bool = False
    after: str | None = None

    def __bool__(self) -> bool:
        return self.first or self.after is not None

    def __str__(self) -> str:
        return "first" if self.after is None else f"after {self.after}"


@dataclass(frozen=True, slots=True)
class Alteration:
    """One change of the columns; `path` names the column or nested field.

    `is_of_values`: whether the column loses its name or its type, which a column of the record key may not.
    """

    path: str
    is_of_values: ClassVar[bool] = False

    def apply(self, record: Record) -> tuple[str, ...]:
        """Change the record; return what changed, then notes for the user. Raises: SchemaMismatchError."""
        raise NotImplementedError

    def needs_ids(self, record: Record) -> bool:
        """Return whether files cannot be read by the names of the columns after the change of this record.

        Then a file has an old name, or a later column of the same name must not get the values in the files.
        """
        return self.is_of_values


@dataclass(frozen=True, slots=True)
class AddColumn(Alteration):
    """Add a nullable column or nested field."""

    type: pa.DataType
    comment: str | None = None
    place: Place = Place()

    def apply(self, record: Record) -> tuple[str, ...]:
        """Add it. The JVM adds no column that allows no null, and none with a default."""
        fields, name = _siblings(record, self.path)
        _refuse_taken(fields, name, self.path)
        metadata = None if self.comment is None else {DOC: self.comment.encode()}
        field, record[MAX_ID] = new_field(pa.field(name, self.type, metadata=metadata), record[MAX_ID] + 1)
        fields.append(field)
        _move(fields, field, self.place, self.path)
        return (f"column {self.path} added: {self.type}",)


@dataclass(frozen=True, slots=True)
class RenameColumn(Alteration):
    """Give a column or nested field another name."""

    name: str
    is_of_values: ClassVar[bool] = True

    def apply(self, record: Record) -> tuple[str, ...]:
        fields, field = _field(record, self.path)
        if "." in self.name:
            raise SchemaMismatchError(
                f"column {self.path!r}: expected a new name without its struct, found {self.name!r}"
            )
        _refuse_taken([found for found in fields if found is not field], self.name, self.path)
        field["name"] = self.name
        return (f"column {self.path} renamed to {self.name}",)


@dataclass(frozen=True, slots=True)
class DropColumn(Alteration):
    """Drop a column or nested field; the files keep its values, which reads of older snapshots return."""

    is_of_values: ClassVar[bool] = True

    def apply(self, record: Record) -> tuple[str, ...]:
        fields, field = _field(record, self.path)
        fields.remove(field)
        if not any(found["name"] not in _META for found in fields):
            raise SchemaMismatchError(f"column {self.path!r}: the last column of a table or struct cannot be dropped")
        return (f"column {self.path} dropped",)


@dataclass(frozen=True, slots=True)
class ChangeType(Alteration):
    """Change the type of a column, a nested field, the items of a list or the values of a map."""

    type: pa.DataType
    is_of_values: ClassVar[bool] = True

    def apply(self, record: Record) -> tuple[str, ...]:
        slot = _slot(record, self.path)
        old = self._old(slot)
        if old != self.type:
            _check_change(self.path, old, self.type)
            slot.owner[slot.key] = type_text(self.type)
        return f"column {self.path}: {old} -> {self.type}", *_losses(self.path, old, self.type)

    def needs_ids(self, record: Record) -> bool:
        """Data of these types changes the column too, in tables without ids."""
        old = self._old(_slot(record, self.path))
        return (old, self.type) not in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64())) and not (
            pa.types.is_decimal(old) and pa.types.is_decimal(self.type) and old.scale == self.type.scale
        )

    def _old(self, slot: _Slot) -> pa.DataType:
        kind = slot.owner[slot.key]
        if not isinstance(kind, str) or pa.types.is_nested(self.type):
            raise SchemaMismatchError(
                f"column {self.path!r}: only plain types change; name a field of a struct ({self.path}.field), the "
                f"items of a list ({self.path}.{LIST_ITEM}) or the values of a map ({self.path}.value)"
            )
        return plain_type(kind)


@dataclass(frozen=True, slots=True)
class SetComment(Alteration):
    """Set the comment of a column or nested field; None removes it."""

    comment: str | None

    def apply(self, record: Record) -> tuple[str, ...]:
        _, field = _field(record, self.path)
        field.pop("doc", None)
        if self.comment:
            field["doc"] = self.comment
        return (f"comment of column {self.path}: {self.comment or 'none'}",)


@dataclass(frozen=True, slots=True)
class AllowNull(Alteration):
    """Allow null in a column, a nested field, the items of a list or the values of a map."""

    def apply(self, record: Record) -> tuple[str, ...]:
        slot = _slot(record, self.path)
        slot.owner["optional" if slot.key == "type" else f"{slot.key}_optional"] = True
        return (f"column {self.path}: not null -> nullable",)


@dataclass(frozen=True, slots=True)
class MoveColumn(Alteration):
    """Move a column or nested field among its neighbours."""

    place: Place

    def apply(self, record: Record) -> tuple[str, ...]:
        fields, field = _field(record, self.path)
        _move(fields, field, self.place, self.path)
        return (f"column {self.path} moved {self.place}",)


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where the type of a field, of items or of values stands: `owner[key]`.

    `fields` has the field and its neighbours; None for items and values.
    """

    owner: Record
    key: str
    fields: list[Record] | None = None


def stored_path(record: Record, path: str) -> str:
    """Return a path in the spelling of the table. Raises: SchemaMismatchError for a column that is not there."""
    found, kind = [], record
    for part in path.split("."):
        slot = _step(kind, part, path)
        found.append(slot.owner["name"] if slot.key == "type" else part)
        kind = slot.owner[slot.key]
    return ".".join(found)


def _slot(record: Record, path: str) -> _Slot:
    kind: Any = record
    slot = None
    for part in path.split("."):
        slot = _step(kind, part, path)
        kind = slot.owner[slot.key]
    assert slot is not None, "a path has a part"
    return slot


def _step(kind: Any, part: str, path: str) -> _Slot:
    """Go to a field of a record, the items of a list, or the values of a map."""
    nested = kind["type"] if isinstance(kind, dict) else None
    if nested == "record":
        fields: list[Record] = kind["fields"]
        known = [field for field in fields if field["name"] == part]
        known = known or [field for field in fields if field["name"].lower() == part.lower()]
        if len(known) == 1 and known[0]["name"] not in _META:
            return _Slot(known[0], "type", fields)
        names = [field["name"] for field in fields if field["name"] not in _META]
        raise SchemaMismatchError(f"column {path!r}: no column {part!r}; expected one of {', '.join(names)[:300]}")
    below = {"array": (LIST_ITEM, "element"), "map": ("value", "value")}.get(nested or "")
    if below is None or below[0] != part:
        expected = "no field below a plain type" if below is None else f"{below[0]!r}"
        raise SchemaMismatchError(f"column {path!r}: expected {expected}, found {part!r}")
    return _Slot(kind, below[1])


def _field(record: Record, path: str) -> tuple[list[Record], Record]:
    """Return a field with its neighbours. Raises: SchemaMismatchError for the items of a list and values of a map."""
    slot = _slot(record, path)
    if slot.fields is None:
        raise SchemaMismatchError(f"column {path!r}: expected a column or a field of a struct, which has a name")
    return slot.fields, slot.owner


def _siblings(record: Record, path: str) -> tuple[list[Record], str]:
    """Return the fields to which a new one is added, and its name. Raises: SchemaMismatchError."""
    parent, _, name = path.rpartition(".")
    kind: Any = record
    if parent:
        slot = _slot(record, parent)
        kind = slot.owner[slot.key]
    if not isinstance(kind, dict) or kind["type"] != "record":
        raise SchemaMismatchError(f"column {path!r}: {parent!r} is no struct, so no field can be added to it")
    fields: list[Record] = kind["fields"]
    return fields, name


def _refuse_taken(fields: list[Record], name: str, path: str) -> None:
    """Refuse a name that a neighbour has, in any case: Spark could not read such a table. Meta columns count."""
    if "." not in path and name.lower() in _META:
        raise SchemaMismatchError(f"column {path!r}: {name} is the name of a meta column; choose another name")
    for field in fields:
        if field["name"].lower() == name.lower():
            raise SchemaMismatchError(
                f"column {path!r}: the table has a column {field['name']!r} there; choose another name"
            )


def _move(fields: list[Record], field: Record, place: Place, path: str) -> None:
    if not place:
        return
    fields.remove(field)
    start = sum(found["name"] in _META for found in fields)
    if place.after is not None:
        neighbour = _step({"type": "record", "fields": fields}, place.after, path).owner
        start = next(number for number, found in enumerate(fields) if found is neighbour) + 1
    fields.insert(start, field)


def _check_change(path: str, old: pa.DataType, new: pa.DataType) -> None:
    """Refuse a change of a type that the JVM refuses, or whose values might not fit. Raises: SchemaMismatchError."""
    if pa.types.is_decimal(new) and (pa.types.is_decimal(old) or old in _NUMBERS):
        digits, scale = _digits(old)
        if new.precision - new.scale >= digits and new.scale >= scale:
            return
        raise SchemaMismatchError(
            f"column {path!r}: not every {old} fits {new}: expected a decimal with at least {digits} digits before the "
            f"point and {scale} behind it"
        )
    if new == pa.string() and (old in _TEXT_OF or pa.types.is_decimal(old)):
        return
    if old in _NUMBERS and new in _NUMBERS[_NUMBERS.index(old) :]:
        return
    if old == pa.string() and (new in (pa.binary(), pa.date32()) or pa.types.is_decimal(new)):
        return
    raise SchemaMismatchError(
        f"column {path!r}: {old} cannot become {new}: int becomes bigint, float, double, a decimal or string; bigint "
        "float, double, a decimal or string; float double, a decimal or string; double a decimal or string; a decimal "
        "a wider one or string; date string; binary string; string binary, date or a decimal. Add a column instead"
    )


def _digits(kind: pa.DataType) -> tuple[int, int]:
    """Return how many digits before and behind the point the values of a type can have; 0 without a bound."""
    if pa.types.is_decimal(kind):
        return kind.precision - kind.scale, kind.scale
    return {pa.int32(): 10, pa.int64(): 19}.get(kind, 0), 0


def _losses(path: str, old: pa.DataType, new: pa.DataType) -> tuple[str, ...]:
    """Return a note if stored values may change, or may not be readable any more."""
    if old in (pa.int32(), pa.int64()) and (new == pa.float32() or (old, new) == (pa.int64(), pa.float64())):
        return (f"column {path}: whole numbers of more than {24 if new == pa.float32() else 53} bits are rounded",)
    if old in (pa.float32(), pa.float64()) and pa.types.is_decimal(new):
        return (
            f"column {path}: numbers are rounded to {new.scale} digits; a number with too many digits makes reads fail",
        )
    if old == pa.string() and (new == pa.date32() or pa.types.is_decimal(new)):
        return (
            f"column {path}: a stored text that is no {'date' if new == pa.date32() else 'number'} makes reads fail",
        )
    if (old, new) == (pa.binary(), pa.string()):
        return (f"column {path}: stored bytes that are not valid UTF-8 make reads fail",)
    return ()
