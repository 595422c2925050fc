"""Tables with every kind of file, and damage done to one byte or many of one of their files."""

from __future__ import annotations

import functools
import json
import random
import re
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from hoodie.storage import LocalStore, MemoryStore, Store
from hoodie.table import Table
from hoodie.timeline import archive_instants
from hoodie.timeline.locks.storage_based import NAME as STORAGE_BASED_LOCK
from hoodie.write.create import CreateOptions, create_table
from tests.support.archived import OFTEN
from tests.support.deaths import run_until
from tests.support.fault_store import CrashPoint, FaultStore
from tests.support.metadata_limits import DELTA_COMMITS_MAX
from tests.support.tables import Write, copy_of

GOLDEN_TABLES = Path(__file__).parents[1] / "golden" / "tables.tar.gz"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("text", pa.string())])
_PROPERTIES = {"hoodie.metadata.record.index.min.filegroup.count": "2"}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:-\d+)?")

Rows = frozenset[tuple[object, ...]]


@dataclass(frozen=True)
class SampleTable:
    """A table, its rows, and whether this release writes to it."""

    name: str
    store: MemoryStore
    key: str
    rows: Rows
    is_written: bool
    read_files: frozenset[str]
    """Files that reads, or the next write, read: damage to other files has no effect."""

    def files(self) -> dict[str, list[str]]:
        """Paths of all files by kind: the path without ids and numbers."""
        found: dict[str, list[str]] = {}
        for info in self.store.list("", recursive=True):
            kind = re.sub(r"city=[^/]*|\bsf\b|\bnyc\b|\bla\b", "P", _UUID.sub("U", info.path))
            found.setdefault(re.sub(r"\d+", "N", kind), []).append(info.path)
        return found


def rows_of(table: Table, key: str, *, where: str | None = None) -> Rows:
    """The rows of a snapshot, as values that can be compared."""
    found = table.to_arrow(where=where)
    names = sorted(name for name in found.column_names if not name.startswith("_hoodie"))
    assert key in names
    return frozenset(tuple(repr(row[name]) for name in names) for row in found.to_pylist())


def some_rows(keys: str, ts: int, *, city: str | None = None) -> pa.Table:
    """One row for each letter; the city of a key never changes."""
    cities = [city or ("sf", "nyc", "la")[ord(key) % 3] for key in keys]
    return pa.table(
        {"id": list(keys), "ts": [ts] * len(keys), "city": cities, "text": [f"{key}{ts}" for key in keys]},
        schema=SCHEMA,
    )


def _die(store: MemoryStore, ending: str) -> None:
    """A write that dies before it completes, under the lock."""
    _stop(store, lambda table: table.upsert(some_rows("xyz", 9)), ending)


def _stop(store: MemoryStore, act: Write, ending: str) -> None:
    """A process that dies before its first call on a path with this ending."""
    calls = run_until(copy_of(store), act, None).calls
    completes = next(number for number, call in enumerate(calls, 1) if call.path.endswith(ending))
    run_until(store, act, completes, CrashPoint.BEFORE)


def _new(table_type: str, index: str = "record", properties: Mapping[str, str] | None = None) -> MemoryStore:
    store = MemoryStore()
    options = CreateOptions(
        record_key="id",
        partition_by="city",
        ordering="ts",
        type=table_type,
        index=index,
        properties={**_PROPERTIES, **(properties or {})},
    )
    create_table(store, SCHEMA, options)
    return store


def _copy_on_write() -> MemoryStore:
    """Replaced file groups, a metadata table that compacted, and a dead write with its heartbeat and markers."""
    store = _new("copy_on_write")
    for ts in range(1, DELTA_COMMITS_MAX + 2):
        Table(store).upsert(some_rows("abcdefgh"[: 2 + ts % 7], ts))
    Table(store).insert_overwrite(some_rows("ad", 50))
    Table(store).delete(pa.table({"id": ["b"], "city": [some_rows("b", 1)["city"][0].as_py()]}))
    view = Table(store).view()
    archive_instants(store, view.layout, view.timeline.instants[:5])
    _die(store, ".commit")
    return store


