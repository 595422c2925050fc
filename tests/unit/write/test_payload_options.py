"""The payload class among the options of a write, as in scripts for JVM Hudi: created, repeated, or its only place."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine import ArrowDataset
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys as keys
from hoodie.storage import MemoryStore
from hoodie.table.save import Save
from tests.support.tables import TYPES, made_once, new_table, table_of, values_of

OPTION = "hoodie.datasource.write.payload.class"
MODEL = "org.apache.hudi.common.model."
DMS, MIXES, BY_TIME, LATEST = (
    f"{MODEL}{name}Payload"
    for name in ("AWSDmsAvro", "PartialUpdateAvro", "DefaultHoodieRecord", "OverwriteWithLatestAvro")
)
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("Op", pa.string())])
LATE = {DMS: "late", LATEST: "late", BY_TIME: "new", MIXES: "new"}
"""What a late row does to the column `v` of a row with the value `new`."""
KINDS = [
    (version, TYPES[(row + column) % 2], payload)
    for row, version in enumerate((6, 8, 9))
    for column, payload in enumerate(LATE)
]
"""Each payload class in each version, and each of both in each type of table."""


def rows(ts: int, v: str | None, op: str = "U") -> pa.Table:
    return table_of(SCHEMA, ("a", ts, v, op))


@pytest.mark.parametrize(("version", "kind", "payload"), KINDS)
def test_a_table_is_created_with_it_and_writes_may_repeat_it(version: int, kind: str, payload: str) -> None:
    asked = {OPTION: payload}
    table = new_table(SCHEMA, ordering="ts", type=kind, table_version=version, properties=asked)
    table.upsert(rows(5, "new"), properties=asked)
    table.upsert(rows(1, "late"), properties={keys.PAYLOAD_CLASS: payload})
    assert values_of(table, "v") == [(LATE[payload],)]
    table.upsert(rows(9, "gone", "D"))
    assert values_of(table, "v") == ([] if payload == DMS else [("gone",)])
    with pytest.raises(InvalidConfigError, match=r"payload\.class is fixed when the table is created"):
        table.upsert(rows(9, "x"), properties={OPTION: MIXES if payload != MIXES else DMS})
    same = {"record_key": "id", "type": kind, "table_version": version, "properties": asked}
    assert hoodie.create(table.path, SCHEMA, exist_ok=True, **same).path == table.path  # type: ignore[arg-type]


@made_once
def without_payload() -> hoodie.Table:
    """A copy-on-write table as Hudi 0.15 leaves it."""
    table = new_table(SCHEMA, ordering="ts", table_version=6)
    update_table_config(table.view().store, dict.fromkeys((keys.PAYLOAD_CLASS, keys.MERGE_STRATEGY_ID)))
    return hoodie.open(table.path)


@pytest.mark.parametrize("payload", LATE)
def test_it_decides_in_each_write_if_the_table_stores_none(payload: str) -> None:
    """Without the option, the ordering column decides."""
    table, asked = without_payload(), {OPTION: payload}
    table.upsert(rows(5, "new"))
    assert table.upsert(rows(1, "late")).ignored == 1
    table.upsert(rows(1, "late"), properties=asked)
    assert values_of(table, "v") == [(LATE[payload],)]
    table.upsert(rows(9, None, "D"), properties=asked)
    assert values_of(table, "v") == {DMS: [], MIXES: [("new",)], BY_TIME: [(None,)], LATEST: [(None,)]}[payload]
    assert keys.PAYLOAD_CLASS not in table.view().config.raw
    if payload == MIXES:
        with pytest.raises(UnsupportedError, match="so a column cannot be set to null"):
            table.update({"v": "'x'"}, properties=asked)
    with pytest.raises(InvalidConfigError, match=r"payload\.class is fixed when the table is created"):
        table.upsert(rows(1, "x"), properties={keys.PAYLOAD_CLASS: "a.b.Own"})


@pytest.mark.parametrize("payload", LATE)
def test_the_data_source_takes_it_in_every_save(payload: str) -> None:
    given = {"record_key": "id", "ordering": "ts", OPTION: payload}
    for target in (without_payload().view().store, MemoryStore()):
        save = Save.of(given, overwrites=False, defaults={})
        found = save.checked(target, SCHEMA, ArrowDataset(SCHEMA.empty_table()))
        assert found.operation == "upsert"
        assert found.properties.keys() & {keys.MERGE_MODE, keys.PAYLOAD_CLASS}


@pytest.mark.parametrize(("name", "left"), [("DefaultHoodieRecord", [("new",)]), ("EventTimeAvro", [])])
def test_a_late_delete_deletes_with_one_class_of_version_6(name: str, left: list[tuple[str]]) -> None:
    table = without_payload()
    table.upsert(rows(5, "new"))
    late = rows(1, None).append_column("_hoodie_is_deleted", pa.array([True]))
    table.upsert(late, properties={OPTION: f"{MODEL}{name}Payload"})
    assert values_of(table, "v") == left
