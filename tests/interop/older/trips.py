"""Tables that an older release of JVM Hudi writes, and the comparison of what all readers see."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

import hoodie
from hoodie.files.markers import TEMP_FOLDER
from hoodie.format.instants.commit_metadata import NULL_COMMIT
from hoodie.timeline import Instant
from tests.interop.judges import Jvm, read_with_hudi_rs
from tests.support.rows import assert_same_rows

# Hudi 1.0.2 fails to read a record that was deleted and logged again (`Integer cannot be cast to Long`), in its own
# tables too, unless the ordering column is an int.
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int32()), ("fare", pa.float64()), ("city", pa.string())])


def trips(numbers: range, ts: int) -> pa.Table:
    """One row for each number, with this ordering value."""
    rows = [{"id": f"k{n:02}", "ts": ts, "fare": n + ts / 8, "city": ("sf", "nyc")[n % 2]} for n in numbers]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def write(
    older: Jvm,
    path: Path,
    rows: pa.Table,
    *,
    table_type: str,
    operation: str = "upsert",
    options: Mapping[str, str] | None = None,
) -> None:
    """A write of the older release."""
    older.write_trips(
        rows, path, table_type=table_type, operation=operation,
        options={"hoodie.compact.inline": "false", **(options or {})},
    )  # fmt: skip


def assert_all_read(older: Jvm, path: Path, expected: dict[str, int], *, with_hudi_rs: bool = True) -> None:
    """The older release, we and, if asked for, hudi-rs see these ids and ordering values, and the same rows."""
    theirs = older.read(path)
    assert dict(zip(theirs["id"].to_pylist(), theirs["ts"].to_pylist(), strict=True)) == expected
    assert_same_rows(hoodie.open(path).to_arrow(), theirs, meta=True)
    if with_hudi_rs:
        assert_same_rows(read_with_hudi_rs(path).select(SCHEMA.names), theirs.select(SCHEMA.names))


def undo_completion(path: Path) -> Instant:
    """Make the newest write of the JVM a dead one: its completed file is gone, and its markers are there again."""
    view = hoodie.open(path).view()
    instant = view.timeline.completed().instants[-1]
    names_base = view.config.version.log_name_has_base_instant
    for stat in view.commit_metadata(instant).write_stats():
        is_log = ".log." in (stat.path or "")
        kind = "APPEND" if is_log and names_base else "CREATE" if is_log or stat.prev_commit == NULL_COMMIT else "MERGE"
        folder = path / TEMP_FOLDER / instant.requested_time
        marker = folder / f"{stat.path}.marker.{kind}"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    name = view.layout.names(instant, instant.state)[0]
    for file in (name, f".{name}.crc"):
        (path / view.layout.instant_folder() / file).unlink(missing_ok=True)
    return instant
