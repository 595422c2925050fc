"""Upgrades and downgrades: rows, snapshots of the past and services go on; what is in the way is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CommitConflictError, CorruptFileError, InvalidConfigError, UnsupportedError
from hoodie.format.instants.archive_log import archive_log_to_bytes
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.table.versions import TableVersion
from hoodie.index import PARTITIONED_RECORD
from hoodie.services.versions import move as move_module
from hoodie.services.versions import timeline_copy
from hoodie.services.versions.kept import MOVE
from hoodie.storage import Store
from hoodie.table import Table
from hoodie.timeline import Action, ArchiveLogs, Heartbeat
from hoodie.timeline.heartbeat import heartbeat_path
from hoodie.view.slices import list_slices
from tests.support.archived import OFTEN
from tests.support.deaths import die
from tests.support.index_check import check_index
from tests.support.refusals import refused
from tests.support.rows import assert_same_rows
from tests.support.steps import begin
from tests.support.tables import SCHEMA, contents, made_once, new_table, trips

OFF = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def new(version: int, table_type: str = "merge_on_read", **options: Any) -> Table:
    options |= {"type": table_type, "table_version": version, "partition_by": "city", "ordering": "ts"}
    return new_table(SCHEMA, **options)


@made_once
def copied(version: int, *counts: int, **options: Any) -> Table:
    """A copy-on-write table that was written to with so many keys each time."""
    table = new(version, "copy_on_write", **options)
    for count in counts:
        written(table, range(count))
    return table


def written(table: Table, numbers: range, city: str = "sf") -> str:
    rows = {f"k{n}": (numbers.start, city) for n in numbers}
    instant = table.upsert(trips(rows), properties=OFF).instant
    assert instant is not None
    return instant


def move(table: Table, to: int, **options: Any) -> move_module.VersionResult:
    up = table.view().config.version.value < to
    return (table.upgrade if up else table.downgrade)(to, dry_run=False, **options)


def rows_at(table: Table, instant: str | None = None) -> pa.Table:
    """Rows without the names of files, which a compaction changes."""
    return table.to_arrow(as_of=instant).drop_columns(["_hoodie_file_name"])


def store_of(table: Table) -> Store:
    return table.view().store


def archived_history(table: Table) -> list[Any]:
    rows: list[Any] = table.history(archived=True).select(["instant", "action"]).to_pylist()
    return rows


def archived_plans(table: Table) -> dict[str, bool]:
    """Whether each archived instant has its plan."""
    return {found.requested_time: found.plan is not None for found in table.view().archive().all_contents()}


LONG, SHORT, UP_FIRST = (9, 8, 6, 8, 9), (9, 6, 9), (8, 9, 8)


@pytest.mark.parametrize(
    ("table_type", "index", "versions"),
    [
        ("copy_on_write", "record", LONG),
        ("copy_on_write", "simple", SHORT),
        ("copy_on_write", "bucket", UP_FIRST),
        ("merge_on_read", "simple", LONG),
        ("merge_on_read", "bucket", LONG),
        ("merge_on_read", "record", SHORT),
        ("merge_on_read", "bucket", SHORT),
        ("merge_on_read", "simple", UP_FIRST),
        ("merge_on_read", "record", UP_FIRST),
    ],
)
def test_every_snapshot_stays(table_type: str, index: str, versions: Sequence[int]) -> None:
    """Each index along each path once, and each type with each index and with each path."""
    table = new(versions[0], table_type, index=index)
    snapshots = {}
    for number, version in enumerate(versions):
        if number:
            result = move(table, version)
            assert (result.from_version, result.to_version) == (versions[number - 1], version)
        for start in (3 * number, 3 * number + 1):
            instant = written(table, range(start, start + 4), ("sf", "nyc")[start % 2 if index != "record" else 0])
            snapshots[instant] = rows_at(table)
        for instant, rows in snapshots.items():
            assert_same_rows(rows_at(table, instant), rows, meta=True)
        assert table.verify(full=True).ok
    assert table.drop_old_timeline(dry_run=False).notes or MOVE not in table.view().config.raw


@pytest.mark.filterwarnings("ignore:the metadata partitions")
@pytest.mark.parametrize(
    ("name", "versions"), [("v6_cow", (9, 6)), ("v6_mor", (8, 9)), ("v8_cow", (6, 9)), ("v8_mor", (9, 8))]
)
def test_tables_of_the_jvm(golden_tables: Path, tmp_path: Path, name: str, versions: Sequence[int]) -> None:
    """Each move once; `test_every_snapshot_stays` has the longer ways."""
    table = hoodie.open(shutil.copytree(golden_tables / name, tmp_path / name), spark=False)
    before = {i.requested_time: rows_at(table, i.requested_time) for i in table.timeline.completed().writes()}
    for version in versions:
        move(table, version)
        for instant, rows in before.items():
            assert_same_rows(rows_at(table, instant), rows, meta=True)
        assert "record_index" in table.view().config.metadata_partitions
        report = table.verify(full=True)
        assert report.ok, report


def test_a_plan_changes_nothing_and_says_what_it_does() -> None:
    table = new(6)
    written(table, range(3))
    written(table, range(2))
    before = contents(store_of(table))
    plan = table.upgrade(to=9)
    assert contents(store_of(table)) == before
    assert plan.dry_run
    assert plan.in_the_way == ()
    assert plan.steps == (
        "compact 1 file slice with 1 log file",
        "copy the timeline of 2 instants and its archive from .hoodie to .hoodie/timeline",
        "compare the copy with the original: instants, their contents, and the files of all partitions",
        "set hoodie.table.version=9, and change hoodie.compaction.payload.class, hoodie.record.merge.mode, "
        "hoodie.record.merge.strategy.id, hoodie.table.initial.version, hoodie.table.legacy.payload.class, "
        "hoodie.table.ordering.fields, hoodie.table.precombine.field, hoodie.timeline.layout.version",
        "build the metadata partitions files anew",
        "keep the old timeline until t.drop_old_timeline() deletes it",
    )
    assert plan.lost[0].startswith("requested times as the order")
    assert "readers of the result:\n    - hoodie; JVM Hudi 1.1 and 1.2" in str(plan)
    assert json.loads(json.dumps(plan.to_dict()))["to_version"] == 9
    assert table.upgrade(to=6).notes == ("the table has version 6",)


def test_the_wrong_direction_and_unknown_versions() -> None:
    table = new(8)
    for call, version, error, told in (
        (table.upgrade, 6, InvalidConfigError, "call t.downgrade(to=6)"),
        (table.downgrade, 9, InvalidConfigError, "call t.upgrade(to=9)"),
        (table.upgrade, 7, UnsupportedError, "upgrade(to=7)"),
    ):
        with refused(table, told, error=error):
            call(version)


def test_the_archive_savepoints_and_checkpoints_move() -> None:
    table = new(6, "copy_on_write")
    saved = written(table, range(9))
    table.savepoint()
    table.write_batch(trips({"x": (1, "sf")}), 3, query="q")
    for start in range(5):
        written(table, range(start, start + 3))
    table.clean(properties={"hoodie.clean.commits.retained": "1"})
    for start in range(5):
        written(table, range(start, start + 3))
    table.archive(properties={**OFTEN, "hoodie.archive.beyond.savepoint": "true"})
    history, plans = archived_history(table), archived_plans(table)
    assert len(history) > len(table.timeline)
    assert any(plans.values()), "the clean was not archived"
    for version in (9, 6, 8):
        result = move(table, version)
        assert result.counts["archived_instants"] > 5
        assert (archived_history(table), archived_plans(table)) == (history, plans)
        assert [found.instant for found in table.savepoints()] == [saved]
        assert len(table.to_arrow(as_of=saved)) == 9
        assert table.write_batch(trips({"x": (1, "sf")}), 3, query="q") is None
        assert table.verify(full=True).ok
    written(table, range(2))
    table.archive(properties=OFTEN)


def test_a_downgrade_leaves_instant_files_as_hudi_0_15_has_them() -> None:
    """The archiver of 0.15 reads the plan of a clean in its inflight file, and no content of requested commits."""
    table = new(8, "copy_on_write")
    for start in range(3):
        written(table, range(start, start + 3))
    clean = table.clean(properties={"hoodie.clean.commits.retained": "1"}).instant
    commit = table.timeline.writes().completed().instants[0].requested_time
    content = CommitMetadata().to_bytes(TableVersion.EIGHT)
    store_of(table).replace(f".hoodie/timeline/{commit}.commit.requested", content)
    move(table, 6)
    read = store_of(table).read
    assert read(f".hoodie/{commit}.commit.requested") == b""
    plan = read(f".hoodie/{clean}.clean.inflight")
    assert plan
    assert plan == read(f".hoodie/{clean}.clean.requested")
    move(table, 8)
    assert table.verify(full=True).ok


@pytest.mark.parametrize("storage", ["memory", "local"])
def test_completion_times_go_to_version_6_and_back(tmp_path: Path, storage: str) -> None:
    """A local file, as one in memory, keeps its completion time as its change time."""
    table = new(9, path=tmp_path if storage == "local" else None)
    for number in range(3):
        written(table, range(number, number + 2))
    ends = completions(table)
    for version in (6, 9):
        move(table, version)
        assert ends.items() <= completions(table).items(), version


def test_archived_completion_times_that_cannot_be_are_not_taken() -> None:
    """A copy of a table has the change times of the copy: Hudi 0.15 archives them, if it archives afterwards."""
    table = new(6, "copy_on_write")
    for number in range(9):
        written(table, range(number, number + 2))
    table.clean(properties={"hoodie.clean.commits.retained": "1"})
    table.archive(properties=OFTEN)
    archive = table.view().stored_archive()
    assert isinstance(archive, ArchiveLogs)
    late = [replace(found, completion_time="20991231235959999") for found in archive.all_contents()]
    (path,) = (info.path for info in archive.store.list(archive.folder) if info.size_bytes)
    archive.store.replace(path, archive_log_to_bytes(late))
    table = Table(archive.store)
    move(table, 8)
    writes = (*table.view().archived_writes(), *table.timeline.writes().completed())
    ends = [found.completion_time or "" for found in sorted(writes, key=lambda found: found.requested_time)]
    assert len(ends) == 9
    assert ends == sorted(ends)
    assert ends[-1] < "2099"


def completions(table: Table) -> dict[str, str | None]:
    return {found.requested_time: found.completion_time for found in table.timeline.completed()}


def test_what_is_pending_is_ended_or_named() -> None:
    table = new(9)
    written(table, range(4))
    written(table, range(2))
    assert table.schedule_compaction()
    assert "end what is pending" in table.downgrade(8).steps[0]
    planned = table.schedule_clustering("ts", partitions=["city=sf"])
    if planned is None:  # its only file group is in the compaction
        table.compact()
        planned = table.schedule_clustering("ts")
    before = contents(store_of(table))
    assert [text.partition(":")[0] for text in table.downgrade(8).in_the_way] == [
        f"{planned}.clustering (requested) is pending"
    ]
    with pytest.raises(UnsupportedError, match=rf't\.cluster\(instant="{planned}"\) executes it'):
        table.downgrade(8, dry_run=False)
    assert contents(store_of(table)) == before
    table.cluster(instant=planned)
    assert move(table, 8).to_version == 8


def test_a_pending_restore_names_the_call_that_completes_it() -> None:
    table = new(9)
    written(table, range(4))
    saved = str(table.savepoint().instant)
    written(table, range(2))
    store = store_of(table)
    die(store, lambda table: table.restore(saved), ".rollback.inflight")
    (told,) = [text for text in table.downgrade(8).in_the_way if ".restore" in text]
    assert told.endswith(f"is pending: t.restore('{saved}') completes it")
    table.restore(saved)
    assert move(table, 8).to_version == 8


def test_a_running_writer_is_in_the_way() -> None:
    table = copied(8, 4)
    store = store_of(table)
    pending = "20990101000000000"
    heartbeat = Heartbeat(store, pending)
    heartbeat.start()
    try:
        begin(table, Action.COMMIT, at=pending)
        with pytest.raises(UnsupportedError, match="its writer is running"):
            table.upgrade(dry_run=False)
    finally:
        heartbeat.stop()
    assert move(table, 9).notes == (f"rolled back {pending}, whose writer had died (0 files)",)


def test_a_writer_that_began_before_the_move_is_refused_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the timeline of the old version in mind, and its commit would be in no timeline."""
    table = copied(6, 3)
    other = hoodie.open(table.path, spark=False)
    other.count()
    move(table, 8)
    assert written(other, range(9)) in {i.requested_time for i in table.timeline}
    assert table.count() == 9


