"""Open, read and write damaged tables in a process with limits of time and memory.

Run as `python -m tests.support.damage_process SEED…`. Each seed gives two lines: the damage, and what came of it. A
process that ends before the second line crashed, or ran out of time.
"""

from __future__ import annotations

import faulthandler
import json
import random
import resource
import sys
import tempfile
import traceback
import uuid
from collections.abc import Callable
from pathlib import Path

from hoodie.errors import HoodieError
from hoodie.table import Table
from tests.support.damaged_tables import WHERE, Damage, Rows, damaged, rows_of, serve, some_rows

MEMORY_BYTES_MAX = 6 * 1024**3
"""Address space: far above what any of the small tables needs, far below what a wild length asks for."""
SECONDS_MAX = 240
"""For one damaged table, on a busy machine. A damaged lock is waited for up to 60 s."""


def main() -> None:
    """Try each seed."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    # File ids decide which bytes a change hits.
    chooser = random.Random(0)
    uuid.uuid4 = lambda: uuid.UUID(int=chooser.getrandbits(128), version=4)
    for text in sys.argv[1:]:
        seed = int(text)
        with tempfile.TemporaryDirectory() as folder:
            found = damaged(seed, Path(folder) if seed % 2 else None)
            print(seed, str(found), flush=True)
            faulthandler.dump_traceback_later(SECONDS_MAX, exit=True)
            problem = try_table(found)
            faulthandler.cancel_dump_traceback_later()
            print(json.dumps(problem), flush=True)


def try_table(found: Damage) -> str | None:
    """Use the table in every way; return what went wrong, None if all gave right rows or an error of ours."""
    table = Table(found.store)
    key = found.table.key
    uses: list[Callable[[], object]] = [
        lambda: _check_rows(found, rows_of(table, key), found.table.rows),
        lambda: table.schema,
        lambda: table.history(),
        lambda: [table.inspect.instant(instant.requested_time) for instant in table.timeline],
        lambda: table.to_arrow(where=f"{key} = 'a'"),
        lambda: table.changes(since="20200101000000000"),
        lambda: table.pending_compactions(),
        lambda: table.pending_clusterings(),
        lambda: table.history(archived=True),
        lambda: [table.to_arrow(as_of=instant.requested_time) for instant in table.timeline.completed().writes()],
        lambda: table.savepoints(),
        lambda: table.clean(dry_run=True),
        lambda: _check_where(found),
        lambda: table.index.verify(),
        lambda: _write(found),
        lambda: _serve(found),
        lambda: _restore(found),
    ]
    for use in uses:
        try:
            use()
        except HoodieError:
            continue
        except _WrongRowsError as error:
            return f"wrong rows: {error}"
        except BaseException:
            return traceback.format_exc()
    return None


class _WrongRowsError(Exception):
    """A damaged file whose damage can be noticed gave other rows."""


def _write(found: Damage) -> None:
    if not found.table.is_written:
        return
    before = rows_of(Table(found.store), "id")
    Table(found.store).upsert(some_rows("aw", 99))
    after = rows_of(Table(found.store), "id")
    written = rows_of_arrow(99)
    keys = {"'a'", "'w'"}
    kept = {row for row in before if row[1] not in keys}
    _check_rows(found, after, frozenset(kept | written))


def _check_where(found: Damage) -> None:
    """A read that skips files by the statistics of columns gives the rows of one that reads all."""
    if found.table.is_written:
        expected = frozenset(row for row in found.table.rows if int(str(row[-1])) >= 3)
        _check_rows(found, rows_of(Table(found.store), "id", where=WHERE), expected)


def _serve(found: Damage) -> None:
    """Services that delete files change no row."""
    if found.table.is_written:
        before = rows_of(Table(found.store), "id")
        try:
            serve(Table(found.store))
        finally:
            _check_rows(found, rows_of(Table(found.store), "id"), before)


def _restore(found: Damage) -> None:
    """A restore to a savepoint, in which plans and commits are read that nothing else reads."""
    for saved in Table(found.store).savepoints():
        Table(found.store).restore(saved.instant)
        rows_of(Table(found.store), "id")


def rows_of_arrow(ts: int) -> Rows:
    """The rows that `_write` writes, as `rows_of` gives them."""
    rows = some_rows("aw", ts)
    return frozenset(tuple(repr(row[name]) for name in sorted(rows.column_names)) for row in rows.to_pylist())


def _check_rows(found: Damage, rows: Rows, expected: Rows) -> None:
    if is_noticed(found) and rows != expected:
        raise _WrongRowsError(f"missing {sorted(expected - rows)[:5]}, unexpected {sorted(rows - expected)[:5]}")


def is_noticed(found: Damage) -> bool:
    """Whether no damage of this kind of file can stay unnoticed: it has checksums."""
    path = found.path
    return path.endswith(".hfile") or (path.endswith(".parquet") and found.table.is_written)


if __name__ == "__main__":
    main()
