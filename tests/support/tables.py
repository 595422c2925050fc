"""Small tables for tests: made once in a process, and copied for each test for nearly nothing.

`new_table` makes a table of any kind with rows in it. `made_once` does the same for a builder of a test's own.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import shutil
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import pyarrow as pa

import hoodie
from hoodie.commit.metadata_table import ensure_metadata_table
from hoodie.storage import LocalStore, MemoryStore, Store
from hoodie.table import Table
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from hoodie.write.create import CreateOptions, create_table

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("_hoodie_is_deleted", pa.bool_())])
PLAIN = SCHEMA.remove(3)
"""Without the column that says that a row is deleted."""
FEW_BUCKETS = {"hoodie.metadata.record.index.min.filegroup.count": "2"}
"""Each bucket is a few storage calls of every write, at each of which it dies once."""
TYPES = ("copy_on_write", "merge_on_read")

Rows = dict[str, tuple[int, str]]
"""The model: record key -> ordering value and city."""
Write = Callable[[Table], object]
_Options = ParamSpec("_Options")
_Made = TypeVar("_Made", MemoryStore, Table)


def trips(rows: Mapping[str, tuple[int, str]], *, deleted: tuple[str, ...] = ()) -> pa.Table:
    """Rows of the model as data to write; `deleted` of them say that they delete their key."""
    return pa.table(
        {
            "id": list(rows),
            "ts": [ts for ts, _ in rows.values()],
            "city": [city for _, city in rows.values()],
            "_hoodie_is_deleted": [key in deleted for key in rows],
        },
        schema=SCHEMA,
    )


def rows(*keys: str, ts: int = 1, city: str = "sf") -> pa.Table:
    """One row of `PLAIN` for each key, all with this ordering value and city."""
    return pa.table({"id": [*keys], "ts": [ts] * len(keys), "city": [city] * len(keys)}, schema=PLAIN)


def table_of(schema: pa.Schema, *values: Sequence[Any]) -> pa.Table:
    """Rows, given as tuples of their values, as data to write."""
    columns: Sequence[Sequence[Any]] = [*zip(*values, strict=True)] or [()] * len(schema)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema)


def rows_of(store: Store) -> Rows:
    """What a reader that knows nothing of earlier writers sees; no key twice."""
    found = Table(store).to_arrow(columns=["id", "ts", "city"]).to_pylist()
    rows = {row["id"]: (row["ts"], row["city"]) for row in found}
    assert len(rows) == len(found), f"a key has two rows: {found}"
    return rows


def values_of(table: Table, *columns: str, **read: Any) -> list[tuple[Any, ...]]:
    """The values of these columns, or of all but the meta columns: a sorted list of tuples. `read`: see `to_arrow`."""
    names = columns or [name for name in table.schema.names if not name.startswith("_hoodie_")]
    return sorted(tuple(row.values()) for row in table.to_arrow([*names], **read).to_pylist())


def made_once(build: Callable[_Options, _Made]) -> Callable[_Options, _Made]:
    """Decorate a builder of a table in memory: it runs once for the same arguments, and each call returns a new copy.

    The `repr` of the arguments tells calls apart. A copy has a name of its own; times of instants and files are those
    of the first table. The builder must not depend on anything but its arguments.
    """
    snapshots: dict[str, tuple[MemoryStore, bool]] = {}

    @functools.wraps(build)
    def copied(*args: _Options.args, **options: _Options.kwargs) -> _Made:
        key = _text([*args, *sorted(options.items())])
        if key not in snapshots:
            made = build(*args, **options)
            store = made.view().store if isinstance(made, Table) else made
            assert isinstance(store, MemoryStore), f"expected a table in memory, found {store}"
            snapshots[key] = store, isinstance(made, Table)
        store, is_table = snapshots[key]
        return cast(_Made, Table(copy_of(store)) if is_table else copy_of(store))

    return copied


def new_table(schema: pa.Schema = PLAIN, *writes: Any, path: Path | None = None, **options: Any) -> Table:
    """A new table with the data of `writes` upserted one after the other: in memory, or in the folder `path`.

    `options` are those of `hoodie.create`; the record key is `id` by default.
    """
    if path is None:
        return _in_memory(schema, *writes, **options)
    made = _folder() / hashlib.sha1(_text([schema, *writes, *sorted(options.items())]).encode()).hexdigest()
    if not made.exists():
        _fill(hoodie.create(made, schema, spark=False, **{"record_key": "id", **options}), writes)
    shutil.copytree(made, path, dirs_exist_ok=True)
    return Table(LocalStore(str(path)))


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="hoodie-tables-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@made_once
def _in_memory(schema: pa.Schema, *writes: Any, **options: Any) -> Table:
    return _fill(hoodie.create(MemoryStore().uri(""), schema, spark=False, **{"record_key": "id", **options}), writes)


def _fill(table: Table, writes: Sequence[Any]) -> Table:
    for data in writes:
        table.upsert(data)
    return table


def create_in(
    store: Store,
    *,
    table_type: str = "copy_on_write",
    index: str | None = "record",
    record_key: str | None = "id",
    ordering: str | None = "ts",
    properties: Mapping[str, str] | None = None,
    table_version: int = 9,
) -> None:
    """Create an empty table with the columns of `trips`, partitioned by `city`, in the store."""
    options = CreateOptions(
        record_key=record_key,
        partition_by="city",
        ordering=ordering,
        type=table_type,
        index=index,
        table_version=table_version,
        properties={**FEW_BUCKETS, **(properties or {})},
    )
    if not isinstance(store, MemoryStore) or store._content.files:
        create_table(store, SCHEMA, options)
        return
    store._content.files.update(_created(options)._content.files)


@made_once
def _created(options: CreateOptions) -> MemoryStore:
    store = MemoryStore()
    create_table(store, SCHEMA, options)
    return store


@made_once
def trips_store(*writes: Rows | pa.Table, **options: Any) -> MemoryStore:
    """A store with a table that `create_in` makes with these options; then an upsert for each of `writes`."""
    store = MemoryStore()
    create_in(store, **options)
    for data in writes:
        Table(store).upsert(data if isinstance(data, pa.Table) else trips(data))
    return store


def create_with_metadata_table(store: Store) -> None:
    """Create a table whose metadata table lists no file yet, as a service leaves it."""
    create_in(store)
    state = TableState(store)
    with state.table_lock() as lock:
        ensure_metadata_table(TableView.load(state, lock))


def contents(store: Store) -> dict[str, bytes]:
    """Path and bytes of every file."""
    return {info.path: store.read(info.path) for info in store.list("", recursive=True)}


def copy_of(store: Store) -> MemoryStore:
    """Another store with the same files; absolute paths in plans lead to it."""
    if not isinstance(store, MemoryStore):
        copied = MemoryStore()
        for info in store.list("", recursive=True):
            copied.create(info.path, store.read(info.path))
        return copied
    # Plans store the length of a path.
    copied = MemoryStore(uuid.uuid4().hex.ljust(len(store._name), "0")[-len(store._name) :])
    old, new = store.uri("").encode(), copied.uri("").encode()
    with store._content.lock:
        files = {path: (data.replace(old, new), at) for path, (data, at) in store._content.files.items()}
    copied._content.files.update(files)
    return copied


def _text(value: Any) -> str:
    """The value as text that differs from that of other values."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, (pa.Table, pa.RecordBatch)):
        return f"{value.schema}\n{value.to_pydict()}"
    text: str = getattr(value, "__qualname__", None) or repr(value)
    assert not any(part in text for part in (" at 0x", "<lambda>", "<locals>")), f"{text} does not tell calls apart"
    return text


def model_of(found: pa.Table) -> Rows:
    """Rows that were read, as a model; no key twice."""
    rows = {row["id"]: (row["ts"], row["city"]) for row in found.select(["id", "ts", "city"]).to_pylist()}
    assert len(rows) == found.num_rows, f"a key has two rows: {found.to_pylist()}"
    return rows


def plain(*values: tuple[str | None, int, str | None]) -> pa.Table:
    """Rows of `PLAIN`, given as tuples of key, ordering value and city."""
    return table_of(PLAIN, *values)
