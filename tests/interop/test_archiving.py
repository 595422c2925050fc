"""The JVM archives, we read across, write and archive on; the JVM reads what we archived; time travel of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from tests.interop.judges import Jvm, to_arrow
from tests.support.archived import OFTEN, active_times, archived_times

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
OURS = {**OFTEN, "hoodie.clean.automatic": "false"}
JVM_LIMITS = {**OFTEN, "hoodie.clean.automatic": "false"}

Rows = dict[str, tuple[int, str]]


def batch(rows: Rows) -> pa.Table:
    return pa.table(
        {"id": list(rows), "ts": [ts for ts, _ in rows.values()], "city": [city for _, city in rows.values()]},
        schema=SCHEMA,
    )


def model(found: pa.Table) -> Rows:
    rows = found.select(SCHEMA.names).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["ts"], row["city"]) for row in rows}


class Both:
    """One table that both write, with the rows as of each commit."""

    def __init__(self, jvm: Jvm, path: Path, table_type: str) -> None:
        self.jvm, self.path, self.table_type = jvm, path, table_type
        self.instants: list[str] = []
        self.past: list[Rows] = []
        self.rows: Rows = {}

    def commit(self, by: str) -> None:
        """Change two rows."""
        number = len(self.instants)
        change: Rows = {f"k{number % 5}": (number, "sf"), f"n{number % 9}": (number, "sf")}
        if by == "jvm":
            self.jvm.write(
                batch(change),
                self.path,
                table_name="trips",
                key="id",
                partition="city",
                ordering="ts",
                table_type=self.table_type,
                options={**JVM_LIMITS, "hoodie.datasource.write.hive_style_partitioning": "true"},
            )
        else:
            hoodie.open(self.path, spark=False).upsert(batch(change), properties=OURS)
        self.rows |= change
        latest = hoodie.open(self.path, spark=False).view().timeline.writes().completed()
        newest = [found for found in latest if found.requested_time not in self.instants and found.action != "commit"]
        newest = newest if self.table_type == "MERGE_ON_READ" else list(latest)
        self.instants.append(newest[-1].requested_time)
        self.past.append(dict(self.rows))

    def changed_since(self, number: int) -> Rows:
        before = self.past[number]
        return {key: row for key, row in self.rows.items() if before.get(key) != row}

    def check_ours(self) -> None:
        """We read the table now, as of any commit, and its changes since any."""
        table = hoodie.open(self.path, spark=False)
        assert model(table.to_arrow()) == self.rows
        for number in (0, len(self.instants) // 2, len(self.instants) - 2):
            assert model(table.to_arrow(as_of=self.instants[number])) == self.past[number], number
            assert model(table.changes(since=self.instants[number])) == self.changed_since(number), number
        history = table.history(archived=True)["instant"].to_pylist()
        assert {*self.instants} <= {*history}
        assert len(history) == len({*zip(history, table.history(archived=True)["action"].to_pylist(), strict=True)})

    def check_jvm(self) -> None:
        """The JVM reads the table now, as of any commit, and its changes since any."""
        assert model(self.jvm.read(self.path)) == self.rows
        for number in (0, len(self.instants) // 2, len(self.instants) - 2):
            as_of = self.jvm.read(self.path, options={"as.of.instant": self.instants[number]})
            assert model(as_of) == self.past[number], number
            since = self.completed[self.instants[number]]
            assert model(self.jvm.read_incremental(self.path, since)) == self.changed_since(number), number

    @property
    def completed(self) -> dict[str, str]:
        """Completion times of active and archived commits."""
        view = hoodie.open(self.path, spark=False).view()
        found = [*view.archive().completed(), *view.timeline.completed()]
        return {instant.requested_time: instant.completion_time or "" for instant in found}

    def jvm_archived(self) -> list[str]:
        """Requested times of the instants that the JVM finds in the archive."""
        commits = self.jvm.meta_client(self.path).getArchivedTimeline().getCommitsTimeline()
        return [instant.requestedTime() for instant in commits.filterCompletedInstants().getInstants()]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_jvm_archives_and_we_go_on(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    both = Both(jvm, tmp_path / "trips", table_type)
    for _ in range(10):
        both.commit("jvm")
    store = hoodie.open(both.path, spark=False).view().store
    archived = archived_times(store)
    assert len(archived) >= 4
    both.check_ours()
    for _ in range(4):
        both.commit("us")
    assert len(archived_times(store)) > len(archived), "we archive on"
    assert not {*archived_times(store)} & {*active_times(store)}
    assert both.jvm_archived() == archived_times(store)
    both.check_jvm()
    both.check_ours()


def test_overlapping_writers(jvm: Jvm, tmp_path: Path) -> None:
    """The JVM's time travel goes by requested time: a commit that completed late appears in a past state."""
    path = tmp_path / "trips"
    table = hoodie.create(path, SCHEMA, record_key="id", partition_by="city", ordering="ts", name="trips", spark=False)
    table.upsert(batch({"x": (0, "oslo")}))
    first, second = table.insert(batch({"a": (1, "sf")})).instant, table.insert(batch({"b": (1, "nyc")})).instant
    folder = path / ".hoodie" / "timeline"
    (name,), (other,) = list(folder.glob(f"{first}_*")), list(folder.glob(f"{second}_*"))
    later = str(int(other.stem.partition("_")[2]) + 5)
    name.rename(name.with_name(f"{first}_{later}.commit"))

    def ids(found: Any) -> list[str]:
        return sorted(found["id"].to_pylist())

    ours = hoodie.open(path, spark=False)
    assert ids(jvm.read(path, options={"as.of.instant": second})) == ["a", "b", "x"]
    assert ids(ours.to_arrow(as_of=f"requested:{second}")) == ["a", "b", "x"]
    assert ids(jvm.read(path, options={"as.of.instant": first})) == ["a", "x"]
    assert ids(ours.to_arrow(as_of=f"requested:{first}")) == ["a", "x"]
    # By completion time the state as of the second commit never changes.
    assert ids(ours.to_arrow(as_of=second)) == ["b", "x"]
    assert ids(ours.to_arrow(as_of=first)) == ["a", "b", "x"]
    # The JVM's incremental reads go by completion time, as ours do.
    completed = other.stem.partition("_")[2]
    assert ids(jvm.read_incremental(path, completed)) == ids(ours.changes(since=completed)) == ["a"]
    assert ids(jvm.read_incremental(path, "20200101000000000", completed)) == ["b", "x"]
    assert ids(ours.changes(since="20200101000000000", until=completed)) == ["b", "x"]


def test_the_frames_of_a_session(jvm: Jvm, tmp_path: Path) -> None:
    """`changes_since` returns a DataFrame in a Spark session."""
    path = tmp_path / "trips"
    table = hoodie.create(path, SCHEMA, record_key="id", partition_by="city", ordering="ts", name="trips")
    table.upsert(batch({"x": (0, "oslo")}))
    place = table.changes_since().until
    table.upsert(batch({"y": (1, "oslo")}))
    found = table.changes_since(place)
    assert model(to_arrow(found.rows)) == {"y": (1, "oslo")}
    assert table.changes_since(found.until).rows.count() == 0
