"""Compare two indexes: tag the keys of a batch with both, and report every difference.

The batch is prepared, staged and tagged as in a write; only staged keys are written. The file group of each key in the
whole table is compared. The effect of a write on the rows is not compared, because indexes differ in it by design.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

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
_Group = tuple[str, str]
"""Partition path and file id."""
_Located = Mapping[_Group, Rows]
"""The rows that an index found in each file group, by their ordinals."""


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


def _located(setup: WriteSetup, staged: Staged, index: Index, folder: str) -> _Located:
    hits = [hit for hit in index.tag(tag_request_of(setup, staged, folder)).hits if hit.file_id]
    with StageReader(setup.view.store) as reader:
        return _joined(((hit.partition_path, hit.file_id), np.asarray(reader.read(hit).column("row"))) for hit in hits)


def _joined(found: Iterable[tuple[_Group, Rows]]) -> _Located:
    parts: dict[_Group, list[Rows]] = {}
    for group, rows in found:
        parts.setdefault(group, []).append(rows)
    return {group: np.concatenate(rows) for group, rows in parts.items()}


def _in_buckets(view: TableView, staged: Staged, other: _Located, rule: BucketRule) -> _Located:
    """Return the file groups of the buckets of the rows that another index found, in the partitions where it did."""
    known = file_ids_by_bucket(list_slices(view), rule, where=view.store.uri(""))
    by_path = _joined(((path, ""), rows) for (path, _), rows in other.items())

    def found(reader: StageReader) -> Iterator[tuple[_Group, Rows]]:
        for run in staged.runs:
            keys = reader.read(run).column(RECORD_KEY)
            for (path, _), rows in by_path.items():
                mine = rows[(rows >= run.start) & (rows < run.start + run.rows)]
                buckets = np.asarray(rule.buckets(keys.take(pa.array(mine - run.start)), path))
                for bucket in np.unique(buckets).tolist():
                    if (file_id := known.get(path, {}).get(bucket)) is not None:
                        yield (path, file_id), mine[buckets == bucket]

    with StageReader(view.store, [RECORD_KEY]) as reader:
        return _joined(found(reader))


def _compared(store: Store, staged: Staged, found: Sequence[_Located], names: tuple[str, str]) -> Report:
    """Report the pairs of row and file group that only one of the two indexes found."""
    groups = list(dict.fromkeys(group for located in found for group in located))
    place = {group: number for number, group in enumerate(groups)}
    count = max(len(groups), 1)
    pairs: list[Rows] = []
    for located in found:
        codes = [rows * count + place[group] for group, rows in located.items()]
        pairs.append(np.unique(np.concatenate([np.zeros(0, np.int64), *codes])))
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
        **{f"found by {name}": len(np.unique(own // count)) for name, own in zip(names, pairs, strict=True)},
    }
    return Report(subject="", checked=checked, problems=problems, findings=tuple(findings))
