"""Archives, savepoints, restores and old instants of tables of version 6: JVM Hudi 0.15.0 and we go on with them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.files.table_properties import update_table_config
from hoodie.format.instants.commit_metadata import CommitMetadata
from hoodie.format.table.table_keys import METADATA_PARTITIONS
from hoodie.format.table.versions import TableVersion
from hoodie.timeline import Action
from tests.interop.judges import Jvm
from tests.interop.older.life import BEFORE, ONE_COMMIT, TABLE_TYPES, Life
from tests.support.archived import OFTEN
from tests.support.deaths import die_at

RELEASES = ("0.15.0",)


def _archived_by(older: Jvm, path: Path) -> list[str]:
    """Return the instants that the release finds in the archive."""
    commits = older.meta_client(path).getArchivedTimeline().getCommitsTimeline().filterCompletedInstants()
    return [instant.getTimestamp() for instant in commits.getInstants()]


def _archived_here(path: Path) -> list[str]:
    return [found.requested_time for found in hoodie.open(path, spark=False).view().archived_writes()]


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", TABLE_TYPES)
def test_both_archive_one_table(older: Jvm, tmp_path: Path, table_type: str) -> None:
    life = Life(older, tmp_path / "trips", table_type, OFTEN)
    life.create()
    past: dict[str, dict[str, int]] = {}
    archived: list[str] = []
    for turn, is_ours in enumerate((True, False)):
        for number in range(5):
            life.upsert(range(turn + number, 8 + number), is_ours=is_ours)
            newest = life.timeline.completed().filter(
                lambda found: found.action in (Action.COMMIT, Action.DELTA_COMMIT)
            )
            past[newest.instants[-1].requested_time] = dict(life.rows)
            if table_type == "MERGE_ON_READ" and number == 2:
                life.compact(is_ours=is_ours)
        found = [one.requested_time for one in hoodie.open(life.path, spark=False).view().archived_writes()]
        assert set(archived) < set(found), f"{'we' if is_ours else 'it'} archived nothing"
        assert _archived_by(older, life.path) == found
        archived = found
        life.check()
    table = life.table
    assert {*past} <= {*table.history(archived=True)["instant"].to_pylist()}
    since = archived[-1]
    expected = {key: ts for key, ts in life.rows.items() if past[since].get(key) != ts}
    assert {row["id"]: row["ts"] for row in table.changes(since=since).to_pylist()} == expected


def test_each_finishes_a_dead_clean_of_the_other(older: Jvm, tmp_path: Path) -> None:
    life = Life(older, tmp_path / "trips", "COPY_ON_WRITE")
    life.create()
    for number in range(4):
        life.upsert(range(number, 8), is_ours=number % 2 == 0)
    die_at(life.path, lambda table: table.clean(properties=ONE_COMMIT), "move", ".clean", BEFORE, tmp_path / "copy")
    (dead,) = life.timeline.pending()
    assert dead.action is Action.CLEAN
    life.check()
    life.upsert(range(3), is_ours=False)
    life.clean(is_ours=False)
    done = life.timeline.get(dead.requested_time, Action.CLEAN)
    assert done is not None
    assert done.is_completed, "it finishes our clean by the plan in the inflight file"
    life.check()
    life.upsert(range(5), is_ours=True)
    life.clean(is_ours=False)
    dead = life.timeline.completed().filter(lambda found: found.action is Action.CLEAN).instants[-1]
    for name in (f"{dead.requested_time}.clean", f".{dead.requested_time}.clean.crc"):
        (life.path / ".hoodie" / name).unlink(missing_ok=True)
    assert [found.requested_time for found in life.timeline.pending()] == [dead.requested_time]
    life.clean(is_ours=True)
    assert not life.timeline.pending().instants
    life.check()


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", TABLE_TYPES)
def test_savepoints_and_restores_of_both(older: Jvm, tmp_path: Path, table_type: str) -> None:
    life = Life(older, tmp_path / "trips", table_type)
    life.create()
    name = f"saved_{table_type.lower()}"
    life.upsert(range(10), is_ours=True)
    older.spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{life.path}'")
    life.upsert(range(4), is_ours=False)
    saved, rows = life.table.savepoint(user="ann").instant, dict(life.rows)
    shown = older.sql(f"CALL show_savepoints(table => '{name}')")
    assert shown["savepoint_time"].to_pylist() == [saved]
    life.upsert(range(3, 12), is_ours=False)
    life.upsert(range(2), is_ours=True)
    if table_type == "MERGE_ON_READ":
        life.compact(is_ours=True)
    life.upsert(range(1, 3), is_ours=False)
    life.table.restore(str(saved))
    life.rows = dict(rows)
    life.check()
    for is_ours in (False, True):
        life.upsert(range(5, 15), is_ours=is_ours)
    life.check()
    older.sql(f"CALL rollback_to_savepoint(table => '{name}', instant_time => '{saved}')")
    life.rows = dict(rows)
    life.check()
    life.upsert(range(8, 13), is_ours=True)
    if table_type == "MERGE_ON_READ":
        # Otherwise its savepoint would name log files of the compaction that the restores took back.
        life.compact(is_ours=False)
        life.upsert(range(9, 11), is_ours=True)
    newest = life.timeline.completed().writes().instants[-1].requested_time
    older.sql(f"CALL create_savepoint(table => '{name}', commit_time => '{newest}', user => 'bob')")
    kept = dict(life.rows)
    assert {found.instant: found.user for found in life.table.savepoints()} == {saved: "ann", newest: "bob"}
    life.table.delete_savepoint(str(saved))
    assert older.sql(f"CALL show_savepoints(table => '{name}')")["savepoint_time"].to_pylist() == [newest]
    life.upsert(range(14), is_ours=False)
    life.table.restore(newest)
    life.rows = kept
    life.check()
    older.sql(f"CALL delete_savepoint(table => '{name}', instant_time => '{newest}')")
    assert not life.table.savepoints()
    life.upsert(range(6), is_ours=False)
    life.check()


def _shorten(path: Path) -> dict[str, str]:
    """Give the instants of a table of base files times of 14 digits, as releases before 0.10 did; return the times."""
    store = hoodie.open(path, spark=False).view().store
    update_table_config(store, {METADATA_PARTITIONS: None})
    store.delete_folder(".hoodie/metadata")
    times = [found.requested_time for found in hoodie.open(path, spark=False).timeline]
    short = {time: f"201901010000{number:02}" for number, time in enumerate(times)}

    def shortened(text: str) -> str:
        for time, new in short.items():
            text = text.replace(time, new)
        return text

    sizes: dict[str, int] = {}
    files = [file for file in path.rglob("*") if file.is_file()]
    for file in files:
        if file.suffix == ".parquet":
            rows = pq.read_table(file, partitioning=None)
            for name in ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"):
                column = pa.array(map(shortened, rows[name].to_pylist()), pa.string())
                rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
            new = file.with_name(shortened(file.name))
            pq.write_table(rows, new)
            sizes[new.name] = new.stat().st_size
            file.unlink()
    for file in files:
        if file.suffix == ".crc":
            file.unlink()
        elif file.exists() and file.suffix != ".parquet":
            content = shortened(file.read_text())
            file.unlink()
            if file.suffix in (".commit", ".deltacommit"):
                commit = json.loads(content)
                for stat in (stat for stats in commit["partitionToWriteStats"].values() for stat in stats):
                    stat["fileSizeInBytes"] = stat["totalWriteBytes"] = sizes[Path(stat["path"]).name]
                content = json.dumps(commit)
            file.with_name(shortened(file.name)).write_text(content)
    return short


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("table_type", TABLE_TYPES)
def test_instants_of_14_digits(older: Jvm, tmp_path: Path, table_type: str) -> None:
    """Tables of old releases: both read them, as of each instant too, and go on with instants of 17 digits."""
    life = Life(older, tmp_path / "trips", table_type)
    life.create()
    life.upsert(range(10), is_ours=True)
    if table_type == "COPY_ON_WRITE":
        life.upsert(range(4), is_ours=True)
    first, *_ = _shorten(life.path).values()
    life.writers.add(False)
    life.check()
    before = life.table.to_arrow(["id", "ts"], as_of=first)
    theirs = older.read(life.path, ["id", "ts"], options={"as.of.instant": first})
    assert sorted(before.to_pylist(), key=str) == sorted(theirs.to_pylist(), key=str) != []
    for is_ours in (False, True, False, True):
        life.upsert(range(2 + is_ours, 14), is_ours=is_ours)
        life.delete(range(is_ours, 1 + is_ours), is_ours=is_ours)
        life.check()
    changed = {row["id"]: row["ts"] for row in life.table.changes(since=first).to_pylist()}
    assert {row["id"]: row["ts"] for row in older.read_incremental(life.path, first).to_pylist()} == changed
    if table_type == "MERGE_ON_READ":
        life.compact(is_ours=True)
        life.upsert(range(5), is_ours=False)
        life.compact(is_ours=False)
        life.check()
    life.clean(is_ours=True)
    life.clean(is_ours=False)
    life.check()


def test_it_archives_what_a_downgrade_left(older: Jvm, tmp_path: Path) -> None:
    """Cleans have their plans in the inflight files again, and requested files of commits are empty."""
    life = Life(older, tmp_path / "trips", "COPY_ON_WRITE")
    life.create()
    life.upsert(range(8), is_ours=True)
    life.table.upgrade(8, dry_run=False)
    for number in range(3):
        life.upsert(range(number, 8), is_ours=True)
    life.table.clean(properties=ONE_COMMIT)
    before = [found.requested_time for found in life.timeline.completed()]
    # An upgrade by JVM Hudi 1.x leaves such files.
    for requested in (life.path / ".hoodie/timeline").glob("*.commit.requested"):
        requested.write_bytes(CommitMetadata().to_bytes(TableVersion.EIGHT))
    life.table.downgrade(6, dry_run=False)
    life.table.drop_old_timeline(dry_run=False)
    life.check()
    life.options = {**OFTEN, **ONE_COMMIT, "hoodie.clean.automatic": "true"}
    for number in range(9):
        life.upsert(range(number, 14), is_ours=False)
    life.check()
    archived = {found.requested_time for found in life.table.view().archive().completed()}
    assert archived >= set(before)
