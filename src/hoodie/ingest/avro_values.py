"""Avro values: bare records of one schema, or records with a byte 0 and the id of their schema in a registry in front.

The records are decoded one column at a time by `format.avro.rows`. A registry is read by its address
`GET /schemas/ids/{id}`; each schema once in a process.
"""

from __future__ import annotations

import functools
import json
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import HoodieError, SourceError
from hoodie.format.avro.rows.decode import decode_rows
from hoodie.format.schema.arrow_types import offsets_of
from hoodie.format.schema.conform import conform

_PREFIX_BYTES: Final = 5
_SECONDS_MAX: Final = 30
_WHERE: Final = "an Avro value"
_NO_PREFIX: Final = "expected a byte 0 and the id of a schema in front of an Avro record"


@dataclass(slots=True)
class AvroForm:
    """An Avro record in each value.

    `schema`: the columns of the rows. `writer`: the Avro schema of bare records as text; with `registry`, the address
    of a schema registry, the records name their schemas. Columns that a record lacks are null; its columns that the
    rows lack are left out.
    """

    schema: pa.Schema
    writer: str | None = None
    registry: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Make all columns nullable: bad rows have no values."""
        self.schema = pa.schema([child.with_nullable(True) for child in self.schema])

    def parse(self, values: pa.Array) -> pa.StructArray:
        is_value = pc.is_valid(values)
        bodies, writer = self._bodies(values.drop_null())
        rows = self._rows(bodies, writer) if len(bodies) else pa.nulls(0, pa.struct(list(self.schema)))
        places = pc.subtract(pc.cumulative_sum(is_value.cast(pa.int64())), 1)
        return rows.take(pc.if_else(is_value, places, None))

    def _bodies(self, values: pa.Array) -> tuple[pa.Array, str]:
        """Return the records, and their schema, which must be one and the same for all values of the call."""
        if self.registry is None:
            return values, self.writer or ""
        heads = pc.unique(pc.binary_slice(values, 0, _PREFIX_BYTES))
        if len(heads) > 1:
            raise ValueError("the values have several schemas")
        head = heads[0].as_py() if len(heads) else b""
        if len(values) and (len(head) < _PREFIX_BYTES or head[0] != 0):
            raise ValueError(_NO_PREFIX)
        writer = registered_schema(self.registry, int.from_bytes(head[1:], "big")) if len(values) else ""
        return pc.binary_slice(values, _PREFIX_BYTES), writer

    def _rows(self, bodies: pa.Array, writer: str) -> pa.StructArray:
        bounds = offsets_of(bodies)
        table = decode_rows(bodies.buffers()[2] or b"", bounds[:-1], bounds[1:], writer, path=_WHERE)
        found = {*table.column_names}
        try:
            chosen = conform(table.select([name for name in self.schema.names if name in found]), self.schema)
        except HoodieError as error:
            raise ValueError(str(error)) from error
        rows: pa.StructArray = chosen.to_struct_array().combine_chunks()
        return rows


def registered_id(value: bytes) -> int:
    """Return the id of the schema in front of a record. Raises: SourceError if there is none."""
    if len(value) < _PREFIX_BYTES or value[0] != 0:
        raise SourceError(f"{_NO_PREFIX}, found {value[:_PREFIX_BYTES]!r}; without a registry, give `schema`")
    return int.from_bytes(value[1:_PREFIX_BYTES], "big")


@functools.cache
def registered_schema(registry: str, number: int) -> str:
    """Return the Avro schema with this id in a registry, as text.

    Raises: SourceError if the registry does not answer within 30 seconds, or lacks the schema.
    """
    address = f"{registry.rstrip('/')}/schemas/ids/{number}"
    parts = urllib.parse.urlsplit(address)
    shown = parts.netloc.rpartition("@")[2] + parts.path
    if parts.scheme not in ("http", "https"):
        raise SourceError(f"registry: expected an address of http or https, found {shown!r}")
    asked = urllib.request.Request(f"{parts.scheme}://{shown}")
    if parts.username:
        login = f"{parts.username}:{parts.password or ''}"
        # No other host gets it: a redirect goes without it.
        asked.add_unredirected_header(
            "Authorization", f"Basic {b64encode(urllib.parse.unquote(login).encode()).decode()}"
        )
    try:
        with urllib.request.urlopen(asked, timeout=_SECONDS_MAX) as answer:
            text = json.load(answer)["schema"]
    except (urllib.error.URLError, OSError, ValueError, KeyError, TypeError) as error:
        raise SourceError(f"schema {number} cannot be read from the registry at {shown}: {error}") from error
    return str(text)
