"""CDC data blocks: what a rewrite of a base file changed, for readers of change data (docs/format/table.md §4.8).

The rows have the operation, and by the supplemental logging mode the record key, the commit time and the images.
"""

from __future__ import annotations

import json
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from hoodie.errors import UnsupportedError
from hoodie.format.avro.schema import META_FIELDS, OPERATION_FIELD, avro_to_arrow, schema_text
from hoodie.format.log.data_block import DataFormat, data_block
from hoodie.format.log.log_block import BlockType, LogBlock


class CdcMode(StrEnum):
    """What is logged of a change: `hoodie.table.cdc.supplemental.logging.mode`."""

    OP_KEY_ONLY = "OP_KEY_ONLY"
    DATA_BEFORE = "DATA_BEFORE"
    DATA_BEFORE_AFTER = "DATA_BEFORE_AFTER"

    @classmethod
    def of(cls, text: str) -> CdcMode:
        """Return the mode of a table property. Raises: UnsupportedError for an unknown mode."""
        try:
            return cls(text.upper())
        except ValueError as error:
            raise UnsupportedError(f"unknown CDC logging mode {text!r}: expected one of {', '.join(cls)}") from error


class CdcOperation(StrEnum):
    """The operation of a change, as it is stored."""

    INSERT = "i"
    UPDATE = "u"
    DELETE = "d"


_TEXT: Final = ["null", "string"]


@lru_cache(maxsize=64)
def cdc_avro_schema(table_avro: str, mode: CdcMode) -> str:
    """Return the Avro schema of the blocks, from the table's Avro schema; meta fields are left out of the images."""
    if mode is CdcMode.OP_KEY_ONLY:
        fields = [{"name": name, "type": ["string", "null"]} for name in ("op", "record_key")]
        return schema_text({"type": "record", "name": "Record", "fields": fields})
    record = json.loads(table_avro)
    left_out = {*META_FIELDS, OPERATION_FIELD}
    image = record | {"fields": [field for field in record["fields"] if field["name"] not in left_out]}
    namespace = record.get("namespace")
    name = record["name"] if "." in record["name"] or not namespace else f"{namespace}.{record['name']}"
    before, after = _field("before", ["null", image]), _field("after", ["null", name])
    middle = "ts_ms" if mode is CdcMode.DATA_BEFORE_AFTER else "record_key"
    head = [_field("op", _TEXT), _field(middle, _TEXT), before]
    fields = [*head, after] if mode is CdcMode.DATA_BEFORE_AFTER else head
    where = {} if namespace is None else {"namespace": namespace}
    return schema_text({"type": "record", "name": "CDC", **where, "doc": "", "fields": fields})


def cdc_block(
    operations: pa.Array,
    keys: pa.Array,
    before: pa.StructArray,
    after: pa.StructArray,
    *,
    instant_time: str,
    avro_schema: str,
) -> LogBlock:
    """Build a block of changes; the columns that the schema does not have are left out. Memory: the encoded rows.

    Raises: SchemaMismatchError if the images do not fit the schema.
    """
    columns = {
        "op": operations,
        "record_key": keys,
        "ts_ms": pa.repeat(pa.scalar(instant_time), len(operations)),
        "before": before,
        "after": after,
    }
    names = avro_to_arrow(avro_schema).names
    rows = pa.table({name: columns[name] for name in names})
    block = data_block(rows, instant_time=instant_time, avro_schema=avro_schema, data_format=DataFormat.AVRO)
    return replace(block, block_type=BlockType.CDC_DATA)


def _field(name: str, kind: list[Any]) -> dict[str, Any]:
    return {"name": name, "type": kind, "doc": "", "default": None}
