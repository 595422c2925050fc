"""The bucket index: the hash of a key decides the file group of its row (docs/format/table.md §5.5). Reads no data.

A row belongs to its bucket whether or not the table has its key. So the hits of this index do not separate inserts from
updates: the merge with the file group does.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.config import indexes
from hoodie.engine import TaskContext
from hoodie.errors import CommitConflictError, InvalidConfigError, UnsupportedError
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import StagedHits, StagedRun, StageReader, write_hits
from hoodie.format.buckets import (
    BUCKET_FOLDER,
    CONSISTENT_HASHING_FOLDER,
    HASHING_CONFIG_FOLDER,
    HASHING_CONFIG_SUFFIX,
    BucketCounts,
    bucket_of_keys,
)
from hoodie.format.filenames import bucket_file_id, bucket_of_file_id
from hoodie.index.api import Index, InsertShare, PlacedRows, Placement, Purpose, Route, Tagged, TagRequest
from hoodie.index.kind import IndexKind
from hoodie.records.change import RECORD_KEY
from hoodie.storage import StoreSpec, open_store
from hoodie.timeline import Action, Timeline
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

NEW_TABLE_BUCKETS: Final = 16
"""Buckets of a new table, unless its properties set another number: files of 120 MiB hold 2 GiB of each partition."""
_BUCKETS_MAX: Final = 10**8
"""A file id has eight digits for the bucket."""
FIXED_OPTIONS: Final = (
    indexes.BUCKET_ENGINE,
    indexes.BUCKET_COUNT,
    indexes.BUCKET_FIELDS,
    indexes.BUCKET_EXPRESSIONS,
    indexes.BUCKET_RULE,
)
"""The options that decide the bucket of a key."""
WRITE_KEY_FIELDS: Final = "hoodie.datasource.write.recordkey.field"
"""Option of JVM Hudi. Its procedures and services fail (NullPointerException) on a table that stores a bucket index and
not this option."""


@dataclass(frozen=True, slots=True)
class BucketRule:
    """The rule of one table. `fields`: the columns of the record key whose values are hashed."""

    fields: tuple[str, ...]
    counts: BucketCounts

    def buckets(self, keys: pa.StringArray, partition_path: str) -> npt.NDArray[np.int32]:
        """Return the bucket of each record key of a partition. Memory: as `bucket_of_keys`."""
        return bucket_of_keys(keys, self.fields, self.counts.of(partition_path))


def bucket_rule(view: TableView, properties: Mapping[str, str]) -> BucketRule:
    """Return the rule of a table; `properties` are the effective options of a write.

    Numbers by partition in files of the table take precedence over the options, as in the JVM.

    Raises: UnsupportedError for consistent hashing, and for numbers that are not understood; InvalidConfigError;
        CorruptFileError.
    """
    where = view.store.uri("")
    if indexes.BUCKET_ENGINE.get(properties) != "simple" or view.fact(has_consistent_hashing):
        refuse_consistent_hashing(where)
    if not view.config.record_key_fields:
        raise UnsupportedError(f"{where} has automatic keys: this release writes no such table with a bucket index")
    fields = indexes.BUCKET_FIELDS.get(properties) or view.config.record_key_fields
    _check_fields(fields, view.config.record_key_fields)
    default = indexes.BUCKET_COUNT.get(properties)
    stored = view.fact(_stored_counts)
    expressions = indexes.BUCKET_EXPRESSIONS.get(properties)
    return BucketRule(fields, stored or BucketCounts.parse(expressions, default, where=where))


def rule_of_reads(view: TableView) -> BucketRule | None:
    """Return the rule by which reads find keys; None if it cannot be known or numbers differ.

    If partitions have numbers of their own, a writer may change them while a read plans.
    """
    raw = view.config.raw
    if indexes.BUCKET_EXPRESSIONS.get(raw) or view.fact(_stored_counts) is not None:
        return None
    try:
        return bucket_rule(view, raw)
    except (UnsupportedError, InvalidConfigError):
        return None


def has_consistent_hashing(view: TableView) -> bool:
    """Return whether the table has files of a bucket index with consistent hashing."""
    return CONSISTENT_HASHING_FOLDER in view.store.folders(BUCKET_FOLDER)


def refuse_consistent_hashing(where: str) -> NoReturn:
    """Raise the error of a write to a table with consistent hashing. Raises: UnsupportedError."""
    raise UnsupportedError(
        f"{where} has a bucket index with consistent hashing, whose buckets are split and merged: this release "
        "reads such tables and does not write them; write to it with JVM Hudi"
    )


def _stored_counts(view: TableView) -> BucketCounts | None:
    """Return the numbers of the newest file that no pending replace commit wrote; None if there are no files."""
    pending = {instant.requested_time for instant in view.timeline.pending() if instant.action is Action.REPLACE_COMMIT}
    names = sorted(
        info.name
        for info in view.store.list(HASHING_CONFIG_FOLDER)
        if info.name.endswith(HASHING_CONFIG_SUFFIX) and info.name.partition(".")[0] not in pending
    )
    if not names:
        return None
    path = f"{HASHING_CONFIG_FOLDER}/{names[-1]}"
    return BucketCounts.parse_file(view.store.read(path), path=view.store.uri(path))


def new_table_properties(properties: Mapping[str, str], record_key: Sequence[str]) -> dict[str, str]:
    """Return the bucket properties that a new table stores. JVM writers obey them too.

    Raises: InvalidConfigError, UnsupportedError.
    """
    if indexes.BUCKET_ENGINE.get(properties) != "simple":
        raise UnsupportedError(
            f"{indexes.BUCKET_ENGINE.key}=consistent_hashing: this release creates tables with simple buckets only; "
            "omit the option"
        )
    if indexes.BUCKET_EXPRESSIONS.get(properties):
        raise UnsupportedError(
            f"{indexes.BUCKET_EXPRESSIONS.key}: this release creates tables with one number of buckets for all "
            "partitions, and writes tables of JVM Hudi with several; omit the option"
        )
    if not record_key:
        raise UnsupportedError("index='bucket' hashes the columns of a record key: pass record_key, or another index")
    fields = indexes.BUCKET_FIELDS.get(properties) or tuple(record_key)
    _check_fields(fields, record_key)
    count = indexes.BUCKET_COUNT.get(properties, {indexes.BUCKET_COUNT.key: str(NEW_TABLE_BUCKETS)})
    if count >= _BUCKETS_MAX:
        raise InvalidConfigError(f"{indexes.BUCKET_COUNT.key}={count}: fewer than {_BUCKETS_MAX:,} buckets expected")
    return {
        indexes.BUCKET_ENGINE.key: "SIMPLE",
        indexes.BUCKET_COUNT.key: str(count),
        indexes.BUCKET_FIELDS.key: ",".join(fields),
        WRITE_KEY_FIELDS: ",".join(record_key),
    }


def _check_fields(fields: Sequence[str], record_key: Sequence[str]) -> None:
    unknown = [name for name in fields if name not in record_key]
    if unknown:
        raise InvalidConfigError(
            f"{indexes.BUCKET_FIELDS.key}={','.join(fields)}: expected columns of the record key, "
            f"{','.join(record_key)}"
        )


_REMEDY: Final = (
    "a writer without the bucket index wrote here; roll that write back (t.rollback), or write the rows to a new table"
)


def file_ids_by_bucket(
    slices: Iterable[FileSlice], rule: BucketRule, *, where: str, remedy: str = _REMEDY
) -> dict[str, dict[int, str]]:
    """Return the file id of each bucket that has a file group, by partition path.

    `remedy`: what the error advises; by default what helps a table with the bucket index.

    Raises: UnsupportedError if a file group has no bucket of its partition, or a bucket has two file groups: keys of
        that partition could be in several file groups.
    """
    found: dict[str, dict[int, str]] = {}
    for file_slice in slices:
        path, file_id = file_slice.partition_path, file_slice.file_id
        bucket, count = bucket_of_file_id(file_id), rule.counts.of(path)
        name = f"{path}/{file_id}" if path else file_id
        if bucket is None or bucket >= count:
            raise UnsupportedError(f"{where}: the file group {name} belongs to none of the {count} buckets: {remedy}")
        other = found.setdefault(path, {}).setdefault(bucket, file_id)
        if other != file_id:
            raise UnsupportedError(
                f"{where}: the file groups {name} and {other} are of one bucket, where one is expected: {remedy}"
            )
    return found


def looks_bucketed(file_ids: Iterable[str]) -> bool:
    """Return whether all these file ids, at least one, look like those of buckets with numbers below 10,000.

    A file id that a random uuid begins looks like this once in 400,000 times.
    """
    found = list(file_ids)
    return bool(found) and all(name.startswith("0000") and bucket_of_file_id(name) is not None for name in found)


_TASK_ROWS = 1_000_000
_KEY_BYTES = 64
"""Estimated bytes of a staged key, which decide where the work runs."""


@dataclass(slots=True)
class BucketIndex(Index):
    """Index that finds the file group of a key by its hash. `placed`: the rows of new file groups, after `tag`.

    `properties`: the effective options of the write. JVM Hudi can change the numbers of buckets of partitions. If it
    may have done so since the write was set up, with the timeline `ruled`, `tag` computes the rule again.
    All rows of a bucket can be appended to log files: it has one file group. Cost: one listing of the file groups of
    the touched partitions, and the key column of the staged rows. Memory of a task: the keys of a million rows.
    """

    view: TableView
    rule: BucketRule
    properties: Mapping[str, str]
    ruled: Timeline
    has_stored_counts: bool
    new_id: Callable[[], uuid.UUID] = uuid.uuid4
    placed: tuple[StagedHits, ...] = field(default=(), init=False)
    name = "bucket"
    indexes_logs = True

    def tag(self, request: TagRequest) -> Tagged:
        """See `Index.tag`. Rows of buckets without a file group are placed in new ones.

        Raises: UnsupportedError if a touched partition has file groups that do not obey the rule.
        """
        if self.has_stored_counts or _may_differ(self.ruled, self.view.timeline):
            self.rule = bucket_rule(self.view, self.properties)
        paths = {run.partition_path for run in request.runs}
        slices = tuple(list_slices(self.view, paths))
        known = {}
        if request.purpose is not Purpose.REPLACE:
            known = file_ids_by_bucket(slices, self.rule, where=self.view.store.uri(""))
        unique = self.new_id()
        tasks = [
            _BucketTask(
                store=self.view.store.spec,
                rule=self.rule,
                partition_path=path,
                runs=runs,
                known=known.get(path, {}),
                # File ids differ between partitions.
                unique=uuid.uuid5(unique, path),
                output=f"{request.stage_folder}/buckets-{number}",
            )
            for number, (path, runs) in enumerate(_batches(request.runs))
        ]
        engine = request.engine_for(sum(run.rows for run in request.runs) * _KEY_BYTES)
        hits = [hit for found in engine.run(assign, tasks) for hit in found]
        current = {file_slice.group for file_slice in slices}
        merges = request.purpose is Purpose.MERGE
        is_met = [merges and (hit.partition_path, hit.file_id) in current for hit in hits]
        self.placed = tuple(hit for hit, met in zip(hits, is_met, strict=True) if not met)
        return Tagged(hits=tuple(hit for hit, met in zip(hits, is_met, strict=True) if met), slices=slices)

    def check_placed(self, now: TableView) -> None:
        """See `Index.check_placed`. Nothing is read unless a replace commit completed since: it changes the numbers.

        Raises: CommitConflictError; as `bucket_rule`.
        """
        if _may_differ(self.view.timeline, now.timeline) and bucket_rule(now, self.properties) != self.rule:
            cause = f"the numbers of buckets of {now.store.uri('')} changed while this write ran"
            raise CommitConflictError(f"{cause}; nothing was committed, try again", retry_cause=cause)

    def placement(self, default: Placement) -> Placement:
        """Return this index, which places each insert that `tag` placed in the file group of its bucket."""
        return self

    def place(self, partition_path: str, rows: int, slices: Sequence[FileSlice]) -> Iterator[InsertShare]:
        """Return a share for each bucket that gets rows; see `Placement.place`."""
        by_file_id: dict[str, list[StagedHits]] = {}
        for hits in self.placed:
            if hits.partition_path == partition_path:
                by_file_id.setdefault(hits.file_id, []).append(hits)
        for file_id, found in sorted(by_file_id.items()):
            yield InsertShare(file_id, PlacedRows(tuple(found)), sum(hits.updates for hits in found))


def _batches(runs: Sequence[StagedRun]) -> Iterator[tuple[str, tuple[StagedRun, ...]]]:
    """Yield runs of one partition with about a million rows, in the order of their rows."""
    by_path: dict[str, list[StagedRun]] = {}
    for run in sorted(runs, key=lambda run: run.start):
        mine = by_path.setdefault(run.partition_path, [])
        mine.append(run)
        if sum(found.rows for found in mine) >= _TASK_ROWS:
            yield run.partition_path, tuple(by_path.pop(run.partition_path))
    for path, left in by_path.items():
        yield path, tuple(left)


@dataclass(frozen=True, slots=True, kw_only=True)
class _BucketTask:
    store: StoreSpec
    rule: BucketRule
    partition_path: str
    runs: tuple[StagedRun, ...]
    known: Mapping[int, str]
    unique: uuid.UUID
    output: str


def assign(task: _BucketTask, context: TaskContext) -> list[StagedHits]:
    """Assign each row to the file group of its bucket, which may be new. Runs on a worker. Memory: the keys."""
    store = open_store(task.store)
    with StageReader(store, [RECORD_KEY]) as reader:
        keys = pa.concat_arrays([reader.read(run).column(RECORD_KEY) for run in task.runs])
    ordinals = np.concatenate([np.arange(run.start, run.start + run.rows) for run in task.runs])
    buckets = task.rule.buckets(keys, task.partition_path)
    order = np.argsort(buckets, kind="stable")
    numbers, starts = np.unique(buckets[order], return_index=True)
    routes = np.full(len(keys), np.int8(Route.UPDATE))
    found = (
        (
            task.partition_path,
            task.known.get(int(number)) or bucket_file_id(int(number), task.unique),
            ordinals[rows],
            routes[: len(rows)],
        )
        for number, rows in zip(numbers, np.split(order, starts[1:]), strict=True)
    )
    return write_hits(store, f"{task.output}-{context.attempt}.arrow", found)


def _make(view: TableView, properties: Mapping[str, str]) -> BucketIndex:
    rule = bucket_rule(view, properties)
    return BucketIndex(view, rule, properties, view.timeline, view.fact(_stored_counts) is not None)


def _may_differ(before: Timeline, now: Timeline) -> bool:
    """Return whether a commit completed meanwhile that may have changed the numbers of buckets."""
    known = {found.requested_time for found in before.completed()}
    since = (found for found in now.completed() if found.requested_time not in known)
    return any(found.action is Action.REPLACE_COMMIT for found in since)


BUCKET: Final = IndexKind(
    name="bucket",
    types=("BUCKET",),
    make=_make,
    places_rows=True,
    own_options=FIXED_OPTIONS,
    own_properties=new_table_properties,
)
