"""A clean between the load of a timeline and the listing: a read is planned again or refused, never short of rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from hoodie.engine import Engine, local_engine
from hoodie.errors import HistoryLostError, HoodieWarning, ViewOvertakenError
from hoodie.read.changes import plan_batch
from hoodie.read.local import read_table
from hoodie.read.plan import explain, plan_scan
from hoodie.records.condition import Condition
from hoodie.services.indexing.verify import verify_changes, verify_record_index
from hoodie.spark import read_options
from hoodie.spark.lookups import FileGroupLookUp
from hoodie.storage import FileInfo, MemoryStore
from hoodie.table import Table
from tests.support.cleaned_tables import NO_CLEAN
from tests.support.tables import made_once, trips, trips_store


@made_once
def store_of(*versions: int, index: str = "record") -> MemoryStore:
    """A table whose record `a` was written with these ordering values."""
    return trips_store(*({"a": (version, "sf")} for version in versions), index=index, properties=NO_CLEAN)


def upserts(store: MemoryStore, *versions: int) -> list[str]:
    return [Table(store).upsert(trips({"a": (version, "sf")})).instant for version in versions]


def cleaned(store: MemoryStore) -> None:
    """Delete the files of all but the newest commit."""
    Table(store).clean(properties={"hoodie.clean.commits.retained": "1"})


def test_plans_on_an_overtaken_view_are_refused() -> None:
    store = store_of(1, 2, 3)
    instants = [found.requested_time for found in Table(store).timeline]
    view = Table(store).view()
    assert len(plan_scan(view).slices) == 1
    # Nothing that the view reads is gone: the clean deletes what was replaced before it.
    cleaned(store)
    assert len(plan_scan(view).slices) == 1
    with pytest.raises(HistoryLostError):
        plan_scan(view, as_of=instants[0])
    with pytest.raises(HistoryLostError):
        plan_batch(view, instants[0], instants[0])
    upserts(store, 4, 5, 6)
    cleaned(store)
    with pytest.raises(HistoryLostError):
        plan_scan(view)
    assert Table(store).to_arrow(columns=["ts"]).to_pydict() == {"ts": [6]}


class OvertakenStore(MemoryStore):
    """A table's folder that others change once between the load of a timeline and the listing of files."""

    act: Callable[[MemoryStore], object] | None = None

    @classmethod
    def over(cls, store: MemoryStore) -> OvertakenStore:
        return cls(store.spec.uri.removeprefix("memory://"))

    def list(self, folder: str, *, recursive: bool = False) -> list[FileInfo]:
        """List the folder; then, if it is the timeline, let the others act."""
        found = super().list(folder, recursive=recursive)
        if folder == ".hoodie/timeline" and self.act is not None:
            act, self.act = self.act, None
            act(MemoryStore(self._name))
        return found


READS: dict[str, Callable[[Table], Any]] = {
    "to_arrow": lambda table: table.to_arrow(["id", "ts"]).to_pylist(),
    "changes": lambda table: table.changes().select(["id", "ts"]).to_pylist(),
    "changes_since": lambda table: table.changes_since(fallback="snapshot").rows.select(["id", "ts"]).to_pylist(),
    "read_keys": lambda table: table.read_keys(["a"]).select(["id", "ts"]).to_pylist(),
    "filter_exists": lambda table: table.filter_exists(trips({"a": (1, "sf"), "z": (1, "sf")}))["id"].to_pylist(),
    "record_locations": lambda table: table.record_locations(["a", "z"])["partition_path"].to_pylist(),
}
EXPECTED = {"filter_exists": ["z"], "record_locations": ["city=sf", None]}


@pytest.mark.parametrize("index", ["record", "simple"])
@pytest.mark.parametrize("read", READS)
def test_reads_are_planned_again(read: str, index: str) -> None:
    store = OvertakenStore.over(store_of(1, 2, index=index))

    def others(inner: MemoryStore) -> None:
        upserts(inner, 3)
        Table(inner).insert_overwrite(trips({"a": (4, "sf")}))
        upserts(inner, 5)
        cleaned(inner)

    table = Table(store)
    store.act = others
    assert READS[read](table) == EXPECTED.get(read, [{"id": "a", "ts": 5}])
    assert store.act is None


