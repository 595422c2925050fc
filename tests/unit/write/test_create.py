"""Options of a table: what an existing table may be taken for, and forms of options that creation and writes take."""

from __future__ import annotations

import typing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError, TableExistsError, UnsupportedError
from hoodie.format.table import table_keys as keys
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.records.merging import mergers
from hoodie.storage import MemoryStore
from tests.support import tables
from tests.unit.write.tables import FIRST, NAMED, SCHEMA, new_table, trips, untouched

ONE = trips(("a", 1, 1.0, "sf"))
PROPERTIES = Path(".hoodie/hoodie.properties")
CODEC = "hoodie.parquet.compression.codec"


def test_names_of_options_come_in_any_case() -> None:
    table = new_table(ONE, type="COPY_ON_WRITE", index="Global_Simple", key_generator="Complex")
    assert table.view().config.key_generator is KeyGeneratorType.COMPLEX
    table.upsert(trips(("a", 2, 1.0, "nyc")))
    assert table.to_arrow()["city"].to_pylist() == ["nyc"]


def test_ordering_inside_a_struct_is_refused(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("m", pa.struct([("ts", pa.int64())]))])
    with pytest.raises(UnsupportedError, match=r"m\.ts"):
        hoodie.create(tmp_path, schema, record_key="id", ordering="m.ts")
    table = tables.new_table(schema, path=tmp_path)
    text = (tmp_path / PROPERTIES).read_text().replace("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING")
    (tmp_path / PROPERTIES).write_text(f"{text}\n{keys.ORDERING_FIELDS}=m.ts\n")
    with pytest.raises(UnsupportedError, match=r"m\.ts"):
        table.upsert({"id": ["a"], "m": [{"ts": 1}]})


def test_an_existing_table_is_not_taken_for_another_one() -> None:
    table = new_table(FIRST)
    others: dict[str, dict[str, Any]] = {
        "name": {"name": "another"},
        "record_key": {"record_key": "ts"},
        "partition_by": {"partition_by": "fare"},
        "ordering": {"ordering": "fare"},
        "type": {"type": "merge_on_read"},
        "index": {"index": "global_simple"},
        "merge_mode": {"merge_mode": "commit_time"},
        "key_generator": {"key_generator": "complex"},
        keys.HIVE_STYLE: {"properties": {keys.HIVE_STYLE: "false"}},
        CODEC: {"properties": {CODEC: "gzip"}},
    }
    for name, options in others.items():
        with untouched(table, name, InvalidConfigError):
            hoodie.create(table.path, SCHEMA, **{**NAMED, **options}, exist_ok=True)


def test_an_existing_table_is_not_created_twice_but_opened_by_what_it_is() -> None:
    table = new_table(FIRST)
    with untouched(table, "exist_ok", TableExistsError):
        hoodie.create(table.path, SCHEMA, record_key="id")
    name = table.view().config.name
    same: dict[str, Any] = {**NAMED, "name": name, "merge_mode": "event_time", "properties": {keys.HIVE_STYLE: "TRUE"}}
    assert hoodie.create(table.path, SCHEMA, **same, exist_ok=True).count() == 2
    assert hoodie.create(table.path, SCHEMA, exist_ok=True).count() == 2


def test_the_merge_function_of_an_existing_table_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    def newer(_: pa.Table, found: pa.Table) -> pa.Table:
        return found

    def other(_: pa.Table, found: pa.Table) -> pa.Table:
        return found

    path = hoodie.create(MemoryStore().uri(""), SCHEMA, record_key="id", merge_mode=newer).path
    monkeypatch.setattr(mergers, "_REGISTERED", {})
    table = hoodie.create(path, SCHEMA, record_key="id", merge_mode=newer, exist_ok=True)
    assert table.upsert(ONE).inserted == 1
    with pytest.raises(InvalidConfigError, match="merge_mode"):
        hoodie.create(path, SCHEMA, merge_mode=other, exist_ok=True)


def _merger_of(value: float, name: str) -> Any:
    """A Python merger that stores this fare: a function of its own for each call."""

    def merge(_: pa.Table, newer: pa.Table) -> pa.Table:
        return newer.set_column(2, "fare", pa.array([value] * newer.num_rows))

    merge.__name__ = name
    return merge


def test_two_merge_functions_of_one_name_do_not_replace_each_other() -> None:
    first, second = _merger_of(1.5, "of_one_name"), _merger_of(2.5, "of_one_name")
    options: dict[str, Any] = {"record_key": "id", "index": "simple"}
    table = hoodie.create(MemoryStore().uri(""), SCHEMA, **options, merge_mode=first, spark=False)
    table.upsert(ONE)
    store = MemoryStore()
    for path, exist_ok in ((store.uri(""), False), (table.path, False), (table.path, True)):
        with untouched(table, "'of_one_name' is another function", InvalidConfigError):
            hoodie.create(path, SCHEMA, **options, merge_mode=second, exist_ok=exist_ok)
    assert not hoodie.exists(store.uri(""))
    table.upsert(ONE)
    assert table.to_arrow()["fare"].to_pylist() == [1.5]
    hoodie.register_merger("of_one_name", second)
    table.upsert(ONE)
    assert table.to_arrow()["fare"].to_pylist() == [2.5]


def test_a_refused_call_registers_no_merge_function() -> None:
    table = new_table(ONE, ordering=None)
    options: dict[str, Any] = {**NAMED, "ordering": None, "merge_mode": _merger_of(1.5, "of_refused_calls")}
    for wrong in ({}, {"exist_ok": True}, {"exist_ok": True, "record_key": "ts"}, {"record_key": "no_such"}):
        with untouched(table, None, hoodie.HoodieError):
            hoodie.create(table.path, SCHEMA, **{**options, "index": "simple", **wrong})
    hoodie.create(MemoryStore().uri(""), SCHEMA, record_key="id", merge_mode=_merger_of(2.5, "of_refused_calls"))


def test_a_merge_function_may_be_defined_again() -> None:
    for _ in range(2):

        def of_a_cell(_: pa.Table, newer: pa.Table) -> pa.Table:
            return newer

        assert hoodie.create(MemoryStore().uri(""), SCHEMA, record_key="id", merge_mode=of_a_cell).count() == 0


def test_file_sizes_of_table_and_write_must_agree() -> None:
    table = new_table(properties={"hoodie.parquet.small.file.limit": "90000000"})
    with untouched(table, "full and small", InvalidConfigError):
        table.upsert(ONE, properties={"hoodie.parquet.max.file.size": "80000000"})


def test_a_folder_of_the_properties_may_end_with_a_slash(tmp_path: Path) -> None:
    table = new_table(path=tmp_path)
    text = (tmp_path / PROPERTIES).read_text()
    lines = [line for line in text.splitlines() if not line.startswith("hoodie.timeline.history.path")]
    (tmp_path / PROPERTIES).write_text("\n".join([*lines, "hoodie.timeline.history.path=history/"]) + "\n")
    hoodie.open(tmp_path).upsert(ONE)
    assert table.count() == 1


def test_the_types_of_a_result_are_resolved() -> None:
    assert "look_up" in typing.get_type_hints(hoodie.WriteResult)
    assert "WriteResult" in dir(hoodie)
