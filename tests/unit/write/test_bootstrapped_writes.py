"""Writes into tables with skeleton files: an update makes an ordinary file of a skeleton and its source file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import hoodie
from hoodie.errors import UnsupportedError
from hoodie.format.avro.schema import META_FIELDS
from hoodie.format.bootstrap_index import BY_FILE_ID, INSTANT
from hoodie.format.instants.service_metadata import CompactionPlan
from hoodie.services.compaction.plan import schedule_compaction
from hoodie.table import Table
from hoodie.timeline import State, read_instant
from hoodie.view.table_state import TableState
from tests.support.fault_store import FaultStore
from tests.support.tables import TYPES, table_of, values_of
from tests.unit.write.adopted import adopt, write

ROWS = pa.table(
    {
        "id": ["a", "b", "c", "d"],
        "ts": pa.array([1, 1, 1, 1], pa.int64()),
        "fare": [1.0, 2.0, 3.0, 4.0],
        "s": [{"x": 1}, {"x": 2}, None, {"x": 4}],
        "city": ["sf", "sf", "nyc", "la"],
    }
)
Found = dict[tuple[str, str], float]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    ds.write_dataset(ROWS, tmp_path / "raw", format="parquet", partitioning=["city"], partitioning_flavor="hive")
    return tmp_path / "raw"


def adopted(raw: Path, **wanted: Any) -> Table:
    adopt(raw, **{"ordering": "ts", "mode": "metadata_only", **wanted})
    return hoodie.open(raw.parent / "t", spark=False)


def row(key: str, ts: int, fare: float, city: str) -> pa.Table:
    return table_of(ROWS.schema, (key, ts, fare, {"x": 9}, city))


def rows_of(table: Table) -> Found:
    found = values_of(table, "id", "city", "fare")
    rows = {(key, city): fare for key, city, fare in found}
    assert len(rows) == len(found)
    return rows


def skeletons(table: Table) -> int:
    """The number of newest file slices whose base file is a skeleton."""
    return sum(name.endswith(f"_{INSTANT}.parquet") for name in table.inspect.slices()["base_file"].to_pylist())


FIRST: Found = {("a", "sf"): 1.0, ("b", "sf"): 2.0, ("c", "nyc"): 3.0, ("d", "la"): 4.0}


@pytest.mark.parametrize(
    ("index", "version"), [("simple", 6), ("global_simple", 8), ("bloom", 9), ("global_bloom", 6), ("simple", 9)]
)
def test_copy_on_write(raw: Path, index: str, version: int) -> None:
    """Each index, and each version; an index does not know which version its table has."""
    table = adopted(raw, index=index, table_version=version)
    done = table.upsert(row("a", 2, 10.0, "sf"))
    assert (done.updated, done.inserted, done.files_updated) == (1, 0, 1)
    assert rows_of(table) == {**FIRST, ("a", "sf"): 10.0}
    assert skeletons(table) == 2
    older = table.upsert(pa.concat_tables([row("b", 0, 0.0, "sf"), row("c", 0, 0.0, "nyc")]))
    assert (older.updated, older.ignored) == (0, 2)
    assert table.delete(row("c", 1, 0.0, "nyc")).deleted == 1
    assert table.update({"fare": "fare + 1"}, where="city = 'la'").updated == 1
    assert rows_of(table) == {("a", "sf"): 10.0, ("b", "sf"): 2.0, ("d", "la"): 5.0}
    assert skeletons(table) == 0
    assert table.to_arrow(columns=["s"], where="id = 'b'")["s"].to_pylist() == [{"x": 2}]
    assert table.verify(full=True).ok
    shutil.rmtree(raw)
    assert rows_of(table) == {("a", "sf"): 10.0, ("b", "sf"): 2.0, ("d", "la"): 5.0}


@pytest.mark.parametrize("index", ["global_simple", "global_bloom"])
@pytest.mark.parametrize("kind", TYPES)
def test_records_move_by_their_ordering_values(raw: Path, kind: str, index: str) -> None:
    """The ordering value of the stored row is in the source file."""
    table = adopted(raw, index=index, type=kind)
    table.upsert(pa.concat_tables([row("a", 0, 0.0, "la"), row("b", 2, 20.0, "la")]))
    assert rows_of(table) == {("a", "sf"): 1.0, ("b", "la"): 20.0, ("c", "nyc"): 3.0, ("d", "la"): 4.0}
    assert table.verify(full=True).ok


@pytest.mark.parametrize("kind", TYPES)
def test_inserts_stay_out_of_skeleton_slices(raw: Path, kind: str) -> None:
    table = adopted(raw, type=kind)
    assert table.insert(row("e", 1, 5.0, "sf")).files_created == 1
    assert table.upsert(row("f", 1, 6.0, "sf")).updated == 0
    assert table.bulk_insert(row("g", 1, 7.0, "sf")).files_created == 1
    assert skeletons(table) == 3
    assert rows_of(table) == {**FIRST, ("e", "sf"): 5.0, ("f", "sf"): 6.0, ("g", "sf"): 7.0}


def test_overwrites_and_deletes_of_partitions(raw: Path) -> None:
    table = adopted(raw)
    assert table.insert_overwrite(row("e", 1, 5.0, "sf")).deleted == 2
    assert table.delete_partitions(["city=la"]).deleted == 1
    assert rows_of(table) == {("e", "sf"): 5.0, ("c", "nyc"): 3.0}
    table.insert_overwrite_table(row("f", 1, 6.0, "nyc"))
    assert rows_of(table) == {("f", "nyc"): 6.0}
    assert table.verify(full=True).ok


@pytest.mark.parametrize(("index", "version"), [("simple", 6), ("bloom", 8), ("simple", 9), ("bloom", 9)])
def test_merge_on_read(raw: Path, index: str, version: int) -> None:
    """Log files beside a skeleton; a compaction makes an ordinary base file."""
    table = adopted(raw, type="mor", index=index, table_version=version)
    done = table.upsert(pa.concat_tables([row("a", 2, 10.0, "sf"), row("c", 0, 0.0, "nyc")]))
    assert done.log_files_appended >= 1
    assert table.delete(row("b", 1, 0.0, "sf")).log_files_appended == 1
    table.upsert(row("b", 0, 21.0, "sf"))
    expected = {("a", "sf"): 10.0, ("c", "nyc"): 3.0, ("d", "la"): 4.0}
    found = rows_of(table)
    assert {key: found[key] for key in expected} == expected
    instant = table.schedule_compaction()
    assert instant is not None
    view = table.view()
    pending = next(one for one in view.timeline.pending().instants if one.requested_time == instant)
    plan = CompactionPlan.parse(read_instant(view.store, view.layout, pending, State.REQUESTED), path="the plan")
    sources = {operation.partition_path: operation.bootstrap_file_path for operation in plan.operations}
    assert sources["city=sf"] == f"file://{next((raw / 'city=sf').glob('*.parquet'))}"
    table.compact()
    assert rows_of(table) == found
    assert skeletons(table) == 3 - len(plan.operations)
    assert table.verify(full=True).ok
    for partition in sources:
        shutil.rmtree(raw / partition)
    assert table.to_arrow(where="city = 'sf'").num_rows == sum(city == "sf" for _, city in found)


def test_a_compaction_plan_opens_the_bootstrap_index_once(raw: Path) -> None:
    table = adopted(raw, type="mor")
    table.upsert(pa.concat_tables([row("a", 2, 10.0, "sf"), row("c", 2, 0.0, "nyc"), row("d", 2, 0.0, "la")]))
    counted = FaultStore(table.view().store, count_reads=True)
    assert schedule_compaction(TableState(counted)) is not None
    assert sum(call.path == BY_FILE_ID for call in counted.calls) == 1


def test_new_columns(raw: Path) -> None:
    table = adopted(raw)
    table.upsert(row("a", 2, 10.0, "sf").append_column("tip", pa.array([0.5])), schema="add_columns")
    assert values_of(table, "id", "tip") == [("a", 0.5), ("b", None), ("c", None), ("d", None)]


def test_the_size_of_skeletons_does_not_size_new_files(raw: Path, tmp_path: Path) -> None:
    keys = [f"k{number}" for number in range(3000)]
    write(tmp_path / "many" / "x.parquet", {"id": keys, "text": [key * 50 for key in keys]})
    table = adopted(tmp_path / "many", ordering=None)
    rows = pa.table({"id": [f"n{key}" for key in keys], "text": [key * 50 for key in keys]})
    sizes = {"hoodie.parquet.max.file.size": str(200 * 1024), "hoodie.parquet.small.file.limit": "0"}
    done = table.insert(rows, properties=sizes)
    assert done.files_created > 1


def test_what_is_refused(raw: Path) -> None:
    table = adopted(raw)
    for refused in (table.cluster, lambda: table.alter.rename_column("fare", "price")):
        with pytest.raises(UnsupportedError, match="bootstrapped tables"):
            refused()


def test_meta_columns_are_kept(raw: Path) -> None:
    table = adopted(raw)
    table.upsert(row("a", 2, 10.0, "sf"))
    found = {one["id"]: one for one in table.to_arrow(where="city = 'sf'").to_pylist()}
    assert found["b"]["_hoodie_commit_time"] == INSTANT
    assert found["a"]["_hoodie_commit_time"] > INSTANT
    assert {one["_hoodie_file_name"].rpartition("_")[2] for one in found.values()} == {
        f"{found['a']['_hoodie_commit_time']}.parquet"
    }
    assert list(found["b"])[:5] == list(META_FIELDS)
