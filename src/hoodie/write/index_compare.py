"""Compare two indexes: tag the keys of a batch with both, and report every difference.

The batch is prepared, staged and tagged as in a write; only staged keys are written. The file group of each key in the
whole table is compared. The effect of a write on the rows is not compared, because indexes differ in it by design.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie.commit.call import Call
from hoodie.engine import Dataset
from hoodie.errors import InvalidConfigError
from hoodie.files.staging.staged import StageReader, keys_of_rows, stage_folder
from hoodie.index import BLOOM, BUCKET, GLOBAL_BLOOM, GLOBAL_SIMPLE, RECORD, SIMPLE, Index, index_kind, index_of_view
from hoodie.index.bloom.index import BloomIndex
from hoodie.index.bucket import BucketRule, bucket_rule, file_ids_by_bucket
from hoodie.index.record.index import RecordIndex
from hoodie.index.record.state import IndexedState, consistent_state
from hoodie.index.simple import SimpleIndex
from hoodie.records.change import RECORD_KEY
from hoodie.results import EXAMPLES_MAX, Finding, Report
from hoodie.storage import Store
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView
from hoodie.write.jobs import preparation_of, tag_request_of
from hoodie.write.setup import WriteSetup, check_write
from hoodie.write.staging import Staged, stage

COMPARABLE = tuple(kind.name for kind in (RECORD, SIMPLE, GLOBAL_SIMPLE, BLOOM, GLOBAL_BLOOM, BUCKET))

Rows = npt.NDArray[np.int64]


def check_comparable(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the indexes. Raises: InvalidConfigError unless these are two comparable indexes."""
    found = tuple(index_kind(name).name for name in names)
    if len(set(found)) != 2 or not set(found) <= set(COMPARABLE):
        raise InvalidConfigError(f"compare {' and '.join(map(repr, names))}: expected two of {', '.join(COMPARABLE)}")
    return found


def compare_batch(call: Call, data: Dataset, names: Sequence[str]) -> Report:
    """Tag a batch with two indexes, and report the differences. `data` has the key columns; others are ignored.

    `simple` and `bloom` search the whole table here, because the record index does not distinguish partitions. `bucket`
    does not know which keys exist: where the other index finds a key, its file group is compared with the file group of
    the key's bucket. Driver memory: 32 bytes for each row of the batch.

    Raises: InvalidConfigError if the table lacks an index; SchemaMismatchError, RecordKeyError for bad data;
        UnsupportedError if file groups do not obey the buckets.
    """
    started = time.perf_counter()
    first, second = check_comparable(names)
    setup = check_write(call, None)
    state = consistent_state(call.state) if RECORD.name in (first, second) else None
    view = setup.view if state is None else state.view
    rule = _bucket_rule(view) if BUCKET.name in (first, second) else None
    preparation = replace(preparation_of(setup, keys_only=True), any_partition=True)
    with stage_folder(view.store) as folder:
        setup = replace(setup, view=view)
        key_stage = None if state is None else RecordIndex(view).key_stage(setup.merger)
        staged = stage(call.engine, data, preparation, view.store.spec, folder, key_stage=key_stage)
        by_index = {
            name: _located(setup, staged, _index(name, view, state), f"{folder}/{place}")
            for place, name in enumerate((first, second))
            if name != BUCKET.name
        }
        if rule is not None:
            (other,) = by_index.values()
            by_index[BUCKET.name] = _in_buckets(view, staged, other, rule)
        report = _compared(view.store, staged, [by_index[first], by_index[second]], (first, second))
    subject = f"{first} beside {second} in {view.store.uri('')}"
    return replace(report, subject=subject, seconds=time.perf_counter() - started)


def _index(name: str, view: TableView, state: IndexedState | None) -> Index:
    """Return an index for look-ups only: no record moves."""
    if state is not None and name == RECORD.name:
        return RecordIndex(state.view)
    if name in (BLOOM.name, GLOBAL_BLOOM.name):
        return BloomIndex(view, is_global=True, update_partition_path=False)
    return SimpleIndex(view, is_global=True, update_partition_path=False)