def _merge_on_read(log_format: str, index: str) -> MemoryStore:
    """Logs of data and deletes, a completed compaction, a log compaction, a pending plan."""
    store = _new("merge_on_read", index, {"hoodie.logfile.data.block.format": log_format})
    table = Table(store)
    table.upsert(some_rows("abcdef", 1))
    table.upsert(some_rows("abc", 2))
    assert table.schedule_compaction()
    table.compact()
    table.upsert(some_rows("abcdg", 3))
    table.delete(pa.table({"id": ["e"], "city": [some_rows("e", 1)["city"][0].as_py()]}))
    table.upsert(some_rows("abh", 4))
    assert table.schedule_compaction()
    table.upsert(some_rows("ab", 5))
    return store


def _partitioned() -> MemoryStore:
    store = _new("merge_on_read", "partitioned_record", {"hoodie.logfile.data.block.format": "avro"})
    for ts in (1, 2, 3):
        Table(store).upsert(some_rows("abcdef", ts))
    _die(store, ".deltacommit")
    return store


def _golden(name: str) -> MemoryStore:
    store = MemoryStore()
    with tarfile.open(GOLDEN_TABLES) as archive:
        for member in archive.getmembers():
            folder, _, path = member.name.removeprefix("./").partition("/")
            content = archive.extractfile(member) if folder == name and member.isfile() else None
            if content is not None and not path.endswith(".crc"):
                store.create(path, content.read())
    return store


_SERVED = {
    **OFTEN,
    "hoodie.archive.automatic": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.write.lock.provider": STORAGE_BASED_LOCK,
}
WHERE = "ts >= 3"


def _served() -> MemoryStore:
    """Archived, cleaned and clustered, with a savepoint, column statistics, a storage-based lock, and a dead clean.

    The clean died while it deleted files, when it did not hold the lock.
    """
    store = _new("copy_on_write", properties=_SERVED)
    for ts in range(1, 9):
        Table(store).upsert(some_rows("abcdef"[: 2 + ts % 5], ts))
        if ts == 5:
            Table(store).clean()
            Table(store).archive()
    Table(store).cluster("ts")
    Table(store).savepoint()
    Table(store).upsert(some_rows("abg", 20))
    Table(store).upsert(some_rows("a", 21))
    Table(store).clean()
    for ts in (22, 23):
        Table(store).upsert(some_rows("ab", ts))
    _stop(store, lambda table: table.clean(), ".parquet")
    return store


def _restored() -> MemoryStore:
    """A restore, a rollback of a completed commit, a savepoint, statistics in logs, and a plan of a clustering."""
    store = _new("merge_on_read", properties={**_SERVED, "hoodie.logfile.data.block.format": "avro"})
    table = Table(store)
    table.upsert(some_rows("abcde", 1))
    table.upsert(some_rows("abf", 3))
    saved = table.savepoint().instant
    assert saved is not None
    table.upsert(some_rows("abcx", 7))
    table.restore(saved)
    table.upsert(some_rows("cd", 8))
    table.upsert(some_rows("ae", 9))
    newest = table.timeline.completed().writes().latest()
    assert newest is not None
    table.rollback(newest.requested_time)
    assert table.schedule_clustering("ts", partitions="city=sf")
    return store


_MAKERS: Mapping[str, Callable[[], MemoryStore]] = {
    "copy on write": _copy_on_write,
    "merge on read, avro": lambda: _merge_on_read("avro", "record"),
    "merge on read, parquet": lambda: _merge_on_read("parquet", "simple"),
    "partitioned index": _partitioned,
    "served": _served,
    "restored": _restored,
    **{name: functools.partial(_golden, name) for name in ("v6_cow", "v6_mor", "v8_cow", "v8_mor", "v9_cow", "v9_mor")},
}
TABLE_NAMES = tuple(_MAKERS)


@functools.lru_cache
def sample_table(name: str) -> SampleTable:
    """The table of this name; do not change it."""
    store = _MAKERS[name]()
    is_golden = name.startswith("v")
    key = "uuid" if is_golden else "id"
    used = FaultStore(copy_of(store), count_reads=True)
    used.register()
    rows = rows_of(Table(used), key)
    _read_all(Table(used))
    if not is_golden:
        Table(used).to_arrow(where=WHERE)
        Table(used).upsert(some_rows("aw", 99))
        serve(Table(used))
    used.unregister()
    read = frozenset(call.path for call in used.calls if call.operation in _READS)
    return SampleTable(name, store, key, rows, not is_golden, read)


