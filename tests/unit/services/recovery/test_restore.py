"""Restores to savepoints and commits: rows, metadata table and record index follow."""

from __future__ import annotations

import warnings

import pytest

import hoodie
from hoodie.format.instants.service_metadata import RestoreMetadata
from hoodie.services.indexing import key_check
from hoodie.table import Table
from hoodie.timeline import Action, read_instant
from tests.support.deaths import check_tidy, die
from tests.support.switched import KEYS, with_other_buckets, with_rows_elsewhere
from tests.support.tables import (
    PLAIN,
    TYPES,
    contents,
    copy_of,
    made_once,
    new_table,
    rows,
    rows_of,
    trips,
    trips_store,
)

ONE = {"a": (1, "sf"), "b": (1, "la")}
COMPACTS = {"hoodie.metadata.compact.max.delta.commits": "2"}


@made_once
def saved_table(table_type: str, *, properties: dict[str, str] | None = None) -> Table:
    """A table with a savepoint of its first commit, and changes of every kind after it."""
    table = Table(trips_store(ONE, table_type=table_type, properties=properties))
    table.savepoint(user="ann")
    table.upsert(trips({"a": (2, "sf"), "c": (2, "nyc")}))
    if table_type == "merge_on_read":
        table.schedule_compaction()
        table.compact()
    table.insert_overwrite(trips({"x": (1, "la")}))
    table.upsert(trips({"a": (3, "oslo")}))
    if table_type == "merge_on_read":
        table.schedule_compaction()
    return table


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("properties", [None, COMPACTS], ids=["", "compacted metadata"])
def test_a_table_goes_back_to_its_savepoint(table_type: str, properties: dict[str, str] | None) -> None:
    table = saved_table(table_type, properties=properties)
    store, saved = table.view().store, table.savepoints()[0].instant
    last = max(found.completion_time or found.requested_time for found in table.timeline)
    told = table.restore(saved, dry_run=True)
    done = table.restore(saved)
    assert done.counts == told.counts
    assert (properties is None) == (done.notes == ())
    assert rows_of(store) == ONE
    check_tidy(store)
    table = Table(store)
    assert [found.requested_time for found in table.timeline.writes()] == [saved]
    (restored,) = [found for found in table.timeline if found.action is Action.RESTORE]
    assert restored.requested_time > last
    content = RestoreMetadata.parse(read_instant(store, table.view().layout, restored))
    assert content.instants_to_rollback == tuple(content.hoodie_restore_metadata)[: len(content.instants_to_rollback)]
    assert table.to_arrow(as_of=saved).num_rows == len(ONE)
    table.upsert(trips({"a": (4, "sf"), "z": (1, "sf")}))
    assert rows_of(store) == {**ONE, "a": (4, "sf"), "z": (1, "sf")}
    check_tidy(store)
    assert sorted(table.changes(since=saved).column("id").to_pylist()) == ["a", "z"]


def test_no_log_file_is_left_of_a_slice_whose_compaction_is_rolled_back() -> None:
    """Version 6: without its base file it would look like a newer slice, which a clean keeps instead of the rows."""
    store = trips_store(ONE, table_type="merge_on_read", table_version=6)
    Table(store).upsert(trips({"a": (2, "sf")}))
    saved = Table(store).savepoint().instant
    before = set(store.names("city=sf"))
    Table(store).schedule_compaction(strategy="unbounded")
    Table(store).upsert(trips({"a": (3, "sf")}))
    Table(store).compact()
    Table(store).upsert(trips({"a": (4, "sf"), "b": (4, "la")}))
    Table(store).restore(str(saved))
    assert rows_of(store) == {**ONE, "a": (2, "sf")}
    assert set(store.names("city=sf")) == before
    check_tidy(store)


