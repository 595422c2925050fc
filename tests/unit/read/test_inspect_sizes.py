"""Sizes, log backlog, partitions and one file group: the same with and without a metadata table, part by part."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.files.table_properties import update_table_config
from hoodie.format.table import table_keys as keys
from hoodie.storage import MemoryStore
from hoodie.table import Table
from tests.support.archived import OFTEN
from tests.support.tables import copy_of, made_once, new_table, trips, trips_store

PARTITIONS = 300
"""More than are read at once at first."""
GOLDEN = [f"{version}_{kind}" for version in ("v6", "v8", "v9") for kind in ("cow", "mor")]


def _text(number: int) -> str:
    """A text of 512 characters that is hardly compressed."""
    return "".join(hashlib.sha256(f"{number} {part}".encode()).hexdigest() for part in range(8))


@made_once
def _many(*, with_metadata: bool = True) -> Table:
    """A merge-on-read table with 300 partitions; partition `p=7` has log files, and most rows."""
    paths = [str(number) for number in range(PARTITIONS)] + ["7"] * 50
    texts = [_text(number) for number in range(len(paths))]
    rows = pa.table({"id": [f"k{number}" for number in range(len(paths))], "p": paths, "text": texts})
    table = new_table(rows.schema, rows, partition_by="p", type="merge_on_read", index="simple")
    for _ in range(2):
        table.upsert(rows.filter(pc.equal(rows["p"], "7")))
    if with_metadata:
        return table
    store = table.view().store
    update_table_config(store, {keys.METADATA_PARTITIONS: None})
    store.delete_folder(".hoodie/metadata")
    return Table(store)


@pytest.mark.parametrize("with_metadata", [True, False], ids=["metadata table", "folders"])
def test_sizes_add_up_the_latest_slices(with_metadata: bool) -> None:
    table = _many(with_metadata=with_metadata)
    assert table.view().config.has_metadata_table == with_metadata
    sizes, slices = table.inspect.sizes(), table.inspect.slices().to_pylist()
    bases = [row["base_size_bytes"] for row in slices]
    assert {name: sizes[name] for name in ("file_groups", "partitions", "base_files", "log_files", "rows")} == {
        "file_groups": PARTITIONS,
        "partitions": PARTITIONS,
        "base_files": PARTITIONS,
        "log_files": 2,
        "rows": PARTITIONS + 50,
    }
    assert sizes["log_bytes"] == sum(row["log_size_bytes"] for row in slices)
    assert sizes["bytes"] == sum(bases) + sizes["log_bytes"]
    assert sizes["small_files"] == PARTITIONS
    assert sizes["small_below_bytes"] == 104_857_600
    assert sum(row["files"] for row in sizes["histogram"]) == sizes["files"] == PARTITIONS + 2
    assert sum(row["bytes"] for row in sizes["histogram"]) == sizes["bytes"]
    assert [(row["from_bytes"], row["to_bytes"]) for row in sizes["histogram"][:2]] == [(0, 4000), (4000, 16000)]
    small = sum(size < 4000 for size in bases) + sum(0 < row["log_size_bytes"] / 2 < 4000 for row in slices) * 2
    assert sizes["histogram"][0]["files"] == small
    totals = sorted(row["base_size_bytes"] + row["log_size_bytes"] for row in slices)
    assert sizes["largest_ratio"] == round(totals[-1] * 2 / (totals[149] + totals[150]), 2)
    assert "without the changes in log files" in sizes["rows_note"]


def test_sizes_of_a_new_table_are_zero() -> None:
    sizes = new_table().inspect.sizes()
    assert (sizes["files"], sizes["bytes"], sizes["histogram"], sizes["largest_ratio"]) == (0, 0, [], None)
    assert (sizes["rows"], sizes["rows_note"]) == (0, "")


def test_rows_are_unknown_if_commits_are_archived() -> None:
    table = Table(trips_store({"a": (1, "sf"), "b": (1, "nyc")}))
    for ts in range(2, 12):
        table.upsert(trips({"a": (ts, "sf")}), properties=OFTEN)
    assert table.view().has_archived_instants()
    sizes = table.inspect.sizes()
    note = "1 row in 1 of 2 base files; the commits of the others are archived; `hoodie count` counts all"
    assert (sizes["base_files"], sizes["rows"], sizes["rows_note"]) == (2, None, note)


def test_a_missing_metadata_table_is_no_obstacle() -> None:
    table = _many()
    store = table.view().store
    expected = table.inspect.sizes()
    store.delete_folder(".hoodie/metadata")
    assert keys.METADATA_PARTITIONS in table.view().config.raw
    with pytest.warns(hoodie.HoodieWarning, match="listed from storage"):
        assert Table(store).inspect.sizes() == expected


def test_a_damaged_commit_leaves_out_the_rows_only() -> None:
    table = _many()
    store, view = table.view().store, table.view()
    first = view.completed_writes()[0]
    names = [name for name in store.names(view.layout.instant_folder()) if name.startswith(f"{first.requested_time}_")]
    store.replace(f"{view.layout.instant_folder()}/{names[0]}", b"Obj\x01 damaged")
    sizes = Table(store).inspect.sizes()
    assert sizes["rows"] is None
    assert first.requested_time in sizes["rows_note"]
    assert sizes["files"] == PARTITIONS + 2


def test_the_backlog_begins_with_the_most_log_bytes() -> None:
    rows = pa.table({"id": ["a", "b", "c"], "p": ["x", "y", "z"], "text": ["".join(map(_text, range(10))), "", ""]})
    table = new_table(rows.schema, rows, partition_by="p", type="merge_on_read")
    table.upsert(rows.slice(0, 2))
    table.upsert(rows.slice(1, 1))
    found = table.inspect.backlog().to_pylist()
    slices = {row["partition_path"]: row for row in table.inspect.slices().to_pylist()}
    assert [row["partition_path"] for row in found] == ["p=x", "p=y"]
    for row in found:
        known = slices[row["partition_path"]]
        assert {name: row[name] for name in known if name in row} == {
            name: known[name] for name in known if name in row
        }
        assert row["cost_bytes"] == row["log_size_bytes"] + 2 * row["base_size_bytes"]
    assert table.inspect.backlog(1).to_pylist() == found[:1]
    assert table.inspect.backlog(0).num_rows == 0
    table.compact()
    table.schedule_compaction(properties={"hoodie.compact.inline.max.delta.commits": "1"})
    table.compact()
    assert table.inspect.backlog().num_rows == 0


def test_partitions_come_page_by_page() -> None:
    inspect = _many().inspect
    everything = inspect.partitions().to_pylist()
    assert [row["partition_path"] for row in everything] == sorted(f"p={number}" for number in range(PARTITIONS))
    pages = [inspect.partitions(limit=70, offset=offset).to_pylist() for offset in range(0, PARTITIONS + 1, 70)]
    assert [row for page in pages for row in page] == everything
    whole = inspect.slices()
    pages = [inspect.slices(limit=70, offset=offset) for offset in range(0, whole.num_rows + 1, 70)]
    assert pa.concat_tables(pages).equals(whole)
    assert inspect.partitions(limit=0).num_rows == inspect.partitions(offset=PARTITIONS).num_rows == 0
    largest = sorted(everything, key=lambda row: (-row["size_bytes"], row["partition_path"]))
    assert largest[0]["partition_path"] == "p=7"
    assert largest[0]["log_files"] == 2
    assert inspect.partitions(sort="bytes").to_pylist() == largest
    assert inspect.partitions(sort="bytes", limit=5, offset=3).to_pylist() == largest[3:8]
    with pytest.raises(hoodie.InvalidConfigError, match="'name' or 'bytes'"):
        inspect.partitions(sort="rows")


def test_the_slices_of_one_partition() -> None:
    inspect = _many().inspect
    everything = inspect.slices().to_pylist()
    assert inspect.slices("p=7").to_pylist() == [row for row in everything if row["partition_path"] == "p=7"]
    assert inspect.slices("p=none").num_rows == 0


@pytest.mark.parametrize("name", GOLDEN)
def test_a_file_group_from_its_oldest_file_on(golden_tables: Path, name: str) -> None:
    inspect = hoodie.open(golden_tables / name, spark=False).inspect
    for slice_row in inspect.slices().to_pylist():
        rows = inspect.file_group(slice_row["file_id"]).to_pylist()
        own = [row for row in inspect.files().to_pylist() if row["file_id"] == slice_row["file_id"]]
        assert sorted(row["file"] for row in rows) == sorted(row["file"] for row in own)
        assert {row["file"]: row["is_current"] for row in rows} == {row["file"]: row["is_current"] for row in own}
        assert [row["instant"] for row in rows] == sorted(row["instant"] for row in rows)
        times = {row["instant"]: row for row in inspect.timeline().to_pylist()}
        for row in rows:
            known = times[row["instant"]]
            assert (row["operation"], row["completed_at"]) == (known["operation"], known["completed_at"])
    assert inspect.file_group("unknown-0").num_rows == 0


@pytest.mark.parametrize("name", GOLDEN)
def test_the_metadata_table_of_the_jvm(golden_tables: Path, name: str) -> None:
    table = hoodie.open(golden_tables / name, spark=False)
    rows = {row["partition"]: row for row in table.inspect.metadata().to_pylist()}
    assert sorted(rows) == sorted(table.view().config.metadata_partitions)
    assert rows["files"]["file_groups"] == 1
    assert rows["record_index"]["file_groups"] > 1
    for row in rows.values():
        assert row["files"] >= row["file_groups"]
        assert row["bytes"] > 0
        assert not row["is_inflight"]
    has_compacted = any(row["newest_compaction"] for row in rows.values())
    assert has_compacted == name.endswith("mor")


def test_a_table_without_a_metadata_table_has_no_metadata_partitions() -> None:
    assert _many(with_metadata=False).inspect.metadata().num_rows == 0


def test_an_index_that_is_built_is_in_flight() -> None:
    table = new_table(index="simple")
    table.upsert({"id": ["a"], "ts": [1], "city": ["sf"]})
    store = table.view().store
    assert isinstance(store, MemoryStore)
    table = Table(copy_of(store))
    update_table_config(table.view().store, {keys.METADATA_PARTITIONS_INFLIGHT: "record_index"})
    rows = {row["partition"]: row for row in Table(table.view().store).inspect.metadata().to_pylist()}
    assert rows["record_index"]["is_inflight"]
    assert rows["record_index"]["files"] == 0
    assert not rows["files"]["is_inflight"]
