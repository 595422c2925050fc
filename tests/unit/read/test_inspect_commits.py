"""Timelines page by page, growth by day, writers, flows and schemas."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.instants.archive import ArchivedInstant
from hoodie.format.instants.commit_metadata import CommitMetadata, WriteOperation, WriteStat
from hoodie.read.inspect import notes_of
from hoodie.read.inspect.commits import flows, growth
from hoodie.table import Table
from hoodie.timeline import TimelineArchive, archive_of
from tests.support.archived import OFTEN
from tests.support.flows import Numbers, flow_into, rows_of_numbers
from tests.support.tables import new_table, trips, trips_store

START = {"a": (1, "sf"), "b": (1, "nyc")}
GOLDEN = [f"{version}_{kind}" for version in ("v6", "v8", "v9") for kind in ("cow", "mor")]


def _archived(writes: int = 12) -> Table:
    table = Table(trips_store(START))
    for ts in range(2, writes + 1):
        table.upsert(trips({"a": (ts, "sf")}), properties=OFTEN)
    assert table.view().has_archived_instants()
    return table


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("limit", [1, 3, 200])
def test_pages_have_each_instant_once(golden_tables: Path, name: str, limit: int) -> None:
    table = hoodie.open(golden_tables / name, spark=False)
    history = table.history(archived=True)
    rows, before = [], None
    while page := table.inspect.timeline(limit, before=before, archived=True).to_pylist():
        rows += page
        before = page[-1]["instant"]
    assert pa.Table.from_pylist(rows).select(history.column_names).to_pylist() == history.to_pylist()
    assert {row["problem"] for row in rows} == {None}
    assert all(row["requested_at"] <= row["completed_at"] for row in rows)


def test_archived_instants_follow_on_later_pages() -> None:
    table = _archived()
    active = table.inspect.timeline().to_pylist()
    assert [row["instant"] for row in active] == table.history()["instant"].to_pylist()
    assert not any(row["is_archived"] for row in active)
    rows, before = [], None
    while page := table.inspect.timeline(4, before=before, archived=True).to_pylist():
        rows += page
        before = page[-1]["instant"]
    assert [row["instant"] for row in rows] == table.history(archived=True)["instant"].to_pylist()
    assert [row["is_archived"] for row in rows] == sorted(row["is_archived"] for row in rows)
    assert rows[-1]["inserted"] == 2
    assert table.inspect.timeline(0, archived=True).num_rows == 0


def test_a_savepoint_and_its_commit_are_on_one_page() -> None:
    table = Table(trips_store(START, START))
    time = table.timeline.completed().instants[0].requested_time
    table.savepoint(time)
    rows = [table.inspect.timeline(1, before=before).to_pylist() for before in (None, _newest(table))]
    assert [[row["action"] for row in page] for page in rows] == [["commit"], ["savepoint", "commit"]]


def _newest(table: Table) -> str:
    return table.timeline.completed().writes().instants[-1].requested_time


@pytest.mark.parametrize("name", GOLDEN)
def test_the_timeline_of_the_metadata_table(golden_tables: Path, name: str) -> None:
    table = hoodie.open(golden_tables / name, spark=False)
    rows = table.inspect.timeline(metadata=True).to_pylist()
    own = {instant.requested_time for instant in table.timeline.writes()}
    assert own <= {row["instant"] for row in rows}
    assert {row["problem"] for row in rows} == {None}
    assert all(row["bytes_written"] > 0 for row in rows if row["instant"] in own)
    assert new_table().inspect.timeline(metadata=True).num_rows <= 1


def test_the_times_of_an_instant() -> None:
    store = trips_store(START)
    table = Table(store)
    times = table.inspect.instant(_newest(table))["times"]
    assert times["requested"] <= times["inflight"] <= times["completed"]
    for info in store.list(".hoodie/timeline"):
        store.set_modified_ms(info.path, info.modified_ms + 60_000)
    copied = table.inspect.instant(_newest(table))["times"]
    assert copied == {**times, "inflight": None}, "a copy is younger than its commits"
    table.savepoint(_newest(table))
    assert table.inspect.instant(_newest(table), action="savepoint")["action"] == "savepoint"
    assert table.inspect.instant(_newest(table))["action"] == "commit"
    with pytest.raises(hoodie.InvalidConfigError, match="action='write'"):
        table.inspect.instant(_newest(table), action="write")
    archived = _archived().inspect
    oldest = archived.timeline(archived=True).to_pylist()[-1]
    times = archived.instant(oldest["instant"])["times"]
    assert datetime.fromisoformat(times["completed"]) == oldest["completed_at"]
    assert times["inflight"] is None


def test_growth_counts_active_and_archived_commits() -> None:
    table = _archived(12)
    table.delete(trips({"b": (1, "nyc")}))
    (row,) = table.inspect.growth().to_pylist()
    history = table.history(archived=True).to_pylist()
    for name in ("inserted", "updated", "deleted", "bytes_written", "files_created"):
        assert row[name] == sum(found[name] or 0 for found in history), name
    assert (row["commits"], row["rows"], row["small_files"]) == (13, 1, 2)
    assert row["day"] == datetime.now(UTC).date()


def _commit(day: datetime, stat: WriteStat, operation: WriteOperation = WriteOperation.UPSERT) -> ArchivedInstant:
    metadata = CommitMetadata(partition_to_write_stats={"": (stat,)}, operation_type=operation.value)
    time = f"{day:%Y%m%d%H%M%S}000"
    later = f"{day + timedelta(seconds=2):%Y%m%d%H%M%S}000"
    content = metadata.to_bytes(9)
    return ArchivedInstant(requested_time=time, completion_time=later, action="commit", metadata=content)


def test_growth_by_day() -> None:
    table = Table(trips_store(START))
    view = table.view()
    archive = archive_of(view.store, view.layout, name=view.config.archive_name)
    assert isinstance(archive, TimelineArchive)
    now = datetime(2026, 6, 30, 0, 30, tzinfo=UTC)
    stat = WriteStat(path="f", num_inserts=5, num_deletes=2, num_update_writes=1, total_write_bytes=10)
    large = WriteStat(path="g", prev_commit="20260101", num_inserts=1, file_size_bytes=10**9)
    archive.append(
        [
            _commit(datetime(2026, 6, 27, 23, 59, 59), stat),
            _commit(datetime(2026, 6, 28, 12), large),
            _commit(datetime(2026, 6, 28, 13), stat, WriteOperation.COMPACT),
            _commit(datetime(2026, 6, 30, 0, 10), stat),
        ]
    )
    rows = growth(Table(view.store).view(), 3, now=now).to_pylist()
    found = [(row["day"], row["commits"], row["inserted"], row["rows"], row["small_files"]) for row in rows]
    assert found[:2] == [(date(2026, 6, 28), 3, 6, 4, 2), (date(2026, 6, 30), 1, 5, 3, 1)]


def test_a_damaged_commit_is_a_note_of_growth() -> None:
    store = trips_store(START, {"a": (2, "sf")})
    view = Table(store).view()
    first, folder = view.completed_writes()[0], view.layout.instant_folder()
    (name,) = (name for name in store.names(folder) if name.startswith(f"{first.requested_time}_"))
    store.replace(f"{folder}/{name}", b"Obj\x01 damaged")
    inspect = Table(store).inspect
    (row,) = inspect.growth().to_pylist()
    assert (row["commits"], row["updated"]) == (1, 1)
    for report in (inspect.growth(), inspect.writers(), inspect.flows(), inspect.schemas()):
        assert any(first.requested_time in note for note in notes_of(report))
    assert [row["operation"] for row in inspect.writers().to_pylist()] == ["upsert", None]


def test_flows_and_writers_of_named_ingestions() -> None:
    store = new_table(rows_of_numbers(range(0)).schema, partition_by="city").view().store
    for name, batches in (("trips", 2), ("fares", 1)):
        flow = flow_into(store, Numbers(2 * batches), name=name, is_named=True)
        for _ in range(batches):
            flow.run_batch()
    inspect = Table(store).inspect
    newest, middle, oldest = inspect.writers().to_pylist()
    assert [(row["writer"], row["place"]) for row in (oldest, middle, newest)] == [
        ("hoodie ingest: trips", "2"),
        ("hoodie ingest: trips", "4"),
        ("hoodie ingest: fares", "2"),
    ]
    assert newest["extra"] == []
    rows = inspect.flows().to_pylist()
    assert [(row["flow"], row["kind"], row["place"], row["instant"]) for row in rows] == [
        ("fares", "ingest", "2", newest["instant"]),
        ("trips", "ingest", "4", middle["instant"]),
    ]
    later = rows[0]["completed_at"] + timedelta(minutes=5)
    assert flows(Table(store).view(), now=later)["age_seconds"].to_pylist()[0] == 300.0
    assert inspect.writers(1).to_pylist() == [newest]
    assert inspect.writers(0).num_rows == 0


def test_flows_and_writers_of_other_kinds() -> None:
    store = new_table(rows_of_numbers(range(0)).schema, partition_by="city").view().store
    flow_into(store, Numbers(2)).run_batch()
    table = Table(store)
    rows = {"id": ["x"], "n": [1], "city": ["sf"]}
    table.write_batch(rows, 4, identifier="clicks", query="q1")
    table.write_batch(rows, 5, identifier="clicks", query="q1")
    table.upsert(rows, extra_metadata={"spark.app.id": "local-1", "why": "a test"})
    table.upsert(rows)
    writers = table.inspect.writers().to_pylist()
    assert [(row["writer"], row["place"], row["extra"]) for row in writers] == [
        ("unknown", None, []),
        ("Spark application local-1", None, [("spark.app.id", "local-1"), ("why", "a test")]),
        ("stream: clicks", "batch 5", []),
        ("stream: clicks", "batch 4", []),
        ("ingestion without a name", "2", []),
    ]
    found = {(row["flow"], row["kind"], row["place"], row["instant"]) for row in table.inspect.flows().to_pylist()}
    times = [row["instant"] for row in writers]
    assert found == {("clicks", "stream", "5", times[2]), ("", "HoodieStreamer", "2", times[4])}


@pytest.mark.parametrize(("version", "key"), [(6, "deltastreamer.checkpoint.key"), (9, "streamer.checkpoint.key.v2")])
def test_passwords_are_not_in_places_and_extra_metadata(version: int, key: str) -> None:
    table = Table(trips_store(table_version=version))
    texts = {key: "https://me:s3cret@host/q?password=s3cret", "my.password": "s3cret", "url": "jdbc:h2://me:s3cret@db"}
    table.upsert(trips(START), extra_metadata=texts)
    (writer,), (flow,) = table.inspect.writers().to_pylist(), table.inspect.flows().to_pylist()
    assert writer["place"] == flow["place"] == "https://me:***@host/q?password=***"
    assert writer["extra"] == [("my.password", "***"), ("url", "jdbc:h2://me:***@db")]


def test_a_compaction_is_of_a_table_service() -> None:
    table = Table(trips_store(START, START, table_type="merge_on_read"))
    table.schedule_compaction(properties={"hoodie.compact.inline.max.delta.commits": "1"})
    table.compact()
    assert [row["writer"] for row in table.inspect.writers().to_pylist()] == ["table service", "unknown", "unknown"]


def test_archived_commits_are_a_note_of_flows_and_schemas() -> None:
    inspect = _archived().inspect
    for report in (inspect.flows(), inspect.schemas()):
        assert notes_of(report) == ("the commits of the archived timeline are not read",)


def test_schemas_have_their_differences() -> None:
    table = new_table(pa.schema([("id", pa.string()), ("x", pa.int32())]))
    (created,) = table.inspect.schemas().to_pylist()
    assert (created["instant"], [column["name"] for column in created["columns"]]) == (None, ["id", "x"])
    table.upsert({"id": ["a"], "x": pa.array([1], pa.int32())})
    table.upsert({"id": ["b"], "x": pa.array([1], pa.int32())})
    table.alter.add_column("tip", "double")
    table.alter.change_type("x", "bigint")
    table.alter.drop_column("tip")
    newest, typed, added, first = table.inspect.schemas().to_pylist()
    assert first["columns"] == [
        {"name": "id", "type": "string", "nullable": True},
        {"name": "x", "type": "int32", "nullable": True},
    ]
    assert (first["added"], first["removed"], first["changed"]) == ([], [], [])
    assert (added["added"], added["removed"], added["changed"]) == (["tip"], [], [])
    assert typed["changed"] == [{"name": "x", "from": "int32", "to": "int64"}]
    assert (newest["removed"], [column["name"] for column in newest["columns"]]) == (["tip"], ["id", "x"])
    assert newest["instant"] == table.timeline.completed().instants[-1].requested_time
