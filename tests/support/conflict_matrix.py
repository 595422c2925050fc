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

from hoodie import config as options
from hoodie.table import Table

Act = Callable[[Table], object]


class Outcome(StrEnum):
    """What the first of two does, after the other completed."""

    GOES_ON = "goes on"
    RETRIES = "retries"
    CONFLICTS = "conflicts"
    """It raises CommitConflictError."""


SCHEMA: Final = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string())])
WRITES: Final = ("upsert", "insert", "delete", "update", "delete_where", "delete_partitions")
OVERWRITES: Final = ("insert_overwrite", "insert_overwrite_table")
SERVICES: Final = ("compaction", "log compaction", "index build", "clean")
THEIRS_ONLY: Final = ("savepoint",)
"""Services that run under the table's lock, so that nothing completes meanwhile."""
OPERATIONS: Final = (*WRITES, *OVERWRITES, "bulk_insert", *SERVICES)
_PLANNED: Final = ("compaction", "log compaction")
_CLEAN: Final = {options.CLEAN_COMMITS_RETAINED.key: "1"}


def trips(*rows: tuple[str, int, str]) -> pa.Table:
    """Return rows of the table."""
    columns = zip(zip(*rows, strict=True), SCHEMA, strict=True)
    return pa.table([pa.array(column, field.type) for column, field in columns], schema=SCHEMA)


def acts(ts: int) -> Mapping[str, Act]:
    """Return the writes and services by name; `ts` tells the rows of one writer from those of another."""
    rows = trips(("a", ts, "sf"), ("x", ts, "sf"))
    return {
        "upsert": lambda table: table.upsert(rows),
        "insert": lambda table: table.insert(trips((f"new {ts}", ts, "sf"))),
        "delete": lambda table: table.delete(["a"]),
        "update": lambda table: table.update({"ts": f"ts + {ts}"}, where="id = 'a'"),
        "delete_where": lambda table: table.delete_where("id = 'a'"),
        "delete_partitions": lambda table: table.delete_partitions(["city=sf"]),
        "insert_overwrite": lambda table: table.insert_overwrite(rows),
        "insert_overwrite_table": lambda table: table.insert_overwrite_table(rows),
        "bulk_insert": lambda table: table.bulk_insert(trips((f"bulk {ts}", ts, "sf"))),
        "compaction": lambda table: table.compact(),
        "log compaction": lambda table: table.compact(),
        "index build": lambda table: table.index.build("record", buckets=ts),
        "clean": lambda table: table.clean(properties=_CLEAN),
        "savepoint": lambda table: table.savepoint(),
    }


def outcome(table_type: str, ours: str, theirs: str) -> Outcome | None:
    """Return the outcome of a cell; None if the two cannot meet."""
    is_logged = table_type == "merge_on_read"
    if not is_logged and {ours, theirs} & {*_PLANNED}:
        return None
    if (ours in _PLANNED and theirs in _PLANNED) or ours == theirs in ("index build", "clean"):
        return None
    if theirs == "savepoint":
        return Outcome.GOES_ON
    if theirs == "index build":
        # The keys were staged for the buckets of the index that is gone.
        return Outcome.CONFLICTS if ours in WRITES[:5] else Outcome.GOES_ON
    # A bulk insert makes new file groups; so does an insert into a table with log files.
    makes_new = {"bulk_insert", *(("insert",) if is_logged else ())}
    if {ours, theirs} & makes_new or {ours, theirs} & {*SERVICES}:
        return Outcome.GOES_ON
    return Outcome.CONFLICTS if ours in OVERWRITES else Outcome.RETRIES


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
