"""The payload class among the options of a write, as in scripts for JVM Hudi: created, repeated, or its only place."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine import ArrowDataset
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys as keys
from hoodie.storage import MemoryStore
from hoodie.table.save import Save

OPTION = "hoodie.datasource.write.payload.class"
MODEL = "org.apache.hudi.common.model."
DMS, MIXES, BY_TIME, LATEST = (
    f"{MODEL}{name}Payload"
    for name in ("AWSDmsAvro", "PartialUpdateAvro", "DefaultHoodieRecord", "OverwriteWithLatestAvro")
)
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("Op", pa.string())])
LATE = {DMS: "late", LATEST: "late", BY_TIME: "new", MIXES: "new"}
"""What a late row does to the column `v` of a row with the value `new`."""


def rows(ts: int, v: str | None, op: str = "U") -> pa.Table:
    return pa.table([["a"], [ts], [v], [op]], schema=SCHEMA)


def values(table: hoodie.Table) -> list[str | None]:
    return [row["v"] for row in table.to_arrow(["v"]).to_pylist()]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("payload", LATE)
def test_a_table_is_created_with_it_and_writes_may_repeat_it(
    tmp_path: Path, version: int, kind: str, payload: str
) -> None:
    asked = {OPTION: payload}
    table = hoodie.create(
        tmp_path, SCHEMA, record_key="id", ordering="ts", type=kind, table_version=version, properties=asked
    )
    table.upsert(rows(5, "new"), properties=asked)
    table.upsert(rows(1, "late"), properties={keys.PAYLOAD_CLASS: payload})
    assert values(table) == [LATE[payload]]
    table.upsert(rows(9, "gone", "D"))
    assert values(table) == ([] if payload == DMS else ["gone"])
    other = MIXES if payload != MIXES else DMS
    with pytest.raises(InvalidConfigError, match=r"payload\.class is fixed when the table is created"):
        table.upsert(rows(9, "x"), properties={OPTION: other})
    hoodie.create(tmp_path, SCHEMA, record_key="id", type=kind, table_version=version, properties=asked, exist_ok=True)


@pytest.mark.parametrize("payload", LATE)
def test_it_decides_in_each_write_if_the_table_stores_none(tmp_path: Path, payload: str) -> None:
    """As Hudi 0.15 leaves a copy-on-write table. Without the option, the ordering column decides."""
    table = without_payload(tmp_path)
    table.upsert(rows(5, "new"))
    assert table.upsert(rows(1, "late")).ignored == 1
    table.upsert(rows(1, "late"), properties={OPTION: payload})
    assert values(table) == [LATE[payload]]
    table.upsert(rows(9, None, "D"), properties={OPTION: payload})
    assert values(table) == {DMS: [], MIXES: ["new"], BY_TIME: [None], LATEST: [None]}[payload]
    assert keys.PAYLOAD_CLASS not in table.view().config.raw
    if payload == MIXES:
        with pytest.raises(UnsupportedError, match="so a column cannot be set to null"):
            table.update({"v": "'x'"}, properties={OPTION: payload})


@pytest.mark.parametrize("payload", LATE)
def test_the_data_source_takes_it_in_every_save(tmp_path: Path, payload: str) -> None:
    given = {"record_key": "id", "ordering": "ts", OPTION: payload}
    store = without_payload(tmp_path).view().store
    for target in (store, MemoryStore()):
        save = Save.of(given, overwrites=False, defaults={})
        found = save.checked(target, SCHEMA, ArrowDataset(SCHEMA.empty_table()))
        assert found.operation == "upsert"
        assert found.properties.keys() & {keys.MERGE_MODE, keys.PAYLOAD_CLASS}


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"'a\.b\.Own' exists only in JVM Hudi"):
        hoodie.create(tmp_path, SCHEMA, record_key="id", properties={keys.PAYLOAD_CLASS: "a.b.Own"})
    with pytest.raises(InvalidConfigError, match=r"are different merge rules: omit all but one"):
        hoodie.create(
            tmp_path, SCHEMA, record_key="id", ordering="ts", merge_mode="event_time", properties={OPTION: LATEST}
        )
    with pytest.raises(UnsupportedError, match="moves records between partitions"):
        hoodie.create(
            tmp_path,
            SCHEMA,
            record_key="id",
            ordering="ts",
            partition_by="v",
            index="record",
            properties={OPTION: MIXES, "hoodie.record.index.update.partition.path": "true"},
        )
    table = without_payload(tmp_path)
    with pytest.raises(InvalidConfigError, match=r"payload\.class is fixed when the table is created"):
        table.upsert(rows(1, "x"), properties={keys.PAYLOAD_CLASS: "a.b.Own"})


def without_payload(path: Path) -> hoodie.Table:
    table = hoodie.create(path, SCHEMA, record_key="id", ordering="ts", table_version=6)
    update_table_config(table.view().store, dict.fromkeys((keys.PAYLOAD_CLASS, keys.MERGE_STRATEGY_ID)))
    return hoodie.open(path)


def test_a_late_delete_deletes_with_one_class_of_version_6(tmp_path: Path) -> None:
    marked = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    late = rows(1, None).append_column(marked.field(4), pa.array([True]))
    for name, left in (("DefaultHoodieRecord", ["new"]), ("EventTimeAvro", [])):
        table = without_payload(tmp_path / name)
        table.upsert(rows(5, "new"))
        table.upsert(late, properties={OPTION: f"{MODEL}{name}Payload"})
        assert values(table) == left
