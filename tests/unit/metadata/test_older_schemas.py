"""Rows of the metadata table that older releases wrote: read with their schemas, and compacted into files of ours."""

from __future__ import annotations

import io
import json
from collections.abc import Collection
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError
from hoodie.files.slices import FileSlice
from hoodie.format.metadata_table.column_stats import StatsRow
from hoodie.format.metadata_table.filter_row import FilterRow
from hoodie.format.metadata_table.metadata_record import metadata_schema
from hoodie.format.metadata_table.record_location import RecordLocation
from hoodie.metadata.kinds.bloom_filters import BloomFiltersKind
from hoodie.metadata.kinds.column_stats import ColumnStatsKind
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.metadata.kinds.record_index import RecordIndexKind
from hoodie.metadata.slice_content import RowBlock, SliceContent

LACKING: dict[str, Collection[str]] = {
    "1.0": ("valueType",),
    "0.15": ("valueType", "isTightBound", "position", "SecondaryIndexMetadata"),
}
STATS = {
    **{name: None for name in ("minValue", "maxValue")},
    **{name: 0 for name in ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")},
    **{"fileName": "f", "columnName": "c", "isDeleted": False},
}
LOCATION = {"partitionName": "p", "fileIdHighBits": -1, "fileIdLowBits": -1, "fileIndex": -1, "fileId": "group"}
ROWS: dict[str, tuple[PartitionKind, str, dict[str, Any]]] = {
    "statistics": (ColumnStatsKind(), "ColumnStatsMetadata", STATS),
    "filters": (
        BloomFiltersKind(),
        "BloomFilterMetadata",
        {"type": "SIMPLE", "timestamp": "7", "bloomFilter": b"text", "isDeleted": False},
    ),
    "locations": (RecordIndexKind(), "recordIndexMetadata", {**LOCATION, "instantTime": 7, "fileIdEncoding": 1}),
}


def schema_without(names: Collection[str]) -> str:
    """`metadata_schema()` without these fields, of the record or of the records in it."""
    schema = json.loads(metadata_schema())
    schema["fields"] = [field for field in schema["fields"] if field["name"] not in names]
    for field in schema["fields"]:
        inner = field["type"][1] if isinstance(field["type"], list) else None
        if isinstance(inner, dict) and "fields" in inner:
            inner["fields"] = [one for one in inner["fields"] if one["name"] not in names]
    return json.dumps(schema)


def encoded(schema_json: str, field: str, content: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(
        out, fastavro.parse_schema(json.loads(schema_json)), {"key": "", "type": 3, field: content}
    )
    return out.getvalue()


def parsed(kind: PartitionKind, value: bytes, schema_json: str) -> object:
    reader: Any = {
        "ColumnStatsMetadata": StatsRow,
        "BloomFilterMetadata": FilterRow,
        "recordIndexMetadata": RecordLocation,
    }[kind.content_field]
    return reader.parse(value, schema_json=schema_json, path="test")


@pytest.mark.parametrize("release", LACKING)
@pytest.mark.parametrize("name", ROWS)
def test_rows_are_read_and_compacted(release: str, name: str) -> None:
    kind, field, content = ROWS[name]
    older, newer = schema_without(LACKING[release]), metadata_schema()
    values = {schema: encoded(schema, field, content) for schema in (older, newer)}
    expected = parsed(kind, values[newer], newer)
    assert parsed(kind, values[older], older) == expected
    blocks = tuple(
        RowBlock(pa.array([key], pa.binary()), pa.array([values[schema]], pa.binary()), schema, time, frozenset())
        for key, schema, time in ((b"a", older, "1"), (b"b", newer, "2"))
    )
    keys, rows = kind.compact(SliceContent(FileSlice("p", "group", "0", None), None, blocks, 2), file_name="f")
    assert keys.to_pylist() == ["a", "b"]
    assert rows.to_pylist() == [values[newer]] * 2


def test_an_unknown_schema_is_no_guess() -> None:
    other = metadata_schema().replace("isTightBound", "isTightest")
    with pytest.raises(CorruptFileError, match="known schemas of ColumnStatsMetadata"):
        StatsRow.parse(b"", schema_json=other, path="test")
