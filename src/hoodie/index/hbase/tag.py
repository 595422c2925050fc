"""Look up the staged keys of a write in HBase. Runs on workers.

`fetch` reads all versions of the keys of a group; then the driver determines which of their instants are committed, and
`resolve` chooses the newest committed version of each key. The client has lists of Python objects per batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskContext
from hoodie.files.staging.staged import new_staged_file, staged_input, write_hits
from hoodie.files.staging.staged_keys import ROW, StagedKeys, read_keys
from hoodie.index.api import LookUpCost
from hoodie.index.hbase.client import HBaseClient, HBaseSettings
from hoodie.index.hbase.versions import row_keys, versions_of
from hoodie.index.record.tag import FileGroup, TaggedGroup, by_file_group, routes_of
from hoodie.records.change import RECORD_KEY
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import Store, StoreSpec, open_store

Codes = npt.NDArray[np.int64]

_FLUSH_ROWS = 65_536
_VERSIONS = pa.schema(
    [
        pa.field("key", pa.int64(), False),
        pa.field("instant_time", pa.string(), False),
        pa.field("partition_path", pa.string()),
        pa.field("file_id", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTask:
    """The keys of one or more groups. `rows_per_second`: the rate limit of the task. Picklable."""

    store: StoreSpec
    settings: HBaseSettings
    merger: RecordMerger
    keys: tuple[StagedKeys, ...]
    moves_records: bool
    rows_per_second: float
    output: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """The versions of the keys of a task, in a staged file; `keys` are counted once each."""

    task: KeyTask
    path: str
    keys: int
    instant_times: frozenset[str]


def fetch(task: KeyTask, context: TaskContext) -> Fetched:
    """Read the versions of the keys from HBase. Memory: the keys, and one batch of answers.

    Raises: IndexUnavailableError; RecordKeyError for a key that HBase cannot have.
    """
    store = open_store(task.store)
    distinct, _ = _distinct(store, task)
    path = f"{task.output}-versions-{context.attempt}.arrow"
    times: set[str] = set()
    with (
        new_staged_file(store, path) as sink,
        pa.ipc.new_file(sink, _VERSIONS) as writer,
        HBaseClient(task.settings, task.rows_per_second) as client,
    ):
        parts: list[tuple[int, str, str | None, str | None]] = []
        for number, row in enumerate(client.get(row_keys(distinct))):
            for version in versions_of(row):
                parts.append((number, version.instant_time, *(version.location or (None, None))))
                times.add(version.instant_time)
            if len(parts) >= _FLUSH_ROWS:
                writer.write_batch(_batch(parts))
                parts = []
        writer.write_batch(_batch(parts))
    return Fetched(task, path, len(distinct), frozenset(times))


def resolve(todo: tuple[Fetched, frozenset[str]], context: TaskContext) -> TaggedGroup:
    """Choose the newest committed version of each key, and determine the route of each row. Memory: as `fetch`.

    `todo`: fetched versions, and those of their instants that are committed.
    """
    fetched, committed = todo
    task = fetched.task
    store = open_store(task.store)
    distinct, key_of_row = _distinct(store, task)
    groups, codes = _newest(store, fetched.path, committed, len(distinct))
    rows = read_keys(store, task.keys)
    row_codes = codes[key_of_row]
    routes = routes_of(task.merger, rows, groups, row_codes, moves_records=task.moves_records)
    ordinals = np.asarray(rows[ROW].combine_chunks())
    found = by_file_group(groups, row_codes, ordinals, routes)
    hits = write_hits(store, f"{task.output}-{context.attempt}.arrow", found)
    return TaggedGroup(tuple(hits), LookUpCost(keys=len(distinct), found=int((codes >= 0).sum())))


def _distinct(store: Store, task: KeyTask) -> tuple[pa.StringArray, npt.NDArray[np.int32]]:
    """Return the keys of a task once each, and for each staged row the position of its key."""
    encoded = read_keys(store, task.keys)[RECORD_KEY].combine_chunks().dictionary_encode()
    return encoded.dictionary, np.asarray(encoded.indices)


def _newest(store: Store, path: str, instants: frozenset[str], keys: int) -> tuple[list[FileGroup], Codes]:
    """Return file groups, and for each key its position in them; -1 for a key that is unknown or deleted."""
    with staged_input(store, path) as source:
        versions = pa.ipc.open_file(source).read_all()
    committed = versions.filter(pc.is_in(versions["instant_time"], value_set=pa.array(instants, pa.string())))
    # The versions of a key are together, the newest first.
    _, first = np.unique(np.asarray(committed["key"].combine_chunks()), return_index=True)
    newest = committed.take(pa.array(first))
    live = newest.filter(pc.is_valid(newest["file_id"])).combine_chunks()
    # A file id has no slash; a partition path may have some.
    names = pc.binary_join_element_wise(live["partition_path"], live["file_id"], "/").combine_chunks()
    encoded = names.dictionary_encode()
    codes = np.full(keys, -1, np.int64)
    codes[np.asarray(live["key"].combine_chunks())] = np.asarray(encoded.indices)
    groups = [name.rpartition("/") for name in encoded.dictionary.to_pylist()]
    return [(path, file_id) for path, _, file_id in groups], codes


def _batch(parts: list[tuple[int, str, str | None, str | None]]) -> pa.RecordBatch:
    columns = list(zip(*parts, strict=True)) if parts else [(), (), (), ()]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _VERSIONS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_VERSIONS)
