"""An update of a copy-on-write table that reads and writes only some columns gives the rows of one with whole rows."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.table import Table
from tests.support.row_groups import small_row_groups
from tests.support.tables import new_table

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("ts", pa.int64()),
        ("fare", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)
ROWS = pa.table(
    {
        "id": [f"k{number:03}" for number in range(240)],
        "city": ["sf", "nyc", "ä ö"] * 80,
        "ts": [number % 7 for number in range(240)],
        "fare": [None if number % 11 == 0 else number / 4 for number in range(240)],
        "tags": [["a", None], [], None] * 80,
    },
    schema=SCHEMA,
)
PAYLOADS = "org.apache.hudi.common.model"
COMMIT_ORDER: dict[str, Any] = {"ordering": None}
KINDS: dict[str, dict[str, Any]] = {
    "event time": {},
    "commit time": COMMIT_ORDER,
    "simple": {"index": "simple"},
    "global bloom": {"index": "global_bloom"},
    "bucket": {"index": "bucket"},
    "version 6": {"index": "simple", "table_version": 6},
    "version 6, latest": {
        "index": "simple",
        "table_version": 6,
        "properties": {"hoodie.datasource.write.payload.class": f"{PAYLOADS}.OverwriteWithLatestAvroPayload"},
    },
    "change streams": {
        "index": "simple",
        "table_version": 8,
        "properties": {"hoodie.datasource.write.payload.class": f"{PAYLOADS}.AWSDmsAvroPayload"},
    },
    "statistics": {"properties": {"hoodie.metadata.index.column.stats.enable": "true"}},
    "change data": {"properties": {"hoodie.table.cdc.enabled": "true"}},
    "no meta fields": {"index": "simple", "properties": {"hoodie.populate.meta.fields": "false"}, **COMMIT_ORDER},
    "no partition columns": {
        "index": "simple",
        "properties": {"hoodie.datasource.write.drop.partition.columns": "true"},
    },
    "automatic keys": {"record_key": None, "index": "simple", **COMMIT_ORDER},
}
UPDATES: list[tuple[dict[str, Any], str | None]] = [
    ({"fare": "fare + ts"}, "ts % 3 = 1"),
    ({"fare": "null", "tags": "null"}, "city = 'nyc' AND fare > 20"),
    ({"ts": "ts + 100"}, "id < 'k120'"),
    ({"fare": 0.5}, None),
    ({"fare": "fare"}, "id = 'k007'"),
    ({"fare": 1.0}, "id = 'nobody'"),
]


def updated(kind: str, updates: str, grows: bool) -> tuple[pa.Table, list[dict[str, Any]], hoodie.Table]:
    """The rows and the counts after the updates with a value of `hoodie.python.partial.updates`."""
    table = new_table(SCHEMA, **{"partition_by": "city", "ordering": "ts", "type": "cow", **KINDS[kind]})
    table.insert(ROWS)
    if grows:
        table.insert(ROWS.slice(0, 1).set_column(0, "id", pa.array(["z"])).append_column("more", pa.array(["m"])))
    counts = []
    for assignments, where in UPDATES:
        done = table.update(assignments, where, properties={"hoodie.python.partial.updates": updates})
        counts.append({"updated": done.updated, "ignored": done.ignored, "notes": done.notes})
    rows = table.to_arrow([name for name in table.schema.names if not name.startswith("_hoodie")])
    return rows.sort_by("id"), counts, table


@pytest.mark.matrix(keep=12)
@pytest.mark.parametrize("files", ["one row group", "row groups", "other columns"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_rows_are_those_of_whole_rows(kind: str, files: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small, grows = files == "row groups", files == "other columns"
    copied = small_row_groups(monkeypatch, 3000) if small else []
    whole, whole_counts, _ = updated(kind, "never", grows)
    copied.clear()
    part, counts, table = updated(kind, "compatible", grows)
    assert part.equals(whole)
    assert counts == whole_counts
    assert table.verify(full=True).ok
    if small and kind not in {"no meta fields", "no partition columns"}:
        assert any(changed and "tags" not in changed for changed in copied)


def test_records_that_move_get_whole_rows() -> None:
    """Other writers choose at each write whether records move, and leave records where their columns do not lead."""
    option = "hoodie.simple.index.update.partition.path"
    table = new_table(SCHEMA, partition_by="city", type="cow", index="global_simple", properties={option: "false"})
    table.upsert(ROWS.slice(0, 3))
    table.upsert(ROWS.slice(0, 1).set_column(1, "city", pa.array(["tokyo"])))
    store = table._context.state.store
    path = ".hoodie/hoodie.properties"
    store.replace(path, re.sub(rb"(?m)^(hoodie.table.checksum|%s)=.*$" % option.encode(), b"", store.read(path)))
    table = Table(store)
    assert table.update({"fare": 7.0}, "id = 'k000'").updated == 1
    row = {"id": "k000", "city": "tokyo", "tags": ["a", None], "fare": 7.0}
    assert table.to_arrow([*row]).sort_by("id").to_pylist()[0] == row
