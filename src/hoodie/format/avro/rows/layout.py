"""The layout of a row's fields in its Avro bytes: a tree that is built once for each schema text.

Avro 1.11 specification, "Schema Declaration" and "Names". The Arrow types are the types that `avro_to_arrow` returns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import UnsupportedError
from hoodie.format.avro.safe_schema import parse_schema
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
    map (a record of key and value). `names` are the field names of a record or the symbols of an enum. For a union,
    `numbers` are the branch numbers of `children`; `null_number` is the branch number of null, or -1. `size_bytes` is
    the size of every value, or None if the sizes differ.
    """

    kind: Kind
    arrow: pa.DataType
    path: str
    children: tuple[Layout, ...] = ()
    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    null_number: int = -1
    size_bytes: int | None = None


@lru_cache(maxsize=64)
def arrow_schema(avro_schema: str) -> pa.Schema:
    """Return the Arrow schema of an Avro record's JSON text; each text is parsed once.

    Raises: UnsupportedError as `avro_to_arrow`.
    """
    return avro_to_arrow(avro_schema)


@lru_cache(maxsize=64)
def row_layout(avro_schema: str) -> Layout:
    """Return the layout of an Avro record's JSON text; the layout of each text is built once.

    Raises: UnsupportedError if a type has no Arrow form, a record has no fields, or list items have no bytes.
    """
    parsed = parse_schema(avro_schema, path="the table's schema")
    return _Maker().make(parsed, pa.struct(list(arrow_schema(avro_schema))), "", "")


@dataclass(slots=True)
class _Maker:
    """Builds layouts from Avro JSON and the matching Arrow types; stores the named types that it has read."""

    named: dict[str, tuple[Any, str]] = field(default_factory=dict)

    def make(self, avro: Any, arrow: pa.DataType, namespace: str, path: str) -> Layout:
        if isinstance(avro, list):
            return self._union(avro, arrow, namespace, path)
        if isinstance(avro, str):
            if avro in _PRIMITIVES:
                primitive = _PRIMITIVES[avro]
                return Layout(primitive, arrow, path, size_bytes=_FIXED_BYTES.get(primitive))
            return self._reference(avro, arrow, namespace, path)
        kind = avro["type"]
        if isinstance(kind, dict | list):
            return self.make(kind, arrow, namespace, path)
        if kind == "array":
            item = self.make(avro["items"], arrow.value_type, namespace, f"{path}.element")
            return Layout(Kind.ARRAY, arrow, path, (self._visible(item),))
        if kind == "map":
            key = Layout(Kind.BYTES, pa.string(), f"{path}.key")
            value = self.make(avro["values"], arrow.item_type, namespace, f"{path}.value")
            entry = pa.struct([arrow.key_field, arrow.item_field])
            return Layout(Kind.MAP, arrow, path, (Layout(Kind.RECORD, entry, path, (key, value)),))
        if kind in ("record", "error", "fixed", "enum"):
            return self._definition(kind, avro, arrow, namespace, path)
        if kind == "bytes" and avro.get("logicalType") == "decimal":
            return Layout(Kind.DECIMAL_BYTES, arrow, path)
        return self.make(kind, arrow, namespace, path)

    def _visible(self, item: Layout) -> Layout:
        """Refuse items of zero bytes: a few bytes of a file could contain any number of them."""
        if item.size_bytes == 0:
            raise UnsupportedError(f"column {item.path!r}: list items of at least one byte expected, found zero bytes")
        return item

    def _union(self, branches: list[Any], arrow: pa.DataType, namespace: str, path: str) -> Layout:
        numbers = tuple(number for number, branch in enumerate(branches) if branch != "null")
        null_number = branches.index("null") if "null" in branches else -1
        children = tuple(self.make(branches[number], arrow, namespace, path) for number in numbers)
        return Layout(Kind.UNION, arrow, path, children, numbers=numbers, null_number=null_number)

    def _definition(self, kind: str, avro: Any, arrow: pa.DataType, namespace: str, path: str) -> Layout:
        name = avro["name"]
        own = avro.get("namespace")
        space = name.rpartition(".")[0] if "." in name else namespace if own is None else own
        full_name = name if "." in name else f"{space}.{name}".lstrip(".")
        self.named.setdefault(full_name, (avro, namespace))
        if kind == "enum":
            return Layout(Kind.ENUM, arrow, path, names=tuple(avro["symbols"]))
        if kind == "fixed":
            fixed = Kind.DECIMAL_FIXED if pa.types.is_decimal(arrow) else Kind.FIXED
            return Layout(fixed, arrow, path, size_bytes=avro["size"])
        if not avro["fields"]:
            raise UnsupportedError(f"column {path!r}: a record with at least one field expected, found no fields")
        children = tuple(
            self.make(child["type"], arrow.field(place).type, space, f"{path}.{child['name']}".lstrip("."))
            for place, child in enumerate(avro["fields"])
        )
        sizes = [child.size_bytes for child in children]
        size = None if None in sizes else sum(size for size in sizes if size is not None)
        names = tuple(child["name"] for child in avro["fields"])
        return Layout(Kind.RECORD, arrow, path, children, names=names, size_bytes=size)

    def _reference(self, name: str, arrow: pa.DataType, namespace: str, path: str) -> Layout:
        full_name = name if "." in name else f"{namespace}.{name}".lstrip(".")
        avro, space = self.named.get(full_name) or self.named[name]
        return self.make(avro, arrow, space, path)
