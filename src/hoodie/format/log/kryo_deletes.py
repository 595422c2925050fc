"""Delete blocks of releases before 0.13: Kryo graphs of `HoodieKey[]` (version 1) or `DeleteRecord[]` (version 2).

docs/format/table.md §4.3. Only these graphs are read, as Kryo 4 writes them: with references, and with classes by name.
The module makes one Python object for each delete, because such blocks are old and small.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.varint import varint_at

_MODEL: Final = "org.apache.hudi.common.model."
_KEY: Final = f"{_MODEL}HoodieKey"
_RECORD: Final = f"{_MODEL}DeleteRecord"
_ITEM_OF_VERSION: Final = {1: _KEY, 2: _RECORD}
# Class tags: null, a class by its name, a string. The other numbers that Kryo predefines are in `_PRIMITIVES`.
_NULL, _BY_NAME, _STRING = 0, 1, 3
# Reference tags: 0 is null, 1 is a new object that follows, and n >= 2 is the earlier object with the number n - 2.
_NEW: Final = 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Decimals of tables have up to 38 digits.
_DECIMAL_BYTES_MAX: Final = 64
_DECIMAL_SCALE_MAX: Final = 1000
_EXACT: Final = Context(prec=10_000)
_DELETES_MAX: Final = 2_000_000
"""Maximum number of deletes in a block: one of a few bytes takes some hundred bytes of memory."""


@dataclass(frozen=True, slots=True)
class _Delete:
    """One delete; `kind` is the Java class of its ordering value, or None if it has no ordering value."""

    record_key: str | None
    partition_path: str | None
    kind: str | None = None
    ordering: Any = None

    @property
    def has_ordering(self) -> bool:
        """Whether the delete has an ordering value; the int 0 means that it has none, as in later versions."""
        return self.kind is not None and (self.kind, self.ordering) != ("Integer", 0)


def parse_kryo_deletes(
    payload: bytes | memoryview, version: int, *, path: str, offset: int = 0, deletes_max: int = _DELETES_MAX
) -> tuple[pa.StringArray, pa.StringArray, pa.Array]:
    """Parse the payload of a delete block of version 1 or 2 into record keys, partition paths and orderings.

    An ordering is null where a delete has no ordering value; version 1 has no ordering values. `offset` is the offset
    of the payload in its file, for error messages.

    Raises:
        CorruptFileError: the payload is truncated or has more than `deletes_max` deletes, or a reference has no object.
        UnsupportedError: the graph has other classes, or its ordering values have several classes or an unknown class.
    """
    graph = _Graph(memoryview(payload), path, offset)
    deletes = graph.deletes(_ITEM_OF_VERSION[version], deletes_max)
    kinds = {delete.kind for delete in deletes if delete.kind is not None and delete.has_ordering}
    if len(kinds) > 1:
        raise graph.unsupported(f"ordering values of several classes ({', '.join(sorted(kinds))})")
    try:
        orderings = [delete.ordering if delete.has_ordering else None for delete in deletes]
        return (
            pa.array([delete.record_key for delete in deletes], pa.string()),
            pa.array([delete.partition_path for delete in deletes], pa.string()),
            pa.array(orderings, _ARROW_TYPES.get(kinds.pop(), None) if kinds else pa.int32()),
        )
    except (ValueError, OverflowError, pa.ArrowException) as error:
        raise graph.corrupt(f"impossible values: {error}") from error


@dataclass(slots=True)
class _Graph:
    """A read position in the payload, and the class names and objects read so far, in the order of Kryo's numbers."""

    view: memoryview
    path: str
    origin: int
    position: int = 0
    names: list[str | None] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)

    def deletes(self, item: str, deletes_max: int) -> list[_Delete]:
        self.expect_class(f"[L{item};")
        self.new_object("list of deletes")
        count = self.varint() - 1
        if not 0 <= count <= min(len(self.view), deletes_max):
            raise self.corrupt(f"a list of {count} deletes does not fit the payload")
        read = self.key if item == _KEY else self.record
        found = [read() for _ in range(count)]
        if self.position != len(self.view):
            raise self.corrupt(f"{len(self.view) - self.position} bytes follow the list")
        return found

    def record(self) -> _Delete:
        self.expect_class(_RECORD)
        self.new_object("delete")
        key = self.key()
        kind, ordering = self.ordering()
        return _Delete(key.record_key, key.partition_path, kind, ordering)

    def key(self) -> _Delete:
        """Read a `HoodieKey`, or a reference to a `HoodieKey`; its fields are in the order of their names."""
        self.expect_class(_KEY)
        place, known = self.reference("key")
        if place is not None:
            partition_path = self.text()
            self.objects[place] = known = _Delete(self.text(), partition_path)
        if not isinstance(known, _Delete):
            raise self.corrupt("expected a reference to a key, found a reference to another object")
        return known

    def ordering(self) -> tuple[str | None, Any]:
        """Read the class name and the value of an ordering."""
        tag = self.varint()
        if tag == _NULL:
            return None, None
        if tag == _STRING:
            return "String", self.text()
        if tag in _PRIMITIVES:
            name, read = _PRIMITIVES[tag]
            return name, read(self)
        name = self.class_name() if tag == _BY_NAME else f"Kryo's class {tag}"
        if name not in _OBJECTS:
            raise self.unsupported(f"ordering values of {name}")
        place, known = self.reference("ordering value")
        if place is not None:
            self.objects[place] = known = _OBJECTS[name](self)
        return name, known

    def expect_class(self, wanted: str) -> None:
        tag = self.varint()
        name = self.class_name() if tag == _BY_NAME else f"Kryo's class {tag}"
        if name != wanted:
            raise self.unsupported(f"{name} instead of {wanted}")

    def class_name(self) -> str:
        """Read the class name after a class tag; Kryo writes each name in full only once."""
        number = self.varint()
        if number == len(self.names):
            self.names.append(self.string())
        if number >= len(self.names):
            raise self.corrupt(f"a reference to class name {number} is before this name")
        return self.names[number] or ""

    def new_object(self, what: str) -> None:
        if self.reference(what)[0] is None:
            raise self.corrupt(f"expected a new {what}, found a reference to an earlier object")

    def reference(self, what: str) -> tuple[int | None, Any]:
        """Read a reference: return the number of a new object that follows, or None and the earlier object."""
        tag = self.varint()
        if tag == _NEW:
            self.objects.append(None)
            return len(self.objects) - 1, None
        if not 0 <= tag - 2 < len(self.objects):
            raise self.corrupt(f"a {what} is null, or refers to an object that was not read yet")
        return None, self.objects[tag - 2]

    def text(self) -> str | None:
        """Read a field that is a string: null, a new string, or a reference to an earlier string."""
        if self.position < len(self.view) and self.view[self.position] == _NULL:
            self.position += 1
            return None
        place, known = self.reference("text")
        if place is not None:
            self.objects[place] = known = self.string()
        if known is not None and not isinstance(known, str):
            raise self.corrupt("expected a reference to a text, found a reference to another object")
        return known

    def string(self) -> str | None:
        """Read a string: ASCII with the high bit of the last byte set, or a count of UTF-16 units and the units.

        The stored count is the number of units plus one; 0 means null.
        """
        start = self.position
        first = self.byte()
        if first < 0x80:
            while self.byte() < 0x80:
                pass
            data = bytearray(self.view[start : self.position])
            data[-1] &= 0x7F
            return data.decode("ascii")
        count, shift = first & 0x3F, 6
        more = first & 0x40
        while more and shift < 34:
            part = self.byte()
            count |= (part & 0x7F) << shift
            more, shift = part & 0x80, shift + 7
        return None if count == 0 else self.units(count - 1)

    def units(self, count: int) -> str:
        """Read UTF-16 units, each encoded as one to three bytes of UTF-8."""
        start = self.position
        for _ in range(count):
            first = self.byte()
            self.take(0 if first < 0x80 else 1 if first < 0xE0 else 2)
        try:
            text = bytes(self.view[start : self.position]).decode("utf-8", "surrogatepass")
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError as error:
            raise self.corrupt(f"a string is not valid text: {error}") from error

    def varint(self, bytes_max: int = 5) -> int:
        """Read an unsigned number in groups of seven bits; a ninth byte has eight bits."""
        try:
            number, self.position = varint_at(self.view, self.position, bytes_max=bytes_max)
        except ValueError as error:
            raise self.corrupt(str(error)) from error
        return number

    def signed(self, bytes_max: int = 5) -> int:
        number = self.varint(bytes_max)
        return (number >> 1) ^ -(number & 1)

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def take(self, count: int) -> memoryview:
        if not 0 <= count <= len(self.view) - self.position:
            raise self.corrupt(f"expected {count} more bytes, found {len(self.view) - self.position}")
        self.position += count
        return self.view[self.position - count : self.position]

    def decimal(self) -> Decimal:
        size = self.varint() - 1
        unscaled = int.from_bytes(self.take(min(size, _DECIMAL_BYTES_MAX + 1)), "big", signed=True)
        scale = self.signed()
        if size > _DECIMAL_BYTES_MAX or abs(scale) > _DECIMAL_SCALE_MAX:
            raise self.corrupt(f"a decimal of {size} bytes and scale {scale} is larger than decimals of tables are")
        return Decimal(unscaled).scaleb(-scale, _EXACT)

    def local_date(self) -> date:
        year = self.varint()
        try:
            return date(year, self.byte(), self.byte())
        except ValueError as error:
            raise self.corrupt(f"not a date: {error}") from error

    def moment(self) -> datetime:
        """Read a `java.sql.Timestamp`: Kryo stores its milliseconds."""
        try:
            return _EPOCH + timedelta(milliseconds=self.varint(9))
        except OverflowError as error:
            raise self.corrupt(f"not a timestamp: {error}") from error

    def corrupt(self, problem: str) -> CorruptFileError:
        return CorruptFileError(f"not a delete list: {problem}", path=self.path, offset=self.origin + self.position)

    def unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"{self.path} at byte {self.origin}: a delete block of a release before 0.13 with {what}; "
            f"compact the table with the Hudi release that wrote it"
        )


_PRIMITIVES: Final[Mapping[int, tuple[str, Callable[[_Graph], Any]]]] = {
    2: ("Integer", _Graph.signed),
    4: ("Float", lambda graph: graph.number(">f")),
    5: ("Boolean", lambda graph: graph.byte() != 0),
    9: ("Long", lambda graph: graph.signed(9)),
    10: ("Double", lambda graph: graph.number(">d")),
}
_OBJECTS: Final[Mapping[str, Callable[[_Graph], Any]]] = {
    "java.math.BigDecimal": _Graph.decimal,
    "java.time.LocalDate": _Graph.local_date,
    "java.sql.Timestamp": _Graph.moment,
}
_ARROW_TYPES: Final[Mapping[str, pa.DataType]] = {
    "Integer": pa.int32(),
    "Float": pa.float32(),
    "Boolean": pa.bool_(),
    "Long": pa.int64(),
    "Double": pa.float64(),
    "String": pa.string(),
    "java.time.LocalDate": pa.date32(),
    "java.sql.Timestamp": pa.timestamp("us", tz="UTC"),
}
