"""What waits, and the summary: each kind of pending instant, with the command that carries it on."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.cli import main
from hoodie.files.markers import write_marker
from hoodie.format.filenames import IoType
from hoodie.storage import LocalStore, MemoryStore
from hoodie.table import Table
from hoodie.timeline import Action, Heartbeat, create_inflight
from tests.support.deaths import die
from tests.support.fault_store import FaultStore
from tests.support.steps import begin
from tests.support.tables import Rows, create_in, trips, trips_store

START = {"a": (1, "sf"), "b": (1, "nyc")}
OFTEN = {"hoodie.compact.inline.max.delta.commits": "1"}


def _store(**options: object) -> MemoryStore:
    return trips_store(START, {"a": (2, "sf")}, **options)


def _upsert(table: Table) -> object:
    return table.upsert(trips({"a": (9, "sf")}))


def _waits(store: MemoryStore | LocalStore) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = Table(store).inspect.waits().to_pylist()
    for row in rows:
        if row["instant"] is not None:
            assert row["since"] is not None
    return rows


def _on_disk(folder: Path, *writes: Rows, **options: Any) -> LocalStore:
    """The same table in a folder, for commands."""
    store = LocalStore(str(folder))
    create_in(store, **options)
    for rows in writes or (START, {"a": (2, "sf")}):
        Table(store).upsert(trips(rows))
    return store


def test_nothing_waits_in_a_whole_table() -> None:
    assert _waits(_store()) == []


def test_a_dead_write() -> None:
    store = _store()
    die(store, _upsert, ".commit", "move", is_last=True)
    (row,) = _waits(store)
    assert (row["kind"], row["state"]) == ("write", "inflight")
    assert str(row["about"]).startswith("dead: a write is pending and its writer has no heartbeat")
    assert row["command"] == f"hoodie repair {store.uri('')} --execute"
    (finding,) = Table(store).inspect.summary()["findings"]
    assert (finding["kind"], finding["severity"], finding["key"]) == ("write-dead", "warning", row["instant"])
    assert finding["remedy"] == row["command"]


def test_a_running_write_needs_no_command() -> None:
    store = _store()
    time = begin(Table(store), Action.COMMIT)
    with Heartbeat(store, time):
        (row,) = _waits(store)
    assert (row["kind"], row["instant"], row["command"]) == ("write", time, "")
    assert row["about"] == "running: its writer has a heartbeat"


def _age(store: MemoryStore, instant: object) -> None:
    """Let the files of an instant be an hour old."""
    for info in store.list(".hoodie/timeline"):
        if str(instant) in info.path:
            store.set_modified_ms(info.path, info.modified_ms - 3_600_000)


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_a_young_write_without_a_heartbeat_may_be_of_a_jvm(state: str) -> None:
    store = _store()
    time = begin(Table(store), Action.COMMIT, only_requested=state == "requested")
    (row,) = _waits(store)
    assert (row["instant"], row["state"], row["command"]) == (time, state, "")
    assert str(row["about"]).startswith("pending: no heartbeat; a JVM writer may still run")
    _age(store, time)
    (row,) = _waits(store)
    assert str(row["about"]).startswith("dead")
    assert row["command"] == f"hoodie repair {store.uri('')} --execute"
    write_marker(store, time, "city=sf/f.parquet", IoType.CREATE)
    assert _waits(store)[0]["command"] == "", "it writes files"


def test_a_young_compaction_of_a_jvm_may_run() -> None:
    store = _store(table_type="merge_on_read")
    _compaction(Table(store))
    (row,) = _waits(store)
    create_inflight(store, Table(store).view().layout, str(row["instant"]), Action.COMPACTION)
    assert _waits(store)[0]["command"] == ""
    _age(store, row["instant"])
    (row,) = _waits(store)
    assert str(row["about"]).startswith("dead: its runner has no heartbeat; planned: ")
    assert row["command"] == f"hoodie compact {store.uri('')} --instant {row['instant']}"


def _compaction(table: Table) -> None:
    assert table.schedule_compaction(properties=OFTEN)


def _log_compaction(table: Table) -> None:
    for ts in range(3, 6):
        table.upsert(trips({"a": (ts, "sf")}))
    assert table.schedule_log_compaction(3)


def _clustering(table: Table) -> None:
    assert table.schedule_clustering("ts")


PLANS = [
    ("compaction", _compaction, "hoodie compact TABLE --instant INSTANT"),
    ("log_compaction", _log_compaction, "hoodie compact TABLE --instant INSTANT"),
    ("clustering", _clustering, "hoodie cluster TABLE --instant INSTANT"),
]


def _run(command: object) -> None:
    _, *arguments = shlex.split(str(command))
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code in (0, None), command


@pytest.mark.parametrize(("kind", "plan", "command"), PLANS, ids=[name for name, _, _ in PLANS])
def test_the_command_executes_a_plan(
    tmp_path: Path, kind: str, plan: Callable[[Table], None], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table_type = "copy_on_write" if kind == "clustering" else "merge_on_read"
    store = _on_disk(tmp_path / "my table", table_type=table_type)
    plan(Table(store))
    (row,) = (row for row in _waits(store) if row["kind"] != "log backlog")
    assert (row["kind"], row["state"]) == (kind, "requested")
    assert str(row["about"]).startswith("planned: ")
    path = shlex.quote(str(tmp_path / "my table"))
    assert row["command"] == command.replace("TABLE", path).replace("INSTANT", str(row["instant"]))
    _run(row["command"])
    assert [row for row in _waits(store) if row["kind"] != "log backlog"] == []
    assert capsys.readouterr().out


def _clean(table: Table) -> object:
    return table.clean(properties={"hoodie.clean.commits.retained": "1"})


def _first(table: Table) -> str:
    return table.timeline.completed().instants[0].requested_time


def _last(table: Table) -> str:
    return table.timeline.completed().instants[-1].requested_time


DEATHS: dict[str, tuple[str | None, Callable[[Table], object]]] = {
    "clean": ("record", _clean),
    "rollback": ("record", lambda table: table.rollback(_last(table))),
    "restore": ("record", lambda table: table.restore(_first(table))),
    "indexing": ("simple", lambda table: table.index.build("record")),
    "savepoint": ("record", lambda table: table.savepoint(_last(table))),
}


@pytest.mark.parametrize("kind", DEATHS)
def test_the_command_ends_a_dead_service(tmp_path: Path, kind: str) -> None:
    index, act = DEATHS[kind]
    store = _on_disk(tmp_path / "t", START, {"a": (2, "sf")}, {"a": (3, "sf")}, index=index)
    if kind == "restore":
        Table(store).savepoint(_first(Table(store)))
    die(store, act, f".{kind}", is_last=True)
    (row,) = (found for found in _waits(store) if found["kind"] == kind)
    assert str(row["about"]).startswith("dead: ")
    _run(row["command"])
    assert [found for found in _waits(store) if found["kind"] == kind] == []


def test_a_damaged_plan_is_a_row() -> None:
    store = _store(table_type="merge_on_read")
    _compaction(Table(store))
    view = Table(store).view()
    (plan,) = view.timeline.pending().instants
    path = f"{view.layout.instant_folder()}/{plan.requested_time}.compaction.requested"
    store.replace(path, b"Obj\x01 damaged")
    (row,) = _waits(store)
    assert (row["kind"], row["command"]) == ("compaction", f"hoodie repair {store.uri('')} --execute")
    assert plan.requested_time in str(row["about"])


def test_the_log_backlog_waits_for_a_compaction() -> None:
    store = trips_store(*({"a": (ts, "sf")} for ts in range(1, 6)), table_type="merge_on_read")
    (row,) = _waits(store)
    first = Table(store).timeline.completed().instants[0].requested_time
    assert (row["kind"], row["instant"], row["state"]) == ("log backlog", None, "due")
    assert row["about"] == "5 delta commits since the last compaction; it is due after 5"
    assert row["command"] == f"hoodie compact {store.uri('')}"
    assert str(row["since"])[:10].replace("-", "") == first[:8]
    Table(store).schedule_compaction()
    assert [found["kind"] for found in _waits(store)] == ["compaction"]


def test_delta_commits_without_log_files_are_no_backlog() -> None:
    files = {"hoodie.parquet.small.file.limit": "0"}
    store = trips_store(table_type="merge_on_read", index="simple", properties=files)
    table = Table(store)
    for number in range(6):
        table.insert(trips({f"k{number}": (1, "sf")}))
    assert _waits(store) == []
    table.upsert(trips({"k0": (2, "sf")}))
    assert [row["kind"] for row in _waits(store)] == ["log backlog"]
    table.insert_overwrite(trips({"k9": (1, "sf")}))
    assert _waits(store) == [], "the log file is replaced: no compaction reads it"
    assert table.compact().instant is None


def test_the_summary_of_a_table(tmp_path: Path) -> None:
    store = trips_store(START, table_type="merge_on_read")
    table = Table(store)
    summary = table.inspect.summary()
    newest = table.timeline.latest()
    assert newest is not None
    expected = {
        "path": store.uri(""),
        "type": "merge_on_read",
        "version": 9,
        "record_key": ["id"],
        "partitioned_by": ["city"],
        "ordering": ["ts"],
        "index": "record",
        "metadata_partitions": ["files", "record_index"],
        "instants": 1,
        "pending": 0,
        "findings": [],
    }
    assert {name: summary[name] for name in expected} == expected
    assert {**summary["newest"], "completed_at": None} == {
        "instant": newest.requested_time,
        "action": "deltacommit",
        "operation": "upsert",
        "completed_at": None,
    }
    assert summary["columns"][0] == {"name": "id", "type": "string", "nullable": True}
    assert new_names(summary["columns"]) == table.schema.names


def new_names(columns: list[dict[str, object]]) -> list[object]:
    return [column["name"] for column in columns]


def test_the_summary_opens_no_data_and_lists_no_data_folder() -> None:
    store = _store()
    counting = FaultStore(store)
    counting.register()
    try:
        Table(counting).inspect.summary()
        assert [call for call in counting.calls if not call.path.startswith(".hoodie")] == []
    finally:
        counting.unregister()


def test_the_summary_of_an_empty_table() -> None:
    summary = Table(trips_store()).inspect.summary()
    assert (summary["newest"], summary["instants"], summary["findings"]) == (None, 0, [])
    assert new_names(summary["columns"]) == ["id", "ts", "city", "_hoodie_is_deleted"]


def test_secrets_are_not_in_the_summary() -> None:
    secrets = {
        "hoodie.python.nothing": "x",
        "hoodie.write.lock.zookeeper.password": "s3cret-a",
        "hoodie.datasource.hive_sync.jdbcurl": "jdbc:hive2://me:s3cret-b@host/db",
        "fs.s3a.access.key": "s3cret-c",
    }
    store = _store()
    text = store.read(".hoodie/hoodie.properties").decode()
    store.replace(".hoodie/hoodie.properties", (text + "".join(f"{k}={v}\n" for k, v in secrets.items())).encode())
    properties = Table(store).inspect.summary()["properties"]
    assert "s3cret" not in str(properties)
    assert properties["fs.s3a.access.key"] == "***"
    assert properties["hoodie.datasource.hive_sync.jdbcurl"] == "jdbc:hive2://me:***@host/db"
    assert properties["hoodie.table.recordkey.fields"] == "id"


def test_a_damaged_newest_commit_is_a_finding() -> None:
    store = _store()
    view = Table(store).view()
    newest = view.completed_writes()[-1]
    folder = view.layout.instant_folder()
    (name,) = (name for name in store.names(folder) if name.startswith(f"{newest.requested_time}_"))
    store.replace(f"{folder}/{name}", b"Obj\x01 damaged")
    summary = Table(store).inspect.summary()
    assert summary["newest"] is None
    assert {found["kind"] for found in summary["findings"]} == {"unreadable"}
    assert all(found["remedy"] == f"hoodie verify {store.uri('')}" for found in summary["findings"])
    rows = Table(store).inspect.timeline().to_pylist()
    assert [row["problem"] is None for row in rows] == [False, True]
    assert rows[0]["inserted"] is None
    assert newest.requested_time in rows[0]["problem"]


@pytest.mark.parametrize("name", [f"{version}_{kind}" for version in ("v6", "v8", "v9") for kind in ("cow", "mor")])
def test_the_summary_of_tables_of_the_jvm(golden_tables: Path, name: str) -> None:
    table = hoodie.open(golden_tables / name, spark=False)
    summary = table.inspect.summary()
    assert (f"v{summary['version']}", summary["findings"]) == (name[:2], [])
    assert summary["newest"]["operation"] == "upsert"
    assert summary["instants"] == len(table.timeline)
    assert new_names(summary["columns"]) == table.schema.names
    assert table.inspect.waits().num_rows == 0
