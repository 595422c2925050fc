"""The layout of a row's fields in its Avro bytes: a tree that is built once for each schema text.

Avro 1.11 specification, "Schema Declaration" and "Names". The Arrow types are the types that `avro_to_arrow` returns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from hoodie.format.avro.safe_schema import bare_schema
from hoodie.format.avro.schema import avro_to_arrow


class Kind(Enum):
    """Encoding of a value."""

    BOOLEAN = auto()
    INT = auto()
    LONG = auto()
    FLOAT = auto()
    DOUBLE = auto()
    BYTES = auto()
    FIXED = auto()
    DECIMAL_BYTES = auto()
    DECIMAL_FIXED = auto()
    ENUM = auto()
    ARRAY = auto()
    MAP = auto()
    RECORD = auto()
    UNION = auto()


_PRIMITIVES: Final = {
    "boolean": Kind.BOOLEAN,
    "int": Kind.INT,
    "long": Kind.LONG,
    "float": Kind.FLOAT,
    "double": Kind.DOUBLE,
    "string": Kind.BYTES,
    "bytes": Kind.BYTES,
}
_FIXED_BYTES: Final = {Kind.BOOLEAN: 1, Kind.FLOAT: 4, Kind.DOUBLE: 8}


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of one type: `kind` is its encoding, `arrow` is its Arrow type.

    `children` are the fields of a record, the branches of a union except null, the item of an array, or the entry of a
    map (a record of key and value). `symbols` are those of an enum. For a union, `numbers` are the branch numbers of
    `children`; `null_number` is the branch number of null, or -1. `size_bytes` is the size of every value, or None if
    the sizes differ.
    """

    kind: Kind
    arrow: pa.DataType
    path: str
    children: tuple[Layout, ...] = ()
    symbols: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    null_number: int = -1
    size_bytes: int | None = None


@lru_cache(maxsize=64)
def row_layout(avro_schema: str) -> Layout:
    """Return the layout of an Avro record's JSON text; the layout of each text is built once.

    Raises: UnsupportedError if a type has no Arrow form, or the schema exceeds the limits of `safe_schema`.
    """
    bare = bare_schema(avro_schema, path="the table's schema")
    return _Maker().make(bare, pa.struct(list(avro_to_arrow(avro_schema))), "")


@dataclass(slots=True)
class _Maker:
    """Builds layouts from bare Avro schemas and the matching Arrow types; stores the named types that it has read."""

    named: dict[str, Any] = field(default_factory=dict)

    def make(self, avro: Any, arrow: pa.DataType, path: str) -> Layout:
        if isinstance(avro, list):
            return self._union(avro, arrow, path)
        if avro == "bytes" and pa.types.is_decimal(arrow):
            return Layout(Kind.DECIMAL_BYTES, arrow, path)
        if isinstance(avro, str):
            primitive = _PRIMITIVES.get(avro)
            if primitive is None:
                return self.make(self.named[avro], arrow, path)
            return Layout(primitive, arrow, path, size_bytes=_FIXED_BYTES.get(primitive))
        kind = avro["type"]
        if kind == "array":
            return Layout(Kind.ARRAY, arrow, path, (self.make(avro["items"], arrow.value_type, f"{path}.element"),))
        if kind == "map":
            key = Layout(Kind.BYTES, pa.string(), f"{path}.key")
            value = self.make(avro["values"], arrow.item_type, f"{path}.value")
            entry = pa.struct([arrow.key_field, arrow.item_field])
            return Layout(Kind.MAP, arrow, path, (Layout(Kind.RECORD, entry, path, (key, value)),))
        self.named[avro["name"]] = avro
        if kind == "enum":
            return Layout(Kind.ENUM, arrow, path, symbols=tuple(avro["symbols"]))
        if kind == "fixed":
            fixed = Kind.DECIMAL_FIXED if pa.types.is_decimal(arrow) else Kind.FIXED
            return Layout(fixed, arrow, path, size_bytes=avro["size"])
        return self._record(avro, arrow, path)

    def _union(self, branches: list[Any], arrow: pa.DataType, path: str) -> Layout:
        numbers = tuple(number for number, branch in enumerate(branches) if branch != "null")
        null_number = branches.index("null") if "null" in branches else -1
        children = tuple(self.make(branches[number], arrow, path) for number in numbers)
        return Layout(Kind.UNION, arrow, path, children, numbers=numbers, null_number=null_number)

    def _record(self, avro: Any, arrow: pa.DataType, path: str) -> Layout:
        children = tuple(
            self.make(child["type"], arrow.field(place).type, f"{path}.{child['name']}".lstrip("."))
            for place, child in enumerate(avro["fields"])
        )
        sizes = [child.size_bytes for child in children]
        size = None if None in sizes else sum(size for size in sizes if size is not None)
        return Layout(Kind.RECORD, arrow, path, children, size_bytes=size)