def _bucket_rule(view: TableView) -> BucketRule:
    if index_of_view(view) is not BUCKET:
        raise InvalidConfigError(f"{view.store.uri('')} has no bucket index")
    return bucket_rule(view, view.config.raw)


def _in_buckets(view: TableView, staged: Staged, other: _Located, rule: BucketRule) -> _Located:
    """Return the file groups of the buckets of the rows that another index found, in the partitions where it did."""
    known = file_ids_by_bucket(list_slices(view), rule, where=view.store.uri(""))
    paths = [path for path, _ in other.names]
    names = list(dict.fromkeys((path, file_id) for path in paths for file_id in known.get(path, {}).values()))
    number_of = {name: number for number, name in enumerate(names)}
    rows: list[Rows] = [np.zeros(0, np.int64)]
    groups: list[Rows] = [np.zeros(0, np.int64)]
    with StageReader(view.store, [RECORD_KEY]) as reader:
        for run in staged.runs:
            keys = reader.read(run).column(RECORD_KEY)
            inside = (other.rows >= run.start) & (other.rows < run.start + run.rows)
            for path in dict.fromkeys(paths):
                numbers = [number for number, (found, _) in enumerate(other.names) if found == path]
                mine = other.rows[inside & np.isin(other.groups, numbers)]
                buckets = rule.buckets(keys.take(pa.array(mine - run.start)), path).tolist()
                file_ids = [known[path].get(bucket) for bucket in buckets]
                has = np.array([found is not None for found in file_ids], np.bool_)
                rows.append(mine[has])
                groups.append(np.array([number_of[path, found] for found in file_ids if found is not None], np.int64))
    return _Located(np.concatenate(rows), np.concatenate(groups), tuple(names))


@dataclass(frozen=True, slots=True)
class _Located:
    """The hits of one index: for each hit the ordinal of the row and the number of its file group."""

    rows: Rows
    groups: Rows
    names: tuple[tuple[str, str], ...]


def _located(setup: WriteSetup, staged: Staged, index: Index, folder: str) -> _Located:
    tagged = index.tag(tag_request_of(setup, staged, folder))
    hits = [hit for hit in tagged.hits if hit.file_id]
    names = tuple(dict.fromkeys((hit.partition_path, hit.file_id) for hit in hits))
    places = {name: place for place, name in enumerate(names)}
    rows: list[Rows] = [np.zeros(0, np.int64)]
    groups: list[Rows] = [np.zeros(0, np.int64)]
    with StageReader(setup.view.store) as reader:
        for hit in hits:
            found = np.asarray(reader.read(hit).column("row"))
            rows.append(found)
            groups.append(np.full(len(found), places[hit.partition_path, hit.file_id]))
    return _Located(np.concatenate(rows), np.concatenate(groups), names)


def _compared(store: Store, staged: Staged, found: Sequence[_Located], names: tuple[str, str]) -> Report:
    """Report the pairs of row and file group that only one of the two indexes found."""
    groups = list(dict.fromkeys(name for located in found for name in located.names))
    place = {name: number for number, name in enumerate(groups)}
    count = max(len(groups), 1)
    pairs: list[Rows] = []
    for located in found:
        numbers = np.array([place[name] for name in located.names], np.int64)
        pairs.append(np.unique(located.rows * count + (numbers[located.groups] if len(numbers) else 0)))
    problems: dict[str, int] = {}
    findings: list[Finding] = []
    for this, other in ((0, 1), (1, 0)):
        only = np.setdiff1d(pairs[this], pairs[other], assume_unique=True)
        kind = f"rows that only {names[this]} finds there"
        problems[kind] = len(only)
        shown = only[:EXAMPLES_MAX]
        for key, pair in zip(keys_of_rows(store, staged.runs, shown // count), shown.tolist(), strict=True):
            path, file_id = groups[pair % count]
            findings.append(Finding(kind=kind, key=key, found=f"{path}/{file_id}" if path else file_id))
    checked = {
        "rows": sum(run.rows for run in staged.runs),
        **{f"found by {name}": len(np.unique(located.rows)) for name, located in zip(names, found, strict=True)},
    }
    return Report(subject="", checked=checked, problems=problems, findings=tuple(findings))
