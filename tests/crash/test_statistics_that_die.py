"""Commits with column statistics, and builds of statistics, that die at any storage call: no range is ever wrong."""

from __future__ import annotations

import pytest

from hoodie.records.condition import Condition
from hoodie.storage import MemoryStore
from hoodie.table import Table
from hoodie.write.create import CreateOptions, create_table
from tests.crash.tables import SCHEMA, Rows, deaths, rows_of, trips

START: Rows = {"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}
CHANGE: Rows = {"a": (7, "sf"), "d": (8, "la")}
WHERE = {"ts = 7": {"a"}, "ts >= 8": {"d"}, "ts = 1": {"b", "c"}, "city = 'nyc'": {"c"}}
ON = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.metadata.compact.max.delta.commits": "2"}


def table_of(kind: str, properties: dict[str, str]) -> MemoryStore:
    """A table with the rows of `START`."""
    store = MemoryStore()
    wanted = CreateOptions(
        record_key="id", partition_by="city", ordering="ts", index="simple", type=kind, properties=properties
    )
    create_table(store, SCHEMA, wanted)
    Table(store).upsert(trips(START))
    return store


def check(store: MemoryStore, *, has_change: bool) -> None:
    """Statistics, if the table has them, are those of the files, and reads by them find all rows."""
    table = Table(store)
    if "column_stats" in table.view().config.metadata_partitions:
        report = table.index.verify("column_stats")
        assert report.ok, str(report)
    rows = rows_of(store)
    assert has_change == ("d" in rows)
    for where in WHERE:
        everything = table.to_arrow()
        exact = Condition.parse(where).row_filter(everything.schema)
        found = table.to_arrow("id", where=where)["id"].to_pylist()
        assert sorted(found) == sorted(exact.matching(everything)["id"].to_pylist())


@pytest.mark.parametrize("kind", ["copy_on_write", "merge_on_read"])
def test_a_commit_with_statistics_that_dies(kind: str) -> None:
    count = 0
    for death in deaths(table_of(kind, ON), lambda table: table.upsert(trips(CHANGE)), keep=6):
        check(death.store, has_change="d" in rows_of(death.store))
        Table(death.store).upsert(trips(CHANGE))
        check(death.store, has_change=True)
        for where, ids in WHERE.items():
            assert set(Table(death.store).to_arrow("id", where=where)["id"].to_pylist()) == ids, (death, where)
        count += 1
    assert count >= 6


def test_a_build_of_statistics_that_dies() -> None:
    count = 0
    for death in deaths(table_of("merge_on_read", {}), lambda table: table.index.build("column_stats"), keep=6):
        check(death.store, has_change=False)
        Table(death.store).upsert(trips(CHANGE))
        check(death.store, has_change=True)
        Table(death.store).index.build("column_stats")
        assert list(Table(death.store).timeline.pending()) == []
        check(death.store, has_change=True)
        assert Table(death.store).explain("ts = 7").file_slices == 1
        count += 1
    assert count >= 6


def test_a_rebuild_and_a_drop_that_die() -> None:
    def again(table: Table) -> object:
        return table.index.build("column_stats"), table.index.drop("column_stats")

    for death in deaths(table_of("copy_on_write", ON), again, keep=6):
        check(death.store, has_change=False)
        Table(death.store).index.drop("column_stats")
        Table(death.store).upsert(trips(CHANGE))
        check(death.store, has_change=True)
        files = [info.path for info in death.store.list(".hoodie/metadata", recursive=True)]
        assert not [path for path in files if "_stats/" in path]
