"""The conflict matrix: what a write or service does if another one completes while it runs.

The page docs/operations/concurrency.md shows the same cells (`tests/tidy/test_conflict_matrix.py`), and
`tests/property/test_conflict_matrix.py` runs every cell. In every cell both change the partition sf, and the same file
groups and keys where they change any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Final

import pyarrow as pa

from hoodie.config import retention
from hoodie.table import Table

Act = Callable[[Table], object]


class Outcome(StrEnum):
    """What the first of two does, after the other completed."""

    GOES_ON = "goes on"
    RETRIES = "retries"
    CONFLICTS = "conflicts"
    """It raises CommitConflictError."""
    REFUSES = "refuses"
    """It goes on; the second one raises CommitConflictError while the first runs."""


SCHEMA: Final = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
WRITES: Final = ("upsert", "insert", "delete", "update", "delete_where", "delete_partitions")
OVERWRITES: Final = ("insert_overwrite", "insert_overwrite_table")
_PLANNED: Final = ("compaction", "log compaction")
_BUILDS: Final = ("index build", "statistics build")
EXPIRY: Final = "time to live"
SERVICES: Final = (*_PLANNED, *_BUILDS, "clean", "clustering", EXPIRY)
THEIRS_ONLY: Final = ("archive", "savepoint", "rollback", "restore")
"""Services that run under the table's lock, so that nothing completes meanwhile."""
OPERATIONS: Final = (*WRITES, *OVERWRITES, "bulk_insert", *SERVICES)
_CLEAN: Final = {retention.CLEAN_COMMITS_RETAINED.key: "1"}
_ARCHIVE: Final = {**_CLEAN, "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
ARCHIVABLE: Final = {"hoodie.metadata.compact.max.delta.commits": "2"}
"""Properties of a table whose commits may be archived soon: the metadata table is compacted often."""
_WEEK: Final = {retention.TTL_DAYS.key: "7"}


def trips(*rows: tuple[str, int, str]) -> pa.Table:
    """Return rows of the table."""
    columns = zip(zip(*rows, strict=True), SCHEMA, strict=True)
    return pa.table([pa.array(column, field.type) for column, field in columns], schema=SCHEMA)


def acts(ts: int, properties: Mapping[str, str] | None = None) -> Mapping[str, Act]:
    """Return the writes and services by name; `ts` tells the rows of one writer from those of another.

    `properties` are the options of the writes.
    """
    given = dict(properties or {})
    rows = trips(("a", ts, "sf"), ("x", ts, "sf"))
    return {
        "upsert": lambda table: table.upsert(rows, properties=given),
        "insert": lambda table: table.insert(trips((f"new {ts}", ts, "sf")), properties=given),
        "delete": lambda table: table.delete(["a"], properties=given),
        "update": lambda table: table.update({"ts": f"ts + {ts}"}, where="id = 'a'", properties=given),
        "delete_where": lambda table: table.delete_where("id = 'a'", properties=given),
        "delete_partitions": lambda table: table.delete_partitions(["city=sf"], properties=given),
        "insert_overwrite": lambda table: table.insert_overwrite(rows, properties=given),
        "insert_overwrite_table": lambda table: table.insert_overwrite_table(rows, properties=given),
        "bulk_insert": lambda table: table.bulk_insert(trips((f"bulk {ts}", ts, "sf")), properties=given),
        "compaction": lambda table: table.compact(),
        "log compaction": lambda table: table.compact(),
        "index build": lambda table: table.index.build("record", buckets=ts),
        "statistics build": lambda table: table.index.build("column_stats"),
        "clean": lambda table: table.clean(properties=_CLEAN),
        "clustering": lambda table: table.cluster(by="ts"),
        EXPIRY: lambda table: table.expire_partitions(properties=_WEEK),
        "archive": lambda table: table.archive(properties=_ARCHIVE),
        "savepoint": lambda table: table.savepoint(),
        "rollback": lambda table: table.rollback(table.view().completed_writes()[-1].requested_time),
        "restore": lambda table: table.restore(table.view().completed_writes()[-2].requested_time),
    }


def outcome(table_type: str, ours: str, theirs: str) -> Outcome | None:
    """Return the outcome of a cell; None if the two cannot meet."""
    is_logged = table_type == "merge_on_read"
    both = {ours, theirs}
    if not _can_meet(table_type, ours, theirs):
        return None
    if theirs in ("savepoint", "archive"):
        return Outcome.GOES_ON
    if theirs in ("rollback", "restore") or both <= {*_BUILDS}:
        return Outcome.REFUSES
    if theirs == "index build":
        # The keys were staged for the buckets of the index that is gone.
        return Outcome.CONFLICTS if ours in WRITES[:5] else Outcome.GOES_ON
    if both & {"bulk_insert", "clean", *_PLANNED, *_BUILDS} or (is_logged and "insert" in both):
        # A bulk insert makes new file groups; so does an insert into a table with log files.
        return Outcome.GOES_ON
    if ours == "clustering":
        return Outcome.GOES_ON if theirs == "insert" else Outcome.REFUSES
    return Outcome.CONFLICTS if ours in (*OVERWRITES, EXPIRY) else Outcome.RETRIES


def _can_meet(table_type: str, ours: str, theirs: str) -> bool:
    """Return whether the two can run at the same time and touch the same file groups, in the state that tests make."""
    both = {ours, theirs}
    if table_type != "merge_on_read" and both & {*_PLANNED}:
        return False
    # A plan has its file groups for itself. Nothing goes back past a planned service, or past deleted files.
    if ours in (*_PLANNED, "clustering") and theirs in (*_PLANNED, "clustering"):
        return False
    if both & {"rollback", "restore"} and both & {"clean", "clustering", *_PLANNED}:
        return False
    return ours != theirs or ours not in ("index build", "clean")


def cells() -> Iterator[tuple[str, str, str]]:
    """Yield table type, first and second of each cell."""
    for table_type in ("copy_on_write", "merge_on_read"):
        for ours in OPERATIONS:
            for theirs in (*OPERATIONS, *THEIRS_ONLY):
                if outcome(table_type, ours, theirs) is not None:
                    yield table_type, ours, theirs


def page_lines(table_type: str) -> Iterator[str]:
    """Yield the lines of the page's table."""
    there = [name for name in OPERATIONS if table_type == "merge_on_read" or name not in _PLANNED]
    columns = (*there, *THEIRS_ONLY)
    yield f"| ↓ runs, → completes | {' | '.join(columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for ours in there:
        found = (outcome(table_type, ours, theirs) for theirs in columns)
        yield f"| {ours} | {' | '.join('–' if cell is None else cell.value for cell in found)} |"