def overtake(store: MemoryStore) -> None:
    """Replace all file slices, and delete those that a view before saw."""
    Table(store).insert_overwrite(trips({"x": (4, "sf"), "y": (4, "la")}))
    upserts(store, 5, 6)
    cleaned(store)


@pytest.mark.parametrize("where", [None, "ts > 1", "city = 'la'", "id = 'a'"])
def test_explain_counts_the_slices_of_the_plan(where: str | None) -> None:
    store = store_of()
    Table(store).upsert(trips({"a": (3, "sf"), "b": (1, "la"), "c": (1, "nyc")}))
    condition = None if where is None else Condition.parse(where)
    plan = plan_scan(Table(store).view(), where=condition)
    before = explain(plan)
    assert before.all_file_slices == 3
    overtake(store)
    if where in ("id = 'a'", "city = 'la'"):  # only the partition of the key, or of the condition, was listed
        with pytest.raises(ViewOvertakenError):
            explain(plan)
    else:
        assert explain(plan) == before


def test_a_check_of_the_index_begins_again() -> None:
    store = store_of()
    Table(store).upsert(trips({"a": (1, "sf"), "b": (1, "la")}))
    upserts(store, 2)
    others: list[Callable[[MemoryStore], None]] = [overtake]

    def engine(work_bytes: int) -> Engine:
        if others:
            others.pop()(store)
        return local_engine(work_bytes)

    report = verify_record_index(Table(store).view().state, engine)
    assert report.ok
    assert report.checked["entries"] == 3
    since, _ = upserts(store, 7, 8)
    others.append(overtake)
    with pytest.raises(HistoryLostError):
        verify_changes(Table(store).view().state, since, engine)
    assert not others


@pytest.mark.parametrize("what", ["files", "slices", "partitions", "statistics"])
def test_an_overtaken_inspection_is_refused(what: str) -> None:
    store = store_of(1, 2)
    inspection = Table(store).inspect
    assert getattr(inspection, what)().num_rows > 0
    upserts(store, 3, 4, 5)
    cleaned(store)
    with pytest.raises(ViewOvertakenError):
        getattr(inspection, what)()
    assert getattr(Table(store).inspect, what)().num_rows > 0


def test_the_data_source_plans_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = OvertakenStore.over(store_of(1, 2))

    def others(inner: MemoryStore) -> None:
        upserts(inner, 3, 4, 5)
        cleaned(inner)

    options = read_options.ReadOptions(store.spec)
    monkeypatch.setattr(read_options, "open_store", lambda *_: store)
    store.act = others
    assert read_table(options.plan(["ts"]))["ts"].to_pylist() == [5]


def test_the_look_up_of_spark_refuses_an_overtaken_view() -> None:
    store = store_of(1, 2)
    view = Table(store).view()
    Table(store).insert_overwrite(trips({"a": (4, "sf")}))
    upserts(store, 5)
    cleaned(store)
    with pytest.raises(ViewOvertakenError):
        FileGroupLookUp.of(view)


def test_a_snapshot_instead_of_changes_is_the_newest_one() -> None:
    """The clean that ends the changes may have taken files of the view on which they were planned."""
    store = store_of(1, 2, 3)
    instants = [found.requested_time for found in Table(store).timeline]
    cleaned(store)
    view = Table(store).view()
    upserts(store, 4)
    with pytest.warns(HoodieWarning, match="all rows of the table are returned"):
        plan = plan_batch(view, instants[0], instants[0], fallback="snapshot")
    assert read_table(plan.scan)["ts"].to_pylist() == [4]
    assert plan.until == max(Table(store).view().order_time(found) for found in Table(store).view().completed_writes())


def test_the_error_of_an_overtaken_view_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(ViewOvertakenError("gone", oldest_instant="7")))
    assert (type(error), str(error), error.oldest_instant) == (ViewOvertakenError, "gone", "7")
