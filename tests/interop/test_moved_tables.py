"""Upgrades and downgrades: JVM Hudi 1.2.0's own move of the same table is the judge, and it continues our result."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.services.versions.kept import MOVE
from hoodie.table import Table
from hoodie.timeline import Instant
from hoodie.view.table_view import TableView
from tests.interop.judges import Jvm
from tests.interop.shared_trips import SCHEMA, trips
from tests.support.rows import assert_same_rows

NAMES = {6: "SIX", 8: "EIGHT", 9: "NINE"}
OF_METADATA = ("hoodie.table.metadata.partitions", "hoodie.table.index.defs.path", "hoodie.metadata.")
OF_JVM = {
    # The old name of the strategy id, which it writes beside the new one.
    "hoodie.compaction.record.merger.strategy",
    # The class of the key generator, whose type is stored.
    "hoodie.table.keygenerator.class",
}
"""Properties that the JVM writes in a move, and that no reader of the version needs."""
ORDERING = ("hoodie.table.ordering.fields", "hoodie.table.precombine.field")
"""Both names are read. The JVM keeps the name that it found when it moves a table up."""


def _write(
    jvm: Jvm, path: Path, rows: pa.Table, table_type: str, version: int, operation: str = "upsert", **options: str
) -> None:
    jvm.write_trips(rows, path, operation=operation, table_type=table_type, table_version=version, options=options)


def _made_by_jvm(jvm: Jvm, path: Path, table_type: str, version: int) -> None:
    """A table with archived instants, a clean, a savepoint, a replaced partition, and log files."""
    often = {
        "hoodie.keep.min.commits": "3",
        "hoodie.keep.max.commits": "4",
        "hoodie.cleaner.commits.retained": "2",
        "hoodie.clean.commits.retained": "2",
        "hoodie.clean.automatic": "true",
        "hoodie.archive.automatic": "true",
        "hoodie.archive.async": "false",
    }
    for ts in range(7):
        _write(jvm, path, trips(range(ts, ts + 12), ts), table_type, version, **often)
    _write(jvm, path, trips(range(6), 10), table_type, version, "delete")
    _write(jvm, path, trips(range(30, 40, 2), 11), table_type, version, "insert_overwrite")
    for ts in (12, 13):
        _write(jvm, path, trips(range(ts, ts + 12), ts), table_type, version)


def _moved_by_jvm(jvm: Jvm, path: Path, version: int, found: int) -> None:
    procedure = "upgrade_table" if version > found else "downgrade_table"
    with jvm.named(path) as name:
        done = jvm.sql(f"CALL {procedure}(table => '{name}', to_version => '{NAMES[version]}')")
    assert done["result"].to_pylist() == [True]


def _moved_by_us(path: Path, version: int) -> Table:
    table = hoodie.open(path, spark=False)
    up = version > table.view().config.version.value
    assert (table.upgrade if up else table.downgrade)(version, dry_run=False).to_version == version
    return table


def _properties(table: Table) -> dict[str, str]:
    """The properties that the JVM and we must agree on."""
    raw = table.view().config.raw
    found = {
        key: value
        for key, value in raw.items()
        if not key.startswith(OF_METADATA) and key not in (*OF_JVM, *ORDERING, MOVE)
    }
    return {**found, "ordering": ",".join(table.view().config.ordering_fields)}


def _timeline(table: Table) -> Mapping[tuple[str, str], object]:
    """The completed instants, archived ones too, with their completion times, and what they wrote."""
    view = table.view()
    has_times = view.config.version.has_completion_time_in_name
    found: dict[tuple[str, str], object] = {}
    for instant in view.timeline.completed():
        writes = instant.action.writes_data
        # Its downgrade to 6 sets the change times of commits only.
        end = instant.completion_time if has_times or writes else ""
        found[instant.requested_time, instant.action] = (end, _stats(view, instant) if writes else None)
    for instant in view.archive().completed():
        found[instant.requested_time, instant.action] = instant.completion_time if has_times else ""
    return found


def _archived(table: Table) -> set[tuple[str, str]]:
    return {(instant.requested_time, instant.action) for instant in table.view().archive().completed()}


def _stats(view: TableView, instant: Instant) -> object:
    """What the instant wrote, without the facts of log files, which the JVM loses."""
    stats = view.commit_metadata(instant).partition_to_write_stats
    return {
        path: [replace(stat, log_version=None, log_offset=None, base_file=None, log_files=None) for stat in found]
        for path, found in stats.items()
    }


@pytest.mark.matrix(keep=1)
@pytest.mark.parametrize("start", [6, 8])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_our_move_and_that_of_the_jvm(jvm: Jvm, tmp_path: Path, table_type: str, start: int) -> None:
    path = tmp_path / "made"
    _made_by_jvm(jvm, path, table_type, start)
    before = set(_timeline(hoodie.open(path, spark=False)))
    active = before - _archived(hoodie.open(path, spark=False))
    rows = jvm.read(path)
    found = start
    theirs, ours = (Path(shutil.copytree(path, tmp_path / name)) for name in ("theirs", "ours"))
    for version in (*((8,) if start == 6 else ()), 9, 8, 6):
        _moved_by_jvm(jvm, theirs, version, found)
        found = version
        table, other = _moved_by_us(ours, version), hoodie.open(theirs, spark=False)
        assert _properties(table) == _properties(other), version
        of_us, of_jvm = _timeline(table), _timeline(other)
        assert before <= of_us.keys(), version
        # Its downgrade to 6 writes the archive to `archived`, also if the properties name another folder.
        compared = before if version > 6 else active
        assert {key: of_us[key] for key in compared} == {key: of_jvm[key] for key in compared}, version
        assert_same_rows(table.to_arrow(), rows)
        assert_same_rows(jvm.read(ours), rows)
        report = table.verify(full=True)
        assert report.ok, report
    # The JVM cannot move its own result up again (`Failed to upgrade to LSM timeline`), if it has archived instants.
    _moved_by_us(ours, 9)
    assert before <= _timeline(hoodie.open(ours, spark=False)).keys()
    _write(jvm, ours, trips(range(5, 16), 20), table_type, 9)
    _write(jvm, ours, trips(range(7, 9), 21), table_type, 9, "delete")
    table = hoodie.open(ours, spark=False)
    assert_same_rows(table.to_arrow(), jvm.read(ours), meta=True)
    table.drop_old_timeline(dry_run=False)
    table.upsert(trips(range(8, 18), 22))
    assert_same_rows(table.to_arrow(), jvm.read(ours), meta=True)
    report = table.verify(full=True)
    assert report.ok, report


def test_a_commit_of_version_6_that_is_taken_back_after_our_upgrade(jvm: Jvm, tmp_path: Path) -> None:
    """The JVM sees the blocks that the rollback undoes as undone, also in a table of version 8."""
    path = tmp_path / "t"
    for ts in (1, 2, 3):
        _write(jvm, path, trips(range(ts, ts + 6), ts), "MERGE_ON_READ", 6, **{"hoodie.compact.inline": "false"})
    expected = hoodie.open(path, spark=False).to_arrow(as_of=_write_times(path)[1], columns=SCHEMA.names)
    gone = _write_times(path)[2]
    hoodie.open(path, spark=False).upgrade(8, dry_run=False)
    hoodie.open(path, spark=False).rollback(gone, chain=True)
    assert_same_rows(hoodie.open(path, spark=False).to_arrow(columns=SCHEMA.names), expected)
    assert_same_rows(jvm.read(path, columns=SCHEMA.names), expected)
    _write(jvm, path, trips(range(40, 41), 4), "MERGE_ON_READ", 8, **{"hoodie.compact.inline.max.delta.commits": "1"})
    more = pa.concat_tables([expected, trips(range(40, 41), 4)])
    assert_same_rows(hoodie.open(path, spark=False).to_arrow(columns=SCHEMA.names), more)


def _write_times(path: Path) -> list[str]:
    return [found.requested_time for found in hoodie.open(path, spark=False).timeline.writes().completed()]
