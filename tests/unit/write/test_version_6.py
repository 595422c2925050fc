"""Tables of version 6, as Hudi 0.14 and 0.15 have them: every write and service keeps the version and its forms."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.commit.steps import Step
from hoodie.errors import CommitConflictError, CorruptFileError, HoodieWarning, UnsupportedError
from hoodie.files.logs.log_scan import ScanRule, stored_blocks
from hoodie.files.markers import TEMP_FOLDER
from hoodie.files.slices import LogFile
from hoodie.format.filenames import LogFileName, name_of
from hoodie.format.instants.service_metadata import CleanerPlan
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, parse_log_blocks
from hoodie.index import table_index
from hoodie.storage import Store
from hoodie.table import Table
from hoodie.timeline import Action, forget_all, load_timeline
from tests.support.deaths import check_tidy, run_until
from tests.support.steps import ONE_TRY, SleepingWrite, begin, once_at
from tests.support.tables import SCHEMA, TYPES, Write, copy_of, new_table, rows_of, trips, values_of
from tests.unit.write.tables import memory_of

ONE_FILE = {"hoodie.parquet.small.file.limit": "0"}


def new(table_type: str = "copy_on_write", *data: pa.Table, **options: Any) -> Table:
    wanted = {"partition_by": "city", "ordering": "ts", "index": "simple", **options}
    return new_table(SCHEMA, *data, type=table_type, table_version=6, **wanted)


def logged(*values: int) -> Table:
    """A merge-on-read table whose row `a` has these values, one commit after the other."""
    return new("merge_on_read", *(trips({"a": (ts, "sf")}) for ts in values))


def check(table: Table) -> None:
    report = table.verify(full=True)
    assert report.ok, report


def die_before(store: Store, write: Write, ending: str) -> None:
    """Let a write die before it moves a file to a path with this ending."""
    calls = run_until(copy_of(store), write, None).calls
    place = next(n for n, call in enumerate(calls, 1) if call.operation == "move" and call.path.endswith(ending))
    assert run_until(store, write, place).crashed
    forget_all()


def store_of(table: Table) -> Store:
    return table.view().store


def logs_of(store: Store, city: str = "city=sf") -> list[LogFileName]:
    names = (LogFileName.parse(name) for name in store.names(city))
    return sorted((name for name in names if name is not None), key=lambda name: name.sort_key)


def blocks_of(store: Store, logs: Sequence[LogFileName]) -> list[LogBlock]:
    return [block for log in logs for block in parse_log_blocks(store.read(f"city=sf/{log}"), path=log.name)]


def test_what_a_new_table_stores() -> None:
    config = new(index=None).view().config
    assert table_index(config).name == "simple"
    raw = config.raw
    assert (raw["hoodie.table.version"], raw["hoodie.timeline.layout.version"]) == ("6", "1")
    assert raw["hoodie.table.precombine.field"] == "ts"
    assert raw["hoodie.archivelog.folder"] == "archived"
    assert raw["hoodie.table.keygenerator.class"] == "org.apache.hudi.keygen.SimpleKeyGenerator"
    assert not {"hoodie.table.ordering.fields", "hoodie.record.merge.mode", "hoodie.table.initial.version"} & raw.keys()


@pytest.mark.parametrize("table_type", TYPES)
def test_a_whole_life(table_type: str) -> None:
    table = new(table_type, properties={**ONE_FILE, "hoodie.archive.automatic": "false"})
    store = store_of(table)
    table.upsert(trips({"a": (1, "sf"), "b": (1, "sf"), "c": (1, "nyc")}))
    table.upsert(trips({"a": (2, "sf"), "e": (1, "nyc")}))
    table.delete(trips({"c": (0, "nyc")}).select(["id", "city"]))
    expected = {"a": (2, "sf"), "b": (1, "sf"), "e": (1, "nyc")}
    if table_type == "merge_on_read":
        assert table.schedule_compaction()
        assert table.compact().instant
    assert table.cluster(properties={"hoodie.clustering.plan.strategy.small.file.limit": "1000000"}).instant
    kept = table.savepoint().instant or ""
    table.upsert(trips({"a": (7, "sf"), "e": (7, "nyc")}))
    table.insert_overwrite(trips({"x": (1, "nyc")}))
    table.restore(kept)
    assert rows_of(store) == expected
    table.delete_savepoint(kept)
    for number in range(6):
        table.upsert(trips({"a": (10 + number, "sf")}))
    expected["a"] = (15, "sf")
    assert table.clean(properties={"hoodie.clean.commits.retained": "1"}).counts["files_deleted"]
    limits = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4", "hoodie.clean.commits.retained": "1"}
    before = {found.requested_time for found in table.timeline.completed().writes()}
    assert table.archive(properties=limits).counts["commits"]
    archived = {found.requested_time for found in table.view().archived_writes()}
    assert archived == before - {found.requested_time for found in table.timeline.completed().writes()} != set()
    assert rows_of(store) == expected
    check(table)
    names = {name_of(info.path) for info in store.list(".hoodie")}
    assert not any("_" in name for name in names), "version 6 has no completion times in names"
    assert any(".archive." in name for name in store.names(".hoodie/archived"))
    assert not store.list(".hoodie/timeline")


def test_the_inflight_file_of_a_clean_has_its_plan_and_its_process() -> None:
    """JVM Hudi 0.15 archives a clean, and finishes one whose process died, by the plan in the inflight file."""
    table = new(properties={"hoodie.metadata.compact.max.delta.commits": "1", **ONE_FILE})
    for ts in range(14):
        table.upsert(trips({"a": (ts, "sf")}))
    store = store_of(table)
    for folder in (".hoodie", ".hoodie/metadata/.hoodie"):
        files = {info.name: store.read(info.path) for info in store.list(folder) if ".clean." in info.name}
        begun = [name for name in files if name.endswith(".inflight")]
        assert begun, folder
        for name in begun:
            plan = CleanerPlan.parse(files[name])
            planned = CleanerPlan.parse(files[name.replace(".inflight", ".requested")])
            assert replace(plan, extra_metadata=None) == replace(planned, extra_metadata=None)
    copied = copy_of(store)
    calls = run_until(copied, lambda dying: dying.clean(properties={"hoodie.clean.commits.retained": "1"}), None).calls
    last = max(number for number, call in enumerate(calls, 1) if call.path.endswith(".clean"))
    dead = run_until(store, lambda dying: dying.clean(properties={"hoodie.clean.commits.retained": "1"}), last)
    assert dead.crashed
    (pending,) = table.timeline.pending()
    assert pending.action is Action.CLEAN
    table.upsert(trips({"b": (1, "sf")}))
    assert not table.timeline.pending().instants
    assert rows_of(store) == {"a": (13, "sf"), "b": (1, "sf")}


def test_instants_are_json_and_a_clustering_is_a_replace_commit() -> None:
    table = new("copy_on_write", *(trips({key: (1, "sf")}) for key in "abc"), properties=ONE_FILE)
    store = store_of(table)
    completed = [info for info in store.list(".hoodie") if info.name.endswith(".commit")]
    assert all(json.loads(store.read(info.path))["operationType"] == "UPSERT" for info in completed)
    planned = table.schedule_clustering(properties={"hoodie.clustering.plan.strategy.small.file.limit": "1000000"})
    assert planned is not None
    assert store.head(f".hoodie/{planned}.replacecommit.requested") is not None
    assert [found.action for found in load_timeline(store, table.view().layout).pending()] == [Action.CLUSTERING]
    assert table.cluster(instant=planned).instant == planned
    assert store.head(f".hoodie/{planned}.replacecommit") is not None


def test_log_files_have_the_base_instant_of_their_slice() -> None:
    table = logged(1, 2, 3)
    base = table.timeline.instants[0].requested_time
    planned = table.schedule_compaction()
    table.upsert(trips({"a": (4, "sf")}))
    store = store_of(table)
    assert [(log.instant_time, log.version) for log in logs_of(store)] == [(base, 1), (base, 2), (planned, 1)]
    assert rows_of(store) == {"a": (4, "sf")}
    metadata = table.view().commit_metadata(table.timeline.completed().instants[-1])
    (stat,) = metadata.write_stats()
    assert stat.log_files is not None
    assert len(stat.log_files) == 3, "the statistic names all log files of the slice"
    table.compact()
    assert rows_of(store) == {"a": (4, "sf")}


def test_two_writers_of_one_slice_never_write_one_file() -> None:
    table = logged(1)
    store = store_of(table)
    first = run_until(store, lambda dying: dying.upsert(trips({"a": (5, "sf")})), None)
    assert not first.crashed
    tokens = [log.write_token for log in logs_of(store)]
    table.upsert(trips({"a": (6, "sf")}))
    assert len({*tokens, *(log.write_token for log in logs_of(store))}) == 2


def test_a_dead_append_is_undone_by_a_block() -> None:
    table = new("merge_on_read", trips({"a": (1, "sf"), "b": (1, "sf")}))
    base, store = table.timeline.instants[-1].requested_time, store_of(table)
    die_before(store, lambda dying: dying.upsert(trips({"a": (9, "sf"), "z": (9, "la")})), ".deltacommit")
    (dead,) = table.timeline.pending().instants
    markers = [info.name for info in store.list(f"{TEMP_FOLDER}/{dead.requested_time}", recursive=True)]
    assert sorted(name.rpartition(".")[2] for name in markers) == ["APPEND", "CREATE"]
    assert rows_of(store) == {"a": (1, "sf"), "b": (1, "sf")}
    result = table.upsert(trips({"b": (2, "sf")}))
    assert any("rolled back" in note for note in result.notes)
    logs = logs_of(store)
    assert [(log.instant_time, log.version) for log in logs] == [(base, 1), (base, 2), (base, 3)]
    (command,) = blocks_of(store, logs[1:2])
    assert command.is_rollback
    assert command.headers[HeaderKey.TARGET_INSTANT_TIME] == dead.requested_time
    found = [LogFile("city=sf", log, store.head(f"city=sf/{log.name}").size_bytes) for log in logs]  # type: ignore[union-attr]
    counted = stored_blocks(store, found, ScanRule(timeline=table.timeline))
    assert [block.instant_time for block in counted] == [result.instant]
    assert rows_of(store) == {"a": (1, "sf"), "b": (2, "sf")}
    assert not store.names("city=la") or store.names("city=la") == [".hoodie_partition_metadata"]
    check_tidy(store, has_record_index=False)


def test_a_completed_append_is_rolled_back() -> None:
    table = logged(1)
    wrong = table.upsert(trips({"a": (2, "sf"), "b": (1, "la")})).instant
    assert table.rollback(wrong).counts["instants"] == 1
    store = store_of(table)
    assert rows_of(store) == {"a": (1, "sf")}
    blocks = blocks_of(store, logs_of(store))
    assert [block.block_type for block in blocks] == [BlockType.AVRO_DATA, BlockType.COMMAND]
    table.upsert(trips({"a": (3, "sf")}))
    assert rows_of(store) == {"a": (3, "sf")}
    check(table)


@pytest.mark.parametrize("has_markers", [True, False])
def test_a_dead_compaction_leaves_the_log_files_of_later_commits(has_markers: bool) -> None:
    table = new("merge_on_read", trips({"a": (1, "sf"), "b": (1, "sf")}), trips({"a": (2, "sf")}))
    store = store_of(table)
    planned = table.schedule_compaction()
    table.upsert(trips({"a": (3, "sf")}))
    die_before(store, lambda some: some.compact(), ".commit")
    if not has_markers:
        # As a JVM without markers leaves it: the files are found by their names.
        store.delete_folder(f"{TEMP_FOLDER}/{planned}")
        store.replace(f".hoodie/{planned}.compaction.inflight", b"")
    expected = {"a": (3, "sf"), "b": (1, "sf")}
    assert rows_of(store) == expected
    table = hoodie.open(table.path, spark=False)
    assert table.compact(instant=planned).instant == planned
    assert rows_of(store) == expected
    check(table)


def test_a_compaction_waits_for_pending_writes() -> None:
    table = logged(1, 2)
    die_before(store_of(table), lambda dying: dying.upsert(trips({"a": (9, "sf")})), ".deltacommit")
    with pytest.raises(CommitConflictError, match="planned while no write is pending"):
        table.schedule_compaction()
    table.upsert(trips({"a": (3, "sf")}))
    assert table.schedule_compaction()


def test_the_metadata_table_is_of_version_6_too() -> None:
    table = new("merge_on_read", properties={"hoodie.metadata.compact.max.delta.commits": "3"})
    store, folder = store_of(table), ".hoodie/metadata/files"
    instants = [table.upsert(trips({"a": (number, "sf")})).instant for number in range(6)]
    names = sorted(info.name for info in store.list(".hoodie/metadata/.hoodie") if info.name.endswith("commit"))
    assert names[0] == "00000000000000010.deltacommit"
    compactions = [name for name in names if name.endswith("001.commit")]
    assert compactions
    bases = [name.rpartition("_")[2].removesuffix(".hfile") for name in store.names(folder) if name.endswith(".hfile")]
    assert max(bases) == max(compactions).removesuffix(".commit")
    assert {LogFileName.parse(name).instant_time for name in store.names(folder) if ".log." in name} <= {*bases}  # type: ignore[union-attr]
    assert max(instants) > max(bases)
    check(table)


def test_a_metadata_table_whose_version_was_changed_alone_is_named_and_built_anew() -> None:
    table = new("copy_on_write", trips({"a": (1, "sf")}))
    store = store_of(new_table(SCHEMA, trips({"x": (1, "sf")})))
    store_of(table).delete_folder(".hoodie/metadata")
    for info in store.list(".hoodie/metadata", recursive=True):
        store_of(table).create(info.path, store.read(info.path))
    table = hoodie.open(table.path, spark=False)
    with pytest.warns(HoodieWarning, match="has version 9, the data table has version 6: .*builds it anew"):
        assert rows_of(store_of(table)) == {"a": (1, "sf")}
    assert table.verify().problems == {"metadata-missing": 1}
    with pytest.warns(HoodieWarning, match="metadata table has version 9"):
        table.upsert(trips({"b": (1, "sf")}))
    assert rows_of(store_of(table)) == {"a": (1, "sf"), "b": (1, "sf")}
    check(table)


@pytest.mark.parametrize("table_type", TYPES)
def test_statistics_and_filters_in_the_metadata_table(table_type: str) -> None:
    asked = {
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.compact.max.delta.commits": "3",
    }
    table = new(table_type, index="bloom", properties={**ONE_FILE, **asked})
    for number in range(8):
        table.upsert(trips({f"k{number}": (number, "sf"), "a": (number, "la")}))
    table.delete(pa.table({"id": ["k3"], "city": ["sf"]}))
    assert table.view().config.metadata_partitions == ("bloom_filters", "column_stats", "files")
    assert "hoodie.table.metadata.partitions" in table.view().config.raw
    assert table.to_arrow(columns=["id"], where="id = 'k5'")["id"].to_pylist() == ["k5"]
    assert table.explain("id = 'k5'").file_slices < table.explain().file_slices
    # Readers with Hudi 0.15 take a column without a range for a column of nulls.
    assert table.explain(f"_hoodie_commit_seqno = '{table.timeline.instants[2].requested_time}_9_9'").file_slices < 8
    check(table)
    for name in ("column_stats", "bloom_filters"):
        table.index.drop(name)
        table.index.build(name)
    table.upsert(trips({"k9": (9, "sf")}))
    assert table.explain("id = 'k9'").file_slices < table.explain().file_slices
    check(table)
    with pytest.raises(hoodie.UnsupportedError, match="tables of version 6 have no partition partition_stats"):
        table.index.build("partition_stats")


def test_log_compactions_and_parts_of_rows_need_version_8() -> None:
    table = logged(0, 1, 2, 3)
    with pytest.raises(hoodie.UnsupportedError, match="log compactions need version 8"):
        table.schedule_log_compaction()
    table.update({"ts": "ts + 5"}, properties={"hoodie.python.partial.updates": "always"})
    store = store_of(table)
    assert not any(HeaderKey.IS_PARTIAL in block.headers for block in blocks_of(store, logs_of(store)))
    assert rows_of(store) == {"a": (8, "sf")}


@pytest.fixture(params=["v6_cow", "v6_mor"])
def of_jvm(request: pytest.FixtureRequest, golden_tables: Path, tmp_path: Path) -> Table:
    """A table that JVM Hudi wrote, with a record index, statistics and filters."""
    root = tmp_path / request.param
    shutil.copytree(golden_tables / request.param, root)
    return hoodie.open(root, spark=False)


def test_a_table_of_the_jvm_keeps_its_indexes(of_jvm: Table) -> None:
    rows = of_jvm.to_arrow()
    changed = rows.slice(0, 3).drop_columns([name for name in rows.schema.names if name.startswith("_hoodie")])
    assert of_jvm.upsert(changed).inserted == 0
    assert of_jvm.view().config.version.value == 6
    assert of_jvm.view().config.metadata_partitions == ("bloom_filters", "column_stats", "files", "record_index")
    assert of_jvm.to_arrow(where="uuid = 'key-000007'").num_rows == 1
    assert of_jvm.explain("fare < -1").file_slices == 0
    assert of_jvm.count() == rows.num_rows
    check(of_jvm)


def test_rows_as_of_an_archived_instant() -> None:
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", "hoodie.clean.automatic": "false"}
    table = new(properties={**limits, "hoodie.clean.commits.retained": "1", "hoodie.archive.automatic": "false"})
    instants = [table.upsert(trips({"a": (ts, "sf")})).instant for ts in range(16)]
    assert table.archive().counts["commits"]
    assert table.to_arrow(columns=["ts"], as_of=instants[2])["ts"].to_pylist() == [2]
    assert pa.compute.sum(table.changes(since=instants[0], until=instants[3])["ts"]).as_py() == 3


@pytest.mark.parametrize("block_format", ["avro", "parquet"])
def test_columns_become_wider_only_where_hudi_0_15_reads_the_logs(block_format: str) -> None:
    columns = {"id": pa.string(), "x": pa.int32(), "s": pa.struct([("y", pa.float32())]), "d": pa.decimal128(5, 2)}
    schema = pa.schema(columns)
    # Avro is the default.
    properties = {"hoodie.logfile.data.block.format": "parquet"} if block_format == "parquet" else {}
    table = new_table(schema, type="merge_on_read", table_version=6, properties=properties)
    rows = pa.table([["a"], [1], [{"y": 1.0}], [Decimal("1.25")]], schema=schema)
    table.upsert(rows)
    for name, kind in {"x": pa.int64(), "s": pa.struct([("y", pa.float64())]), "d": pa.decimal128(9, 2)}.items():
        table.upsert(rows)
        place = schema.get_field_index(name)
        wider = rows.set_column(place, name, rows[name].cast(kind))
        if name == "d" or block_format == "parquet":
            with pytest.raises(UnsupportedError, match="could not read any more"):
                table.upsert(wider)
            table.schedule_compaction(strategy="unbounded")
            table.compact()
        table.upsert(wider)
        assert table.to_arrow(name).schema.field(name).type == kind


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "magic": lambda data: b"?" + data[1:],
    "length": lambda data: data[:7] + b"\x7f" + data[8:],
    "half": lambda data: data[: len(data) // 2],
    "nothing": lambda data: b"",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_log_file_is_no_leftover_if_a_commit_recorded_rows_in_it(damage: str) -> None:
    table = logged(1, 2, 3)
    store = table.view().store
    first, second = (found.path for found in store.list("city=sf") if ".log." in found.path)
    whole = store.read(first)
    store.replace(first, DAMAGES[damage](whole))
    with pytest.raises(CorruptFileError, match="recorded rows in it") as caught:
        table.to_arrow()
    assert caught.value.path == store.uri(first)
    (finding,) = [found for found in Table(store).verify(full=True).findings if found.kind == "file-damaged"]
    assert finding.key == first
    # What a failed attempt left behind a whole block is passed over.
    store.replace(first, whole + whole[:20])
    assert rows_of(store) == {"a": (3, "sf")}
    assert second != first


@pytest.mark.parametrize("options", [ONE_TRY, {}], ids=["one try", "retried"])
@pytest.mark.parametrize("table_type", TYPES)
def test_new_columns_are_not_hidden_by_a_write_that_began_later(table_type: str, options: dict[str, str]) -> None:
    """The schema of the table is that of the write with the latest requested time."""
    table = new(table_type, trips({"a": (1, "sf"), "b": (1, "nyc")}))
    evolved = trips({"a": (2, "sf")}).append_column("c", pa.array([7], pa.int64()))
    write = SleepingWrite(store_of(table), lambda one: one.upsert(evolved, properties=options), Step.WRITTEN)
    table.upsert(trips({"b": (2, "nyc")}))
    write.wake()
    if options:
        assert isinstance(write.error, CommitConflictError)
        assert "began while the columns changed" in str(write.error)
        assert "c" not in table.schema.names
    else:
        assert write.error is None
        assert values_of(table, "id", "ts", "c") == [("a", 2, 7), ("b", 2, None)]
    check(table)


@pytest.mark.parametrize("later", ["delete_partitions", "cluster"])
@pytest.mark.parametrize("table_type", TYPES)
def test_new_columns_are_not_hidden_by_what_sets_no_schema(table_type: str, later: str) -> None:
    table = new(table_type, trips({"a": (1, "sf"), "b": (1, "nyc"), "c": (1, "la")}))
    table.upsert(trips({"b": (2, "nyc")}))
    evolved = trips({"a": (2, "sf")}).append_column("c", pa.array([7], pa.int64()))
    write = SleepingWrite(store_of(table), lambda one: one.upsert(evolved, properties=ONE_TRY), Step.BEGUN)
    acts: dict[str, Callable[[], object]] = {
        "delete_partitions": lambda: table.delete_partitions(["city=la"]),
        "cluster": lambda: table.cluster("ts", partitions=["city=la"]),
    }
    acts[later]()
    write.wake()
    assert write.error is None
    left = [] if later == "delete_partitions" else [("c", 1, None)]
    assert values_of(table, "id", "ts", "c") == [("a", 2, 7), ("b", 2, None), *left]
    check(table)


@pytest.mark.parametrize("table_type", TYPES)
def test_a_write_with_the_known_columns_goes_on_beside_a_later_one(table_type: str) -> None:
    table = new(table_type, trips({"a": (1, "sf"), "b": (1, "nyc")}))
    write = SleepingWrite(
        store_of(table), lambda one: one.upsert(trips({"a": (2, "sf")}), properties=ONE_TRY), Step.WRITTEN
    )
    table.upsert(trips({"b": (2, "nyc")}))
    write.wake()
    assert write.error is None
    assert rows_of(store_of(table)) == {"a": (2, "sf"), "b": (2, "nyc")}


@pytest.mark.parametrize("is_completed", [False, True], ids=["pending", "completed"])
@pytest.mark.parametrize("options", [ONE_TRY, {}], ids=["one try", "retried"])
def test_rows_are_not_hidden_by_a_compaction_that_was_planned_meanwhile(
    options: dict[str, str], is_completed: bool
) -> None:
    """As a JVM with concurrency control plans it: beside pending writes, whose log files have the older name."""
    table = logged(1, 2)
    planned = Table(copy_of(memory_of(table)))
    content = planned.view().store.read(f".hoodie/{planned.schedule_compaction()}.compaction.requested")

    def compact() -> None:
        begin(table, Action.COMPACTION, content, only_requested=True)
        if is_completed:
            table.compact()

    def write() -> None:
        with once_at(Step.WRITTEN, compact):
            Table(store_of(table)).upsert(trips({"a": (3, "sf")}), properties=options)

    if options:
        with pytest.raises(CommitConflictError, match="was planned while this write appended"):
            write()
    else:
        write()
    if not is_completed:
        table.compact()
    assert rows_of(store_of(table)) == {"a": (2 if options else 3, "sf")}
    check(table)


@pytest.mark.parametrize("table_type", TYPES)
def test_a_write_that_was_set_up_before_the_table_was_upgraded_is_refused(table_type: str) -> None:
    """It would write log files and an instant in the form of one version with the rules of the other."""
    table = new(table_type, trips({"a": (1, "sf")}))
    upgrade = once_at(Step.PREPARED, lambda: Table(store_of(table)).upgrade(dry_run=False))
    with upgrade, pytest.raises(CommitConflictError, match=r"properties of .* were changed \(version"):
        table.upsert(trips({"a": (2, "sf")}))
    assert len(table.timeline.pending()) == 0
    assert table.upsert(trips({"a": (3, "sf")})).updated == 1
    assert rows_of(store_of(table)) == {"a": (3, "sf")}
