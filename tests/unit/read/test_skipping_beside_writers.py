"""Reads skip no file by ranges of commits that they do not see, of other partitions, or of another order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from itertools import product
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step, watching
from hoodie.format.metadata_table import column_stats
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.kinds.column_stats import statistics_columns
from hoodie.read import plan
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.write import plan as write_plan
from hoodie.write.files import file_task
from tests.support.fault_store import FaultStore

ON = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.parquet.small.file.limit": "0"}


def rows(*given: tuple[str, int, str]) -> pa.Table:
    ids, numbers, partitions = zip(*given, strict=True)
    return pa.table({"id": ids, "x": pa.array(numbers, pa.int64()), "p": partitions})


def table_of(first: pa.Table, uri: str | None = None) -> Table:
    uri = uri or MemoryStore().uri("")
    table = hoodie.create(uri, first.schema, record_key="id", index="simple", partition_by="p", properties=ON)
    table.insert(first)
    return table


def overwrite(uri: str) -> None:
    hoodie.open(uri).insert_overwrite(rows(("c", 900, "p")))


def overwrite_all(uri: str) -> None:
    hoodie.open(uri).insert_overwrite_table(rows(("c", 900, "p"), ("d", 1, "q")))


def overwrite_and_rebuild(uri: str) -> None:
    overwrite(uri)
    hoodie.open(uri).index.rebuild()


def overwrite_and_die(uri: str) -> None:
    def die(step: Step) -> None:
        if step is Step.RECORDED:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watching(die):
        overwrite(uri)


@pytest.mark.parametrize("write", [overwrite, overwrite_all, overwrite_and_rebuild, overwrite_and_die])
def test_a_read_keeps_the_rows_that_a_write_replaces_meanwhile(
    monkeypatch: pytest.MonkeyPatch, write: Callable[[str], None]
) -> None:
    uri = MemoryStore().uri("")
    table = table_of(rows(("a", 1, "p"), ("b", 2, "q")), uri)
    assert table.explain("x = 1").skipped.by_partition_stats == 1
    slices = plan._slices
    writes = [write]

    def beside_a_write(*args: Any, **named: Any) -> Any:
        found = slices(*args, **named)
        while writes:
            writes.pop()(uri)
        return found

    monkeypatch.setattr(plan, "_slices", beside_a_write)
    assert table.to_arrow("id", where="x = 1")["id"].to_pylist() == ["a"]
    if write is overwrite_and_die:
        assert table.to_arrow("id", where="x = 1")["id"].to_pylist() == ["a"]


def test_files_of_one_name_in_two_partitions_have_their_own_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_task, "token_of", lambda _: "0-0-0")
    monkeypatch.setattr(write_plan, "new_file_id", lambda *_: f"{UUID(int=0)}-0")
    table = table_of(rows(("a", 1, "p"), ("b", 2, "q")))
    names = table.to_arrow("_hoodie_file_name")["_hoodie_file_name"].to_pylist()
    assert len(names) == 2
    assert len(set(names)) == 1
    table.index.drop("partition_stats")
    for number, expected in ((1, ["a"]), (2, ["b"]), (3, [])):
        assert table.to_arrow("id", where=f"x = {number}")["id"].to_pylist() == expected
        assert table.explain(f"x = {number}").file_slices == len(expected)


def test_ranges_that_were_joined_in_the_order_of_java_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def order_in_java(raw: Any) -> Any:
        if isinstance(raw, bytes):
            return [byte - 256 if byte > 127 else byte for byte in raw]
        return raw.encode("utf-16-be", "surrogatepass") if isinstance(raw, str) else raw

    given = [("a", "\uff21bc", b"\x05\x01"), ("b", "\U0001f600", b"\x05\xf0"), ("c", "x", b"\x00")]
    tables = [
        pa.table({"id": [key], "s": [text], "y": pa.array([data], pa.binary()), "p": ["p"]})
        for key, text, data in given
    ]
    with monkeypatch.context() as patched:
        patched.setattr(column_stats, "order_of", order_in_java)
        table = table_of(tables[0])
        for one in tables[1:]:
            table.insert(one)
    for (key, text, data), where in product(given, ("s = '{text}'", "y = X'{data}'", "s LIKE '{text}%'")):
        asked = where.format(text=text, data=data.hex())
        assert table.to_arrow("id", where=asked)["id"].to_pylist() == [key], asked


@pytest.mark.parametrize("partition_by", ["d", ()])
def test_times_with_a_zone_skip_no_date_or_time_without_one(partition_by: Any) -> None:
    """Spark compares them in the time zone of its session."""
    given = pa.table({"id": ["a"], "d": [date(2024, 1, 1)], "t": pa.array([datetime(2024, 1, 1)], pa.timestamp("us"))})
    uri = MemoryStore().uri("")
    hoodie.create(uri, given.schema, record_key="id", partition_by=partition_by, properties=ON).insert(given)
    table = hoodie.open(uri)
    for where in ("d > TIMESTAMP '2024-01-01 05:00:00Z'", "t < TIMESTAMP '2023-12-31 15:00:00Z'"):
        assert table.explain(where).file_slices == 1, where
    for where in ("d > DATE '2024-01-01'", "t < TIMESTAMP '2023-12-30 15:00:00Z'"):
        assert table.explain(where).file_slices == 0, where


def test_a_build_keeps_the_columns_that_an_earlier_build_was_given() -> None:
    store = MemoryStore()
    first = pa.table({"id": ["a"], "x": [1], "y": [1], "z": [1]})
    table = hoodie.create(store.uri(""), first.schema, record_key="id")
    table.insert(first)
    table.index.build("column_stats", columns=["y"])
    chosen = statistics_columns(store, TableVersion.NINE)
    assert chosen is not None
    assert chosen[-1] == "y"
    table.index.rebuild()
    assert statistics_columns(store, TableVersion.NINE) == chosen
    table.index.build("column_stats")
    assert statistics_columns(store, TableVersion.NINE) == chosen
    table.index.build("column_stats", columns=["id", "x", "y"])
    table.index.build("column_stats")
    assert (statistics_columns(store, TableVersion.NINE) or ())[-4:] == ("id", "x", "y", "z")


def test_a_commit_reads_the_index_definitions_as_often_for_many_partitions_as_for_few() -> None:
    def reads(partitions: int) -> int:
        store = MemoryStore()
        given = rows(*((f"k{number}", number, f"p{number}") for number in range(partitions)))
        table_of(given, store.uri(""))
        counting = FaultStore(store, count_reads=True)
        counting.register()
        Table(counting).delete_partitions([f"p=p{number}" for number in range(partitions)])
        return len([call for call in counting.calls if call.path.endswith("index.json")])

    assert reads(2) == reads(9)
