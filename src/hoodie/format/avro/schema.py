"""Convert Avro schema JSON to Arrow schemas and back, with the names of the JVM's Spark-to-Avro conversion.

On-disk format: docs/format/table.md §3.6 and §3.7. tests/golden/types checks the names byte for byte.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import SchemaMismatchError, UnsupportedError
from hoodie.format.avro.safe_schema import parse_schema

META_FIELDS: Final = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""The five meta columns, in order. They are the first columns of every base file."""

OPERATION_FIELD: Final = "_hoodie_operation"
"""The sixth meta column, in tables with `hoodie.allow.operation.metadata.field`."""
DOC: Final = b"doc"
"""Key of the metadata of an Arrow field that has its comment, as in PyIceberg."""

_PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL: Final[Mapping[tuple[str, str], pa.DataType]] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_NAME_OF_PRIMITIVE: Final = {arrow: name for name, arrow in _PRIMITIVES.items()}
_NAME_OF_LOGICAL: Final = {arrow: name for name, arrow in _LOGICAL.items()}


def avro_record_name(table_name: str) -> tuple[str, str]:
    """Return the record name and namespace of a table's Avro schema; the table name is cleaned as in the JVM."""
    clean = re.sub(r"\A[^A-Za-z_]", "__", table_name)
    clean = re.sub(r"[^A-Za-z0-9_]", "__", clean)
    return f"{clean}_record", f"hoodie.{clean}"


def minimal_decimal_bytes(precision: int) -> int:
    """Return how many bytes a two's complement number needs to hold `precision` decimal digits."""
    return (int(10**precision - 1).bit_length() + 8) // 8


def arrow_to_avro(schema: pa.Schema, *, table_name: str) -> str:
    """Return the Avro JSON text that the JVM stores for this schema in a commit's `extraMetadata.schema`.

    Nullable fields become `["null", T]` with default null. The schema must have the types that `normalise` returns. It
    may have meta fields; they get the empty doc that they have in the JVM's Parquet footers.

    Raises:
        SchemaMismatchError: a column's name is not an Avro name.
        UnsupportedError: a type has no Avro form; the error names the field.
    """
    name, namespace = avro_record_name(table_name)
    refused = [path for child in schema for path in _no_names(child, child.name)]
    if refused:
        raise SchemaMismatchError(
            f"column{'s' * (len(refused) > 1)} {', '.join(map(repr, refused))}: Hudi stores schemas as Avro; an Avro "
            "name has only letters, digits and _ and does not begin with a digit; rename "
            f"{'the columns' if len(refused) > 1 else 'the column'}"
        )
    record = {"type": "record", "name": name, "namespace": namespace}
    record["fields"] = [_avro_field(child, f"{namespace}.{name}", namespace, "") for child in schema]  # type: ignore[assignment]
    return schema_text(record)