@pytest.mark.parametrize("version", [8, 9])
def test_a_clean_deleted_log_files_of_version_6_of_commits_that_go(version: int) -> None:
    """After the upgrade their blocks show which of them need a rollback block: a file that is gone needs none."""
    store = trips_store({"a": (1, "sf")}, table_type="merge_on_read", index="simple", table_version=6)
    table = Table(store)
    saved = str(table.savepoint().instant)
    table.bulk_insert(trips({"b": (1, "la")}))
    table.upsert(trips({"b": (2, "la")}))
    (log,) = [name for name in store.names("city=la") if ".log." in name]
    table.upgrade(version, dry_run=False)
    for ts in range(3, 6):
        table.upsert(trips({"a": (ts, "sf"), "b": (ts, "la")}))
        table.schedule_compaction(strategy="unbounded")
        table.compact()
    table.clean(properties={"hoodie.clean.commits.retained": "1"})
    assert log not in store.names("city=la")
    assert Table(store).verify(full=True).ok
    told = table.restore(saved, dry_run=True)
    assert table.restore(saved).counts == told.counts
    assert rows_of(store) == {"a": (1, "sf")}
    Table(store).upsert(trips({"b": (9, "la")}))
    assert rows_of(store) == {"a": (1, "sf"), "b": (9, "la")}
    check_tidy(store, has_record_index=False)


def test_any_commit_of_the_active_timeline_will_do() -> None:
    table = saved_table("copy_on_write")
    store = table.view().store
    second = table.timeline.completed().writes().instants[1].requested_time
    table.restore(second)
    assert rows_of(store) == {**ONE, "a": (2, "sf"), "c": (2, "nyc")}
    assert table.restore(second).counts == {}
    check_tidy(store)


def test_what_is_refused() -> None:
    table = saved_table("copy_on_write")
    store, saved = table.view().store, table.savepoints()[0].instant
    later = table.savepoint().instant
    files = contents(store)
    with pytest.raises(hoodie.InstantNotFoundError, match=rf"savepoints are: {saved}"):
        table.restore("123")
    with pytest.raises(hoodie.UnsupportedError, match=rf"t\.delete_savepoint\('{later}'\)"):
        table.restore(saved)
    assert contents(store) == files
    table.delete_savepoint(str(later))
    (found,) = table.savepoints()
    path, names = next(iter(found.files.items()))
    store.delete(f"{path}/{names[0]}")
    table.index.rebuild()
    with pytest.raises(hoodie.UnsupportedError, match=rf"savepoint names are missing: {path}/.* from a copy"):
        table.restore(saved)


