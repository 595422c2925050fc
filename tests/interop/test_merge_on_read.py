"""One merge-on-read table, two engines: deltas in turns, and compactions planned by one and carried out by the other.

Every state of the table is read by us, by the JVM and by hudi-rs, with the metadata table and without it.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.timeline.instant import Action, State
from tests.interop.judges import HIVE, Jvm, assert_index_is_data, create_trips, read_with_hudi_rs, to_arrow
from tests.support.rows import assert_same_rows

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("fare", pa.float64()), ("city", pa.string())])
CITIES = ("sf", "nyc")
JVM_OPTIONS = {
    **HIVE,
    "hoodie.compact.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}


class Shared:
    """The table, the rows it must have, and its two writers; every row written is newer than the ones before."""

    def __init__(self, jvm: Jvm, path: Path, *, index: str) -> None:
        self.jvm = jvm
        self.path = path
        self.has_record_index = index == "record"
        self.rows: dict[str, dict[str, object]] = {}
        self.gone: set[str] = set()
        self._ts = 0

    def ours(self, changed: Collection[int] = (), gone: Collection[int] = ()) -> None:
        """One upsert and one delete by us, as far as there is something to do; in Spark with the simple index."""
        table = hoodie.open(self.path, spark=False if self.has_record_index else None)
        if changed:
            table.upsert(self._upserted(changed))
        if gone:
            table.delete(self._deleted(gone))

    def theirs(self, changed: Collection[int] = (), gone: Collection[int] = ()) -> None:
        """The same by the JVM."""
        if changed:
            self._write_theirs(self._upserted(changed), "upsert")
        if gone:
            self._write_theirs(self._deleted(gone), "delete")

    def check(self) -> None:
        """All readers see the rows, and nothing else."""
        table = hoodie.open(self.path)
        expected = pa.Table.from_pylist(list(self.rows.values()), schema=SCHEMA)
        ours = table.to_arrow()
        assert_same_rows(ours, expected, key="id")
        theirs = self.jvm.read(self.path)
        assert_same_rows(theirs, ours, key="id", meta=True)
        assert_same_rows(read_with_hudi_rs(self.path), ours, key="id", meta=True)

    def check_other_views(self, since: str) -> None:
        """Base files alone, the rows of some commits, and the snapshot without the metadata table."""
        table = hoodie.open(self.path)
        assert_same_rows(self.jvm.read_optimized(self.path), table.to_arrow(view="read_optimized"), key="id", meta=True)
        theirs = self.jvm.read_incremental(self.path, since)
        assert theirs.num_rows
        assert_same_rows(theirs, to_arrow(table.changes(since=since)), key="id", meta=True)
        listed = self.jvm.read(self.path, options={"hoodie.metadata.enable": "false"})
        assert_same_rows(listed, table.to_arrow(), key="id", meta=True)
        if self.has_record_index:
            assert_index_is_data(self.jvm, self.path, rows=listed, gone=self.gone)

    @property
    def now(self) -> str:
        """Completion time of the newest write."""
        return max(instant.completion_time or "" for instant in hoodie.open(self.path).timeline.completed().instants)

    def _upserted(self, keys: Collection[int]) -> pa.Table:
        self._ts += 1
        rows = [{"id": f"k{n:04}", "ts": self._ts, "fare": n + self._ts / 8, "city": CITIES[n % 2]} for n in keys]
        self.rows |= {str(row["id"]): row for row in rows}
        self.gone -= self.rows.keys()
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def _deleted(self, keys: Collection[int]) -> pa.Table:
        rows = [self.rows.pop(f"k{n:04}") for n in keys]
        self.gone |= {str(row["id"]) for row in rows}
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def _write_theirs(self, rows: pa.Table, operation: str) -> None:
        self.jvm.write_trips(rows, self.path, operation=operation, table_type="MERGE_ON_READ", options=JVM_OPTIONS)


def _assert_compacted(path: Path, instant_time: str) -> None:
    instant = hoodie.open(path).timeline.get(instant_time)
    assert instant is not None
    assert (instant.action, instant.state) == (Action.COMMIT, State.COMPLETED)


@pytest.mark.parametrize("index", ["record", "simple"])
def test_deltas_of_both_and_compactions_across(jvm: Jvm, tmp_path: Path, index: str) -> None:
    path = tmp_path / "trips"
    run = Shared(jvm, path, index=index)
    if index == "record":
        create_trips(path, SCHEMA, type="merge_on_read")
        run.ours(range(20))
    else:
        run.theirs(range(20))
    start = run.now
    run.ours(range(4), gone=[4, 5])
    run.check()
    run.theirs([2, 3, 6, 20])
    run.check()

    ours = hoodie.open(path).schedule_compaction()
    assert ours is not None
    run.check()
    run.theirs([0, 1, 7])
    run.ours([0, 8, 21], gone=[9])
    run.check()
    assert jvm.compact(path, "run") == [ours]
    _assert_compacted(path, ours)
    run.check()
    run.check_other_views(start)
    second = run.now

    run.ours([1, 10])
    (theirs,) = jvm.compact(path, "schedule")
    run.ours([1, 11, 22], gone=[12])
    run.theirs([0, 4, 13])
    run.check()
    assert hoodie.open(path).compact().instant == theirs
    _assert_compacted(path, theirs)
    run.theirs(gone=[1, 15])
    run.ours([0, 9, 16])
    run.check()
    run.check_other_views(second)