def schema_text(schema: Mapping[str, Any]) -> str:
    """Return a schema as the text that is stored: JSON without blanks."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def _avro_field(child: pa.Field, namespace: str, enclosing: str, parent: str) -> dict[str, Any]:
    path = f"{parent}{child.name}"
    avro = _avro_type(child.type, nullable=child.nullable, place=_Place(child.name, namespace, enclosing, path))
    out: dict[str, Any] = {"name": child.name, "type": avro}
    if not parent and child.name in (*META_FIELDS, OPERATION_FIELD):
        out["doc"] = ""
    elif child.metadata and DOC in child.metadata:
        out["doc"] = child.metadata[DOC].decode()
    if child.nullable:
        out["default"] = None
    return out


def _no_names(child: pa.Field, path: str) -> Iterator[str]:
    """Yield the columns and fields at and below one whose names Avro forbids."""
    if not _is_avro_name(child.name):
        yield path
    yield from _no_names_below(child.type, path)


def _no_names_below(data_type: pa.DataType, path: str) -> Iterator[str]:
    if pa.types.is_struct(data_type):
        for child in data_type.fields:
            yield from _no_names(child, f"{path}.{child.name}")
    elif pa.types.is_map(data_type):
        yield from _no_names_below(data_type.item_type, path)
    elif pa.types.is_list(data_type):
        yield from _no_names_below(data_type.value_type, path)


def _is_avro_name(name: str) -> bool:
    """Return whether Java's Avro accepts the name: it accepts letters of any script, but no character beyond U+FFFF."""
    kinds = ["L" if char == "_" else "other" if char > "\uffff" else unicodedata.category(char) for char in name]
    return bool(kinds) and kinds[0].startswith("L") and all(kind.startswith("L") or kind == "Nd" for kind in kinds)


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a type. Its Avro name depends on the nearest field, its namespace on the enclosing records."""

    name: str
    namespace: str
    enclosing: str
    path: str


def _avro_type(data_type: pa.DataType, *, nullable: bool, place: _Place) -> Any:
    avro = _not_null_avro_type(data_type, place)
    return ["null", avro] if nullable else avro


def _not_null_avro_type(data_type: pa.DataType, place: _Place) -> Any:
    if data_type in _NAME_OF_PRIMITIVE:
        return _NAME_OF_PRIMITIVE[data_type]
    if data_type in _NAME_OF_LOGICAL:
        base, logical = _NAME_OF_LOGICAL[data_type]
        return {"type": base, "logicalType": logical}
    if pa.types.is_decimal128(data_type):
        size = minimal_decimal_bytes(data_type.precision)
        decimal = {"logicalType": "decimal", "precision": data_type.precision, "scale": data_type.scale}
        return _fixed(size, place) | decimal
    if pa.types.is_fixed_size_binary(data_type):
        return _fixed(data_type.byte_width, place)
    if pa.types.is_list(data_type):
        items = data_type.value_field
        return {"type": "array", "items": _avro_type(items.type, nullable=items.nullable, place=place)}
    if pa.types.is_map(data_type) and pa.types.is_string(data_type.key_type):
        values = data_type.item_field
        return {"type": "map", "values": _avro_type(values.type, nullable=values.nullable, place=place)}
    if pa.types.is_struct(data_type) and data_type.num_fields:
        return _record(data_type, place)
    raise UnsupportedError(f"column {place.path!r}: Hudi has no type for Arrow's {data_type}; cast the column")


def _fixed(size: int, place: _Place) -> dict[str, Any]:
    return {"type": "fixed", "name": "fixed", "namespace": f"{place.namespace}.{place.name}", "size": size}


def _record(data_type: pa.StructType, place: _Place) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "record", "name": place.name}
    if place.namespace != place.enclosing:
        out["namespace"] = place.namespace
    inner = f"{place.namespace}.{place.name}"
    out["fields"] = [_avro_field(child, inner, place.namespace, f"{place.path}.") for child in data_type.fields]
    return out


@lru_cache(maxsize=64)
def avro_to_arrow(schema: str, *, path: str = "the table's schema") -> pa.Schema:
    """Return the Arrow schema of the JSON text of an Avro record schema; each text is parsed once.

    Enums and uuids become strings, `fixed` becomes fixed size binary, decimals decimal128 (over bytes and over fixed).
    Unions of int and long, or of float and double, become the wider type, as in Spark. Comments become metadata of the
    fields (`DOC`). `path` is the file that has the schema.

    Raises:
        CorruptFileError: the text is not the JSON of an Avro schema.
        UnsupportedError: the schema is not a record, has an unknown type, a recursive type, or a union of two or more
            types besides null, or exceeds the limits of `safe_schema`.
    """
    parsed = parse_schema(schema, path=path)
    if not isinstance(parsed, Mapping) or parsed.get("type") != "record":
        raise UnsupportedError(f"expected an Avro record as table schema, found {str(parsed)[:100]}")
    struct, _ = _Reader().read(parsed, namespace="", path="")
    return pa.schema(struct.fields)


@dataclass(slots=True)
class _Reader:
    """Converts Avro types of a checked schema to Arrow types; stores the named types that it has read."""

    named: dict[str, pa.DataType] = field(default_factory=dict)

    def read(self, avro: Any, *, namespace: str, path: str) -> tuple[pa.DataType, bool]:
        """Return the Arrow type and whether null is allowed."""
        if isinstance(avro, list):
            return self._union(avro, namespace, path)
        if isinstance(avro, str):
            return _PRIMITIVES.get(avro) or self._reference(avro, namespace, path), False
        kind = avro.get("type")
        if isinstance(kind, dict | list):
            return self.read(kind, namespace=namespace, path=path)
        if kind == "array":
            data_type, nullable = self.read(avro["items"], namespace=namespace, path=f"{path}.element")
            return pa.list_(pa.field("element", data_type, nullable=nullable)), False
        if kind == "map":
            data_type, nullable = self.read(avro["values"], namespace=namespace, path=f"{path}.value")
            return pa.map_(pa.string(), pa.field("value", data_type, nullable=nullable)), False
        if kind in ("record", "error", "fixed", "enum"):
            return self._named(kind, avro, namespace, path), False
        if avro.get("logicalType") == "decimal":
            return _decimal(avro, path), False
        logical = _LOGICAL.get((kind, avro.get("logicalType", "")))
        return logical or _PRIMITIVES.get(kind) or self._reference(kind, namespace, path), False

    def _union(self, branches: list[Any], namespace: str, path: str) -> tuple[pa.DataType, bool]:
        others = [branch for branch in branches if branch != "null"]
        if set(map(str, others)) in ({"int", "long"}, {"float", "double"}):
            others = [max(others, key=("int", "float", "long", "double").index)]
        if len(others) != 1:
            raise UnsupportedError(f"column {path!r}: a union of one type and null expected, found {branches}")
        data_type, _ = self.read(others[0], namespace=namespace, path=path)
        return data_type, len(others) < len(branches) and "null" in branches

    def _named(self, kind: str, avro: Mapping[str, Any], namespace: str, path: str) -> pa.DataType:
        name = avro["name"]
        own = avro.get("namespace")
        space = name.rpartition(".")[0] if "." in name else namespace if own is None else own
        full_name = name if "." in name else f"{space}.{name}".lstrip(".")
        data_type: pa.DataType
        if kind == "enum":
            data_type = pa.string()
        elif kind == "fixed":
            data_type = _decimal(avro, path) if avro.get("logicalType") == "decimal" else pa.binary(avro["size"])
        else:
            data_type = pa.struct([self._field(child, space, path) for child in avro["fields"]])
        self.named[full_name] = data_type
        return data_type

    def _field(self, avro: Mapping[str, Any], namespace: str, parent: str) -> pa.Field:
        path = f"{parent}.{avro['name']}".lstrip(".")
        data_type, nullable = self.read(avro["type"], namespace=namespace, path=path)
        doc = avro.get("doc")
        metadata = {DOC: doc.encode()} if isinstance(doc, str) and doc else None
        return pa.field(avro["name"], data_type, nullable=nullable, metadata=metadata)

    def _reference(self, name: str, namespace: str, path: str) -> pa.DataType:
        full_name = name if "." in name else f"{namespace}.{name}".lstrip(".")
        found = self.named.get(full_name) or self.named.get(name)
        if found is None:
            raise UnsupportedError(f"column {path!r}: {name!r} is not a known Avro type")
        return found


def _decimal(avro: Mapping[str, Any], path: str) -> pa.DataType:
    precision, scale = avro.get("precision"), avro.get("scale", 0)
    if type(precision) is not int or not 1 <= precision <= 38:
        raise UnsupportedError(f"column {path!r}: a decimal precision of 1 to 38 expected, found {str(precision)[:50]}")
    if type(scale) is not int or not 0 <= scale <= precision:
        found = str(scale)[:50]
        raise UnsupportedError(f"column {path!r}: a decimal scale of 0 to {precision} expected, found {found}")
    return pa.decimal128(precision, scale)