_READS = ("read", "read_range", "open_input")


def _read_all(table: Table) -> None:
    table.history()
    [table.inspect.instant(instant.requested_time) for instant in table.timeline]
    table.pending_compactions()
    table.pending_clusterings()
    table.history(archived=True)
    table.savepoints()


def serve(table: Table) -> None:
    """Run services that delete files: a clean, which takes up a dead one, and an archiving."""
    table.clean()
    table.archive(properties=OFTEN)
    for instant in table.pending_clusterings().instants:
        table.cluster(instant=instant)


def _local_copy(store: Store, folder: Path) -> LocalStore:
    for info in store.list("", recursive=True):
        file = folder / info.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(store.read(info.path))
    return LocalStore(str(folder))


@dataclass(frozen=True)
class Damage:
    """A table with one damaged file."""

    table: SampleTable
    store: Store
    kind: str
    path: str
    what: str

    def __str__(self) -> str:
        return json.dumps([self.table.name, self.path, self.what])


def damaged(seed: int, folder: Path | None = None) -> Damage:
    """Damage one file; the seed decides table, kind of file, file and damage.

    The copy of the table is in memory, or in a local folder, whose disk has limits that memory has not.
    """
    chooser = random.Random(seed)
    table = sample_table(chooser.choice(TABLE_NAMES))
    files = table.files()
    if chooser.random() < 0.9:
        files = {kind: read for kind, paths in files.items() if (read := sorted(table.read_files.intersection(paths)))}
    kind = chooser.choice(sorted(files))
    path = chooser.choice(files[kind])
    store = copy_of(table.store) if folder is None else _local_copy(table.store, folder)

    def other_file() -> bytes:
        return table.store.read(chooser.choice(files[chooser.choice(sorted(files))]))

    what, content = _change(store.read(path), chooser, other_file)
    store.replace(path, content)
    return Damage(table, store, kind, path, what)


_DAMAGES = ("byte", "cut", "insert", "delete", "twice", "zero", "other", "digits", *("flip",) * 3, *("length",) * 2)
_LENGTHS = (0, 1, -1, 255, 2**16, 2**31 - 1, -(2**31), 2**40, 2**63 - 1, -(2**63))


def _change(data: bytes, chooser: random.Random, other: Callable[[], bytes]) -> tuple[str, bytes]:
    """Return what was done, and the changed bytes."""
    start = _place(len(data), chooser)
    end = min(len(data), start + chooser.choice((1, 2, 8, 100, 5000)))
    what = chooser.choice(_DAMAGES)
    piece = data[start:end]
    where = f"{what} [{start}, {end}) of {len(data)}"
    if what == "flip":
        piece = bytes([byte ^ 1 << chooser.randrange(8) for byte in piece[:1]]) + piece[1:]
    elif what == "byte":
        piece = bytes([chooser.choice((0, 1, 0x7F, 0x80, 0xFF))]) + piece[1:]
    elif what == "cut":
        return where, data[:start]
    elif what == "insert":
        piece = chooser.randbytes(chooser.choice((1, 4, 100))) + piece
    elif what == "delete":
        piece = b""
    elif what == "twice":
        piece = piece * 2
    elif what == "zero":
        piece = bytes(len(piece))
    elif what == "length":
        number, width = chooser.choice(_LENGTHS), chooser.choice((4, 8))
        order = chooser.choice(("big", "little"))
        field = (number & (1 << 8 * width) - 1).to_bytes(width, order)  # type: ignore[arg-type]
        if chooser.random() < 0.3:
            field = b"\xff" * 9 + b"\x01"
        return f"{where}: {field.hex()}", data[:start] + field + data[start + len(field) :]
    elif what == "digits":
        return where, re.sub(rb"\d+", lambda match: match.group() + b"9" * 5000, data, count=1)
    else:
        return where, other()
    return where, data[:start] + piece + data[end:]


def _place(size_bytes: int, chooser: random.Random) -> int:
    """A position: headers and footers, which decide how the rest is read, get half of the damage."""
    if chooser.random() < 0.5:
        return chooser.randrange(size_bytes + 1)
    near = min(size_bytes, chooser.randrange(200))
    return near if chooser.random() < 0.5 else size_bytes - near