def test_column_statistics_and_filters() -> None:
    table = copied(9, 4)
    table.index.build("column_stats")
    table.index.build("bloom_filters")
    plan = table.downgrade(8)
    assert "keep the metadata partitions bloom_filters, files, record_index" in plan.steps
    move(table, 8)
    assert {"files", "bloom_filters"} <= {*table.view().config.metadata_partitions}
    assert table.verify(full=True).ok
    move(table, 9)
    assert table.verify(full=True).ok


@pytest.mark.parametrize("version", [6, 8])
def test_an_older_version_has_no_partitioned_record_index(version: int) -> None:
    """The properties that ask for it go with it."""
    table = copied(9, 4, index="partitioned_record")
    plan = table.downgrade(version)
    assert plan.lost[0] == f"the metadata partition record_index: version {version} does not have it"
    move(table, version)
    assert table.view().config.metadata_partitions == ("files",)
    named = {*PARTITIONED_RECORD.stored_properties(table.view().config.raw)}
    assert named & table.view().config.raw.keys() == set()
    written(table, range(6))
    assert table.count() == 6
    assert table.verify(full=True).ok
    move(table, 9)
    assert table.view().config.metadata_partitions == ("files",)
    assert table.count() == 6


def test_a_refused_downgrade_keeps_the_partitioned_record_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer begins after the preparation: nothing is dropped then."""
    table = copied(9, 4, index="partitioned_record")
    prepare = move_module._prepare

    def then_a_writer_begins(call: Any) -> Any:
        notes = prepare(call)
        pending = begin(table, Action.COMMIT)
        store_of(table).create(heartbeat_path(pending), b"")
        return notes

    monkeypatch.setattr(move_module, "_prepare", then_a_writer_begins)
    before = table.view().config
    with pytest.raises(CommitConflictError, match="The table was not moved"):
        table.downgrade(8, dry_run=False)
    assert table.view().config == before
    check_index(table.view())


def test_a_record_index_that_cannot_be_built_is_named() -> None:
    """An insert looks up no keys; a record index holds one row of each key."""
    statistics = {"hoodie.metadata.index.column.stats.enable": "true"}
    table = new(6, index="record", properties=statistics)
    written(table, range(2))
    table.insert(trips({"k0": (5, "sf")}))
    done = move(table, 9)
    assert any("the record index was not built" in note and "k0" in note for note in done.notes), done
    assert table.view().config.version.value == 9
    assert {"files", "column_stats"} <= {*table.view().config.metadata_partitions}
    assert "record_index" not in table.view().config.metadata_partitions
    assert table.count() == 3
    table.delete(pa.table({"id": ["k0"], "city": ["sf"]}))
    assert table.index.build("record").counts["entries"] == 1
    assert table.verify(full=True).ok


def complex_table(version: int, bare: bool) -> Table:
    encoding = {"hoodie.write.complex.keygen.new.encoding": str(bare).lower()} if version < 9 else {}
    table = new(version, "copy_on_write", key_generator="complex", properties=encoding)
    table.upsert(trips({"a": (1, "sf")}))
    return table


def test_complex_keys_of_one_column() -> None:
    with pytest.raises(UnsupportedError, match="the stored keys are bare values"):
        complex_table(8, True).upgrade(dry_run=False)
    assert move(complex_table(8, False), 9).to_version == 9
    table = complex_table(9, False)
    with pytest.raises(UnsupportedError, match=r"complex\.keygen\.validation\.enable=false"):
        table.downgrade(8, dry_run=False)
    move(table, 8, properties={"hoodie.write.complex.keygen.validation.enable": "false"})
    table.upsert(trips({"a": (2, "sf")}))
    assert table.to_arrow()["_hoodie_record_key"].to_pylist() == ["id:a"]


def test_the_old_timeline_is_kept_and_dropped() -> None:
    table = copied(6, 3)
    assert table.drop_old_timeline(dry_run=False).notes == ("no old timeline is kept",)
    move(table, 9)
    store = store_of(table)
    old = [name for name in store.names(".hoodie") if name[0].isdigit()]
    assert len(old) == 3
    assert table.drop_old_timeline().counts == {"files_deleted": 3}
    assert [name for name in store.names(".hoodie") if name[0].isdigit()] == old
    table.drop_old_timeline(dry_run=False)
    assert not [name for name in store.names(".hoodie") if name[0].isdigit()]
    assert store.names(".hoodie/archived") == []
    assert table.count() == 3


def test_a_writer_that_goes_on_with_the_old_version_is_found() -> None:
    table = copied(6, 3)
    move(table, 9)
    store_of(table).create(".hoodie/20990101000000000.commit", b"{}")
    with pytest.raises(CommitConflictError, match="found 20990101000000000: a writer still writes that version"):
        table.drop_old_timeline()
    (finding,) = table.verify().findings
    assert (finding.kind, finding.key) == ("old-timeline-written", "20990101000000000")


@pytest.mark.parametrize(
    ("versions", "late"),
    [((6, 9), ".hoodie/{time}.commit"), ((9, 6), ".hoodie/timeline/{time}_{time}.commit")],
    ids=["up", "down"],
)
def test_a_late_writer_of_the_old_version_blocks_the_way_back(versions: tuple[int, int], late: str) -> None:
    """The copy would delete its instants."""
    table = copied(versions[0], 3)
    move(table, versions[1])
    path = late.format(time="20990101000000000")
    store_of(table).create(path, b"{}")
    operation = table.upgrade if versions[0] > versions[1] else table.downgrade
    (named,) = operation(to=versions[0]).in_the_way
    assert named.startswith("20990101000000000.commit (completed) was written to the old timeline")
    data = "city=sf/88888888-574a-47eb-8b2f-5817642eb63e-0_0-34-0_20990101000000000.parquet"
    store_of(table).create(data, b"rows that are nowhere else")
    assert table.verify().problems == {"old-timeline-written": 1}
    table.repair(dry_run=False, min_age_seconds=0)
    assert store_of(table).head(data) is not None
    with refused(table, "Stop its writer, write these rows again", error=UnsupportedError):
        operation(to=versions[0], dry_run=False)
    store_of(table).delete(path)
    assert move(table, versions[0]).to_version == versions[0]
    assert table.count() == 3
    assert table.verify().problems == {"file-orphaned": 1}


@pytest.mark.parametrize("versions", [(9, 6), (6, 9)], ids=str)
def test_lost_properties_are_those_of_the_new_version(versions: Sequence[int]) -> None:
    """The timeline of the old version is still there, and lacks what was written since; no metadata table tells."""
    table = copied(versions[0], 3, index="simple")
    move(table, versions[1])
    written(table, range(9))
    store, path = store_of(table), table.path
    store.delete(".hoodie/hoodie.properties")
    store.delete_folder(".hoodie/metadata")
    hoodie.rebuild_properties(path, record_key="id", partition_by="city", ordering="ts", dry_run=False)
    rebuilt = hoodie.open(path, spark=False)
    assert rebuilt.view().config.version.value == versions[1]
    assert rebuilt.count() == 9


def test_a_move_of_another_engine_that_stopped_half_way() -> None:
    table = copied(6, 3)
    store = store_of(table)
    store.create(".hoodie/timeline/20200101000000000_20200101000000001.commit", b"Obj")
    with pytest.raises(UnsupportedError, match="has the instant 20200101000000000, which the timeline"):
        table.upgrade(dry_run=False)
    store.delete(".hoodie/timeline/20200101000000000_20200101000000001.commit")
    assert move(table, 8).to_version == 8
    assert len(table.timeline) == 1


def test_a_copy_that_differs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    table = copied(6, 3, 5)
    copy = timeline_copy.copy_timeline

    def forgetful(view: Any, target: Any, fence: Any) -> Any:
        copied = copy(view, target, fence)
        view.store.delete(min(path for path in copied.checksums if path.endswith(".commit")))
        return copied

    with monkeypatch.context() as patched:
        patched.setattr(move_module, "copy_timeline", forgetful)
        with pytest.raises((CorruptFileError, FileNotFoundError)):
            table.upgrade(dry_run=False)
    assert table.view().config.version.value == 6
    assert table.count() == 5
    written(table, range(7))
    assert table.drop_old_timeline(dry_run=False).counts["files_deleted"]
    assert move(table, 9).to_version == 9
    assert table.count() == 7


@pytest.mark.parametrize(("version", "to"), [(6, 9), (9, 8), (9, 6)])
def test_a_plan_names_damaged_log_files(version: int, to: int) -> None:
    """They stop the compaction, after which nothing has moved."""
    table = new(version, index="bucket", properties={"hoodie.bucket.index.num.buckets": "1"})
    for start in (0, 1, 2):
        written(table, range(start, start + 3))
    operation = "upgrade" if version < to else "downgrade"
    assert getattr(table, operation)(to=to).notes == ()
    store = store_of(table)
    log = max(path for found in table.view().fact(list_slices) for path in found.paths if ".log." in path)
    content = bytearray(store.read(log))
    content[len(content) // 2] ^= 0xFF
    store.replace(log, bytes(content))
    files = contents(store)
    plan = getattr(table, operation)(to=to)
    (note,) = plan.notes
    assert note.startswith(f"{store.uri(log)} is damaged, and stops the compaction of the move: ")
    assert f"hoodie verify {store.uri('')} --full" in note
    assert note in str(plan)
    assert contents(store) == files
    with pytest.raises(CorruptFileError, match=log):
        move(table, to)
    assert table.view().config.version.value == version
