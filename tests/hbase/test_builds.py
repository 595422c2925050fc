"""Builds of the HBase index beside plans, compactions and commits that are taken back, and builds that die."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hoodie.errors import IndexIncompleteError, IndexUnavailableError, InvalidConfigError
from hoodie.index.hbase.client import HBaseClient
from hoodie.index.hbase.versions import built_instant, location_cells
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.timeline import forget_all
from hoodie.view.slices import list_slices
from tests.hbase.rows import QUIET, START, again, check, settings_of, started, table_of
from tests.support.deaths import run_until
from tests.support.fault_store import FaultStore
from tests.support.samples import sample_of
from tests.support.tables import Rows, create_in, rows_of, trips

CLUSTERS = {"hoodie.clustering.plan.strategy.small.file.limit": "100000000"}


def some_of(calls: list[str]) -> list[int]:
    """Numbers of calls before which a build dies: around the truncation, around the last put, and some others."""
    emptied = calls.index("hbase truncateTable") + 1
    filled = len(calls) - calls[::-1].index("hbase putMultiple")
    chosen = {emptied, emptied + 1, filled, filled + 1, len(calls)}
    others = [number for number in range(1, len(calls)) if number not in chosen]
    return sorted({*chosen, *sample_of(others, 2, "calls of a build of the HBase index")})


@contextlib.contextmanager
def counting_hbase() -> Iterator[Callable[[Table], Table]]:
    """Count the calls of HBase among the calls of the storage of the table that is handed in, so that it dies there."""
    call = HBaseClient._call
    dying: list[FaultStore] = []

    def use(table: Table) -> Table:
        store = table.view().store
        assert isinstance(store, FaultStore)
        dying.append(store)
        return table

    def counted(self: HBaseClient, method: str, *arguments: Any, **more: Any) -> Any:
        answer: list[Any] = []
        dying[0]._change("hbase", method, lambda: answer.append(call(self, method, *arguments, **more)))
        return answer[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HBaseClient, "_call", counted)
        yield use


def test_a_clustering_that_was_planned_before_a_build_and_runs_after_it(options: dict[str, str]) -> None:
    """Its locations have the time of the plan, which is before the newest commit that the build found."""
    table = started(options, "copy_on_write", **{"hoodie.parquet.small.file.limit": "0"})
    table.insert(trips({"d": (1, "sf"), "e": (1, "la")}))
    plan = table.schedule_clustering(properties=CLUSTERS)
    assert plan
    table.upsert(trips({"n": (1, "nyc")}))
    table.index.build("hbase")
    assert table.cluster(instant=plan).instant == plan
    check(table, {**START, "d": (1, "sf"), "e": (1, "la"), "n": (1, "nyc")})


def test_a_restore_behind_a_build_whose_newest_instant_is_a_compaction(options: dict[str, str]) -> None:
    """The compaction was planned before the commit to which the table goes back, and stays."""
    table = started(options, "merge_on_read")
    table.upsert(trips({"a": (2, "sf"), "b": (2, "sf"), "c": (2, "la")}))
    plan = table.schedule_compaction()
    assert plan
    kept = table.upsert(trips({"b": (3, "sf")})).instant
    table.upsert(trips({"a": (4, "la")}))
    table.compact(instant=plan)
    assert table.view().completed_writes()[-1].requested_time == plan
    table.index.build("hbase")
    table.restore(kept)
    rows = {"a": (2, "sf"), "b": (3, "sf"), "c": (2, "la")}
    assert rows_of(table.view().store) == rows
    with pytest.raises(IndexIncompleteError, match="took that commit back"):
        table.upsert(trips({"a": (5, "sf")}))
    table.index.build("hbase")
    check(table, rows)


def test_a_task_of_an_earlier_build_that_puts_late_changes_nothing(options: dict[str, str]) -> None:
    """Its locations are newer in HBase than those of the build that completed."""
    table = started(options, "copy_on_write")
    table.index.build("hbase")
    earlier = settings_of(table.view().store).identity
    table.upsert(trips({"a": (2, "la"), "d": (2, "nyc")}))
    table.delete(trips({"c": (9, "la")}).select(["id"]))
    sf = next(found.file_id for found in list_slices(table.view(), ["city=sf"]))
    table.index.build("hbase")
    with HBaseClient(settings_of(table.view().store)) as client:
        late = location_cells(built_instant(earlier), "city=sf", sf)
        client.put([(b"a", late), (b"c", late)], 10**13)
    check(again(table), {"a": (2, "la"), "b": (1, "sf"), "d": (2, "nyc")})
    assert again(table).upsert(trips({"c": (3, "sf")})).inserted == 1


def test_a_build_that_is_refused_leaves_the_index_that_the_table_has(options: dict[str, str]) -> None:
    other = {**options, "hoodie.index.hbase.table": f"t{uuid.uuid4().hex}"}
    started(other, "copy_on_write")
    table = started(options, "copy_on_write")
    before = table.view().config.raw
    with pytest.raises(InvalidConfigError, match="has the index of memory"):
        table.index.build("hbase", properties=other)
    assert again(table).view().config.raw == before
    check(table, START)


@pytest.mark.parametrize("name", ["bucket", "bloom", "global_simple", "record"])
def test_a_table_with_another_index_is_built_and_forgets_the_options_of_that_index(
    options: dict[str, str], name: str
) -> None:
    store = MemoryStore()
    create_in(store, index=name, properties=QUIET)
    Table(store).upsert(trips(START))
    Table(store).index.build("hbase", properties=options)
    config = Table(store).view().config
    assert not [key for key in config.raw if ("bucket.index" in key or "simple.index" in key)]
    assert ("record_index" in config.metadata_partitions) == (name == "record")
    check(Table(store), START)
    assert Table(store).upsert(trips({"a": (900, "nyc")})).updated == 1
    assert Table(store).verify(full=True).ok


def test_a_check_of_a_table_without_writes_creates_nothing(options: dict[str, str]) -> None:
    table = table_of(options)
    assert table.index.verify().ok
    assert table.verify(full=True).ok
    with HBaseClient(settings_of(table.view().store)) as client:
        assert not client.has_table()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("had_one", [False, True], ids=["first build", "built again"])
def test_a_build_that_dies_at_any_call_of_the_storage_or_of_hbase(options: dict[str, str], had_one: bool) -> None:
    """The rows stay. Writes use the old index, or are refused until the next build, which is right."""
    moves: Rows = {"a": (2, "la"), "d": (2, "nyc")}
    rows = {**START, **moves}

    def died(at: int | None) -> tuple[MemoryStore, dict[str, str], list[str]]:
        """A table whose build died before a call, the options of its index, and the calls."""
        own = {**options, "hoodie.index.hbase.table": f"t{uuid.uuid4().hex}"}
        store = MemoryStore()
        properties = {**QUIET, **(own if had_one else {})}
        create_in(store, index="hbase" if had_one else "global_simple", properties=properties)
        Table(store).upsert(trips(START))
        Table(store).upsert(trips(moves))
        with counting_hbase() as use:
            ended = run_until(store, lambda table: use(table).index.build("hbase", properties=own), at)
        forget_all()
        return store, own, [f"{call.operation} {call.path}" for call in ended.calls]

    for at in some_of(died(None)[2]):
        store, own, calls = died(at)
        what = f"died before call {at}, {calls[-1]}"
        assert rows_of(store) == rows, what
        later = {"b": (5, "sf"), "d": (5, "oslo")}
        try:
            assert Table(store).upsert(trips(later)).inserted == 0, what
            now = {**rows, **later}
        except (IndexIncompleteError, IndexUnavailableError):
            assert had_one, what
            now = rows
        assert Table(store).index.build("hbase", properties=own).counts["entries"] == len(rows), what
        check(Table(store), now)
