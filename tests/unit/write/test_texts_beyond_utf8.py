"""Texts that UTF-8 cannot hold, and bytes that are no UTF-8, are refused wherever they come in; no trace is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

import hoodie
from hoodie.storage import MemoryStore
from tests.support import tables
from tests.support.odd_types import text_of_bytes
from tests.unit.write.tables import untouched

HALF = "a\ud800b"
ROWS = pa.table({"id": ["a", "b"], "p": ["x", "y"], "x": ["1", "2"]})
MATCH = "t.id = s.id AND t.p = s.p"


def new_table() -> hoodie.Table:
    return tables.new_table(ROWS.schema, ROWS, partition_by="p")


@contextmanager
def refused(table: hoodie.Table, *words: str) -> Iterator[None]:
    """An error of ours with all of these words, and unchanged files."""
    with untouched(table, None) as caught:
        yield
    assert [text for text in words if text not in str(caught.value)] == []


WRITES: dict[str, Callable[..., Any]] = {
    "upsert": lambda table, data, **options: table.upsert(data, **options),
    "insert": lambda table, data, **options: table.insert(data, **options),
    "bulk_insert": lambda table, data, **options: table.bulk_insert(data, **options),
    "insert_overwrite": lambda table, data, **options: table.insert_overwrite(data, **options),
    "partial upsert": lambda table, data, **options: table.upsert(data, partial=True, **options),
    "merge": lambda table, data, **options: table.merge(data, MATCH, **options).when_matched_update_all().execute(),
    "delete": lambda table, data, **options: table.delete(data, **options),
}
LOOK_UPS: dict[str, Callable[[hoodie.Table, Any], Any]] = {
    "read_keys": lambda table, keys: table.read_keys(keys),
    "record_locations": lambda table, keys: table.record_locations(keys),
    "filter_exists": lambda table, keys: table.filter_exists(keys),
}


def test_metadata_and_properties_of_writes() -> None:
    table = new_table()
    for write in WRITES.values():
        with refused(table, "extra_metadata", r"a\ud800b"):
            write(table, ROWS, extra_metadata={"k": HALF})
        with refused(table, "properties", r"a\ud800b"):
            write(table, ROWS, properties={HALF: "v"})
    with refused(table, "extra_metadata", r"a\ud800b"):
        table.upsert(ROWS, extra_metadata={HALF: "v"})


def test_users_and_comments_of_savepoints() -> None:
    table = new_table()
    with refused(table, "user", "UTF-8"):
        table.savepoint(user=HALF)
    with refused(table, "comment", "UTF-8"):
        table.savepoint(comment=HALF)
    assert table.savepoints() == ()
    with refused(table, r"a\ud800b"):
        table.savepoint(HALF)


def test_paths_names_and_columns_of_new_tables() -> None:
    table, new = new_table(), MemoryStore().uri("")
    for call in (hoodie.open, hoodie.exists, lambda wrong: hoodie.create(wrong, ROWS.schema, record_key="id")):
        for wrong in (f"/tmp/{HALF}", f"memory://{HALF}", f"s3://bucket/{HALF}"):
            with refused(table, "path", "UTF-8"):
                call(wrong)
    for option in ("name", "record_key", "partition_by", "ordering", "index", "type", "merge_mode", "key_generator"):
        options: dict[str, Any] = {"record_key": "id", option: HALF}
        with refused(table):
            hoodie.create(new, ROWS.schema, **options)
    with refused(table, "properties"):
        hoodie.create(new, ROWS.schema, record_key="id", properties={"hoodie.database.name": HALF})
    for data in ([{"id": 1, HALF: 1}], {"id": [1], HALF: [1]}):
        with refused(table, "column name"):
            hoodie.create(new, data, record_key="id")


def test_conditions_and_expressions() -> None:
    table = new_table()
    where = f"id = '{HALF}'"
    merge = table.merge(ROWS, MATCH)
    calls: list[Callable[[], Any]] = [
        lambda: table.to_arrow(where=where),
        lambda: table.to_arrow(columns=[HALF]),
        lambda: table.to_arrow(as_of=HALF),
        lambda: table.count(where=where),
        lambda: table.delete_where(where),
        lambda: table.update({"x": f"'{HALF}'"}),
        lambda: table.update({HALF: "1"}),
        lambda: table.delete_partitions([HALF]),
        lambda: merge.when_matched_delete(f"s.{where}").execute(),
        lambda: merge.when_matched_update({"x": f"'{HALF}'"}).execute(),
        lambda: merge.when_matched_update({HALF: "1"}).execute(),
        lambda: table.merge(ROWS, f"t.{where}").when_matched_delete().execute(),
        lambda: hoodie.sql(None, f"DELETE FROM t WHERE {where}", tables={"t": table}),
        lambda: hoodie.sql(None, f"CALL create_savepoint(table => 't', user => '{HALF}')", tables={"t": table}),
    ]
    for call in calls:
        with refused(table):
            call()


def test_python_texts_in_data_and_keys() -> None:
    table = new_table()
    row = {"id": "a", "p": "x", "x": "1"}
    for name in row:
        for data in ([row, {**row, name: HALF}], {key: [row[key], HALF if key == name else row[key]] for key in row}):
            for write in WRITES.values():
                if write is not WRITES["delete"]:
                    with refused(table, f"column '{name}', row 1"):
                        write(table, data)
    for call in (*WRITES.values(), *LOOK_UPS.values()):
        with refused(table):
            call(table, [{"id": HALF, "p": "x"}])
    for keys in (HALF, [HALF]):
        for look_up in (table.read_keys, table.record_locations, table.delete):
            with refused(table, "column 'keys', row 0"):
                look_up(keys)


def test_bytes_of_arrow_text() -> None:
    table = new_table()
    wrong = text_of_bytes(b"a", b"caf\xe9")
    for place, name in enumerate(ROWS.column_names):
        rows = ROWS.set_column(place, name, wrong)
        coded = ROWS.set_column(place, name, pa.DictionaryArray.from_arrays(pa.array([0, 1]), wrong))
        for data in (rows, coded, pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())):
            with refused(table, f"column '{name}', row 1", "UTF-8"):
                table.bulk_insert(data)
        for call in (*WRITES.values(), *LOOK_UPS.values()):
            with refused(table, f"column '{name}', row 1", "UTF-8"):
                call(table, rows)
    for look_up in (table.read_keys, table.record_locations, table.delete):
        with refused(table, "column 'keys', row 1", "UTF-8"):
            look_up(wrong)