def test_a_read_warns_of_a_restore_that_died() -> None:
    """It names the call that completes the restore, once for each handle."""
    table = saved_table("copy_on_write")
    store, saved = table.view().store, table.savepoints()[0].instant
    die(store, lambda table: table.restore(saved), ".rollback.inflight")
    for read in (Table.to_arrow, Table.changes):
        with pytest.warns(hoodie.HoodieWarning, match=rf"pending restore to {saved} .*t\.restore\('{saved}'\)"):
            read(Table(store))
    table = Table(store)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(hoodie.HoodieWarning, match="pending restore"):
            table.to_arrow()
        table.count()
        table.restore(saved)
        assert rows_of(store) == ONE


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("step", [".restore.inflight", ".rollback.inflight"], ids=["requested", "begun"])
def test_a_restore_whose_plan_is_damaged_is_planned_anew(step: str, table_type: str) -> None:
    """One call leads out; a repair only removes a restore that was not begun."""
    table = saved_table(table_type)
    store, saved = table.view().store, table.savepoints()[0].instant
    before = rows_of(store)
    die(store, lambda table: table.restore(saved), step)
    (plan,) = [info.path for info in store.list(".hoodie/timeline") if info.name.endswith(".restore.requested")]
    content = store.read(plan)
    store.replace(plan, content[: len(content) // 2])
    table = Table(store)
    assert any("whose plan is damaged" in str(found) for found in table.verify().findings)
    assert "restore" in str(table.inspect.waits().to_pylist())
    with pytest.raises(hoodie.UnsupportedError, match=r"t\.restore\(COMMIT\)"):
        table.upsert(trips({"z": (1, "sf")}))
    assert not table.repair().notes[0].startswith("failed")
    done = Table(copy_of(store)).repair(dry_run=False, min_age_seconds=0)
    if step == ".restore.inflight":
        assert done.counts["restore"] == 1
        repaired = copy_of(store)
        Table(repaired).repair(dry_run=False, min_age_seconds=0)
        assert rows_of(repaired) == before
        assert Table(repaired).verify(full=True).ok
    else:
        assert any("t.restore(COMMIT) (`hoodie restore " in note for note in done.notes), done.notes
    files = contents(store)
    with pytest.raises(hoodie.InstantNotFoundError):
        table.restore("123")
    assert contents(store) == files
    Table(store).restore(saved)
    assert rows_of(store) == ONE
    assert Table(store).verify(full=True).ok
    Table(store).upsert(trips({"z": (1, "sf")}))
    check_tidy(store)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("chain", [False, True], ids=["restore", "rollback"])
def test_keys_that_the_buckets_of_today_would_not_find_are_not_brought_back(
    chain: bool, table_type: str, version: int
) -> None:
    """Before the switch, the table had other buckets: writes would double these keys, and reads lose them."""
    table, first = with_other_buckets(saved=True, type=table_type, table_version=version)
    store = table.view().store
    before = contents(store)
    with pytest.raises(hoodie.UnsupportedError, match="would not find these") as refusal:
        table.restore(first, dry_run=True)
    second = table.timeline.writes().instants[1].requested_time
    with pytest.raises(hoodie.UnsupportedError, match="would not find these"):
        _ = table.rollback(second, chain=True) if chain else table.restore(first)
    assert contents(store) == before
    assert f"t.insert_overwrite_table(t.to_arrow(as_of='{first}'))" in str(refusal.value)
    table.insert_overwrite_table(table.to_arrow(as_of=first))
    assert [table.count(f"id = '{key}'") for key in KEYS] == [1] * len(KEYS)
    assert table.verify(full=True).ok
    table.upsert(rows(*KEYS, ts=7))
    assert rows_of(store) == dict.fromkeys(KEYS, (7, "sf"))


@pytest.mark.parametrize("table_type", TYPES)
def test_rows_in_another_partition_than_the_index_of_today_seeks_are_not_brought_back(table_type: str) -> None:
    table, first, moved = with_rows_elsewhere(saved=True, type=table_type)
    where = "city = 'la'"
    with pytest.raises(hoodie.UnsupportedError, match=r"1 rows of .* the keys \['a'\]: the table cannot go back"):
        table.restore(moved)
    table.insert_overwrite_table(table.to_arrow(as_of=moved))
    assert [row["id"] for row in table.to_arrow(where=where).to_pylist()] == ["a"]
    # Each row of the first state is where the new index looks for it.
    table, first, moved = with_rows_elsewhere(type=table_type)
    table.restore(first)
    assert rows_of(table.view().store) == {"a": (1, "sf"), "b": (1, "sf")}
    assert table.count("city = 'sf'") == 2


def test_a_state_since_the_switch_is_brought_back_without_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = with_other_buckets()
    saved = table.savepoint().instant
    table.upsert(rows("new", "more", ts=3))
    monkeypatch.setattr(key_check, "check_buckets", None)
    table.restore(str(saved))
    assert rows_of(table.view().store) == {"new": (2, "sf")}
    # So is the state that the switch itself has checked.
    table.delete_savepoint(str(saved))
    table.rollback(str(saved))
    assert table.count() == 0


def test_a_sound_state_is_brought_back_whose_files_lack_the_partition_columns() -> None:
    options = {"hoodie.datasource.write.drop.partition.columns": "true", "hoodie.bucket.index.num.buckets": "2"}
    table = new_table(PLAIN, partition_by="city", ordering="ts", index="bucket", properties=options)
    first = table.upsert(rows("a", "b")).instant
    assert first is not None
    table.upsert(rows("c"))
    table.index.switch("simple")
    table.index.switch("bucket", buckets=2)
    table.upsert(rows("d"))
    table.restore(first)
    assert sorted(table.to_arrow("id")["id"].to_pylist()) == ["a", "b"]
