"""Check the keys of a table: what its index, or the index to which it is switched, relies on must hold for its rows.

Workers read the key and partition columns of the newest file slices. Memory of a task: one piece of `read_file_slice`;
of a task that compares keys: the keys of one of the parts into which the keys of the table are divided by hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import EngineFor, TaskContext
from hoodie.engine.packing import chunks
from hoodie.errors import HoodieError, RecordKeyError, UnsupportedError
from hoodie.files.merged_slice import SliceRead, read_file_slice
from hoodie.files.slices import FileSlice
from hoodie.files.staging.staged import stage_folder
from hoodie.files.staging.staged_keys import KeyGroups
from hoodie.format.filenames import bucket_of_file_id
from hoodie.format.table.table_config import TableConfig
from hoodie.index import index_of_view, obeys_buckets, partition_follows_columns, rows_follow_columns
from hoodie.index.bucket import BucketRule, bucket_rule, file_ids_by_bucket
from hoodie.index.record.building.file_group_files import FileGroupEntries, StagedFileGroups
from hoodie.index.record.differences import changes_between, stage_changes
from hoodie.index.record.entries import ENTRY_BYTES, EntryStage
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.key_generator import KeyGenerator, table_key_generator
from hoodie.results import EXAMPLES_MAX
from hoodie.storage import StoreSpec, open_store
from hoodie.view.columns import whole_read
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView

_TASK_BYTES = 256 * 1024 * 1024
_PART_BYTES = 64 * 1024 * 1024
"""Bytes of data files whose keys are compared by one task: a million rows of 64 bytes at most."""
_SHOWN = 3


class KeyRule(Enum):
    """What holds for the rows of each key."""

    ONE_ROW = "one row"
    ONE_ROW_IN_PARTITION = "one row in a partition"
    ONE_PARTITION = "all rows in one partition"


@dataclass(frozen=True, slots=True)
class BrokenKeys:
    """The number of keys that break a rule, and a few of each part with the file group of one of their rows.

    `rows`: the number of rows of the file slices.
    """

    count: int
    examples: tuple[tuple[str, tuple[str, str]], ...]
    rows: int


def keys_that_break(
    rule: KeyRule, view: TableView, engine_for: EngineFor, slices: Sequence[FileSlice], read: SliceRead
) -> BrokenKeys:
    """Find the keys of file slices that break a rule."""
    spec = view.store.spec
    parts = max(1, sum(found.size_bytes for found in slices) // _PART_BYTES)
    with stage_folder(view.store) as folder:
        stage = EntryStage(folder, KeyGroups(parts))
        staged = stage_changes(engine_for, spec, changes_between([], slices), stage, read)
        by_part = StagedFileGroups.of(staged, parts)
        numbers: dict[str, int] = {}
        places = [0 if rule is KeyRule.ONE_ROW else numbers.setdefault(p, len(numbers)) for p, _ in by_part.locations]
        rows = sum(entries.rows for entries in staged)
        task = partial(_broken_keys, store=spec, places=places, rule=rule)
        found = engine_for(rows * ENTRY_BYTES).run(task, by_part.file_groups)
    examples = tuple((key, by_part.locations[code]) for _, some in found for key, code in some)
    return BrokenKeys(sum(count for count, _ in found), examples, rows)


def _broken_keys(
    part: FileGroupEntries, _context: TaskContext, *, store: StoreSpec, places: Sequence[int], rule: KeyRule
) -> tuple[int, list[tuple[str, int]]]:
    """Return the number of keys of a part that break a rule, and a few of them with the code of one of their rows.

    `places`: a number for each code.
    """
    keys, codes = part.read(open_store(store))
    if not len(keys):
        return 0, []
    width = max(places) + 1
    numbers = np.asarray(keys.dictionary_encode().indices).astype(np.int64)
    pairs, first, counts = np.unique(numbers * width + np.asarray(places)[codes], return_index=True, return_counts=True)
    if rule is KeyRule.ONE_PARTITION:
        _, of_key, counts = np.unique(pairs // width, return_index=True, return_counts=True)
        first = first[of_key]
    broken = first[counts > 1]
    few = broken[:EXAMPLES_MAX]
    return len(broken), list(zip(pc.take(keys, pa.array(few)).to_pylist(), codes[few].tolist(), strict=True))


def check_one_partition_each(view: TableView, engine_for: EngineFor) -> int:
    """Refuse a table in which a key is in two partitions; return the number of its rows.

    Raises: RecordKeyError, with the number of such keys and three of them.
    """
    problem = "are in several partitions, e.g. {}: an index of the whole table needs each key in one"
    return _refuse_broken(KeyRule.ONE_PARTITION, view, engine_for, problem)


def check_one_row_each(view: TableView, engine_for: EngineFor) -> int:
    """Refuse a table in which a key has two rows, as a build of the record index does; return the number of its rows.

    Raises: RecordKeyError, with the number of such keys and three of them.
    """
    problem = "have several rows, e.g. {}: the record index stores one location for a key"
    return _refuse_broken(KeyRule.ONE_ROW, view, engine_for, problem)


def _refuse_broken(rule: KeyRule, view: TableView, engine_for: EngineFor, problem: str) -> int:
    """Refuse a table with keys that break the rule; `problem` has a place for a few of the keys."""
    found = keys_that_break(rule, view, engine_for, list_slices(view), whole_read(view))
    if found.count:
        examples = [key for key, _ in found.examples[:_SHOWN]]
        raise RecordKeyError(
            f"{found.count:,} keys of {view.store.uri('')} {problem.format(examples)}; delete the other rows, then "
            "switch"
        )
    return found.rows


def check_past_state(view: TableView, engine_for: EngineFor, *, remedy: str) -> None:
    """Refuse an earlier state whose rows the table's index of today does not find. Reads nothing if it must find them.

    `remedy`: what the error advises.

    Raises: UnsupportedError, as `check_partitions_of_columns` and `check_buckets`.
    """
    config = view.config
    follows = rows_follow_columns(view) or not partition_follows_columns(config)
    if not follows and partition_generator(config) is not None:
        check_partitions_of_columns(view, engine_for, remedy=remedy)
    if index_of_view(view).places_rows and not obeys_buckets(view):
        check_buckets(view, engine_for, bucket_rule(view, config.raw), remedy=remedy)


def partition_generator(config: TableConfig) -> KeyGenerator | None:
    """Return what makes the partition path of a row from its columns; None if that is not known, or no partitions."""
    if not config.partition_fields:
        return None
    try:
        generator = table_key_generator(config)
    except HoodieError:
        return None
    return None if generator.time_formats is None else generator


_INSERT_ANEW = "an index of single partitions would not find them; delete them and insert them again, then switch"


def check_partitions_of_columns(view: TableView, engine_for: EngineFor, *, remedy: str = _INSERT_ANEW) -> int:
    """Refuse a table with rows in another partition than their columns name; return the number of its rows.

    `remedy`: what the error advises.

    Raises: UnsupportedError, with the number of such rows and three of their keys.
    """
    found = _read(view, engine_for, table_key_generator(view.config), None)
    if found.wrong:
        raise UnsupportedError(
            f"{found.wrong:,} rows of {view.store.uri('')} are in another partition than their columns name, e.g. "
            f"those with the keys {list(found.keys)}: {remedy}"
        )
    return found.rows


_NEW_TABLE = "create a table with index='bucket', and write the rows to it with bulk_insert"
# The table is sound, and its writes are not to be rolled back: they obeyed the index that it has.
_NO_BUCKETS = (
    "the file groups of this table do not obey these buckets: it was written without the bucket index, or with "
    f"another number of buckets. To get a bucket index: {_NEW_TABLE}"
)
_OTHER_BUCKETS = f"the number of buckets or the hash fields differ from those of the writer. Else: {_NEW_TABLE}"


def check_buckets(view: TableView, engine_for: EngineFor, rule: BucketRule, *, remedy: str | None = None) -> int:
    """Refuse a table whose file groups do not obey a bucket rule; return the number of its rows.

    `remedy`: what the error advises; by default, how the table gets a bucket index.

    Raises: UnsupportedError, naming file groups or keys.
    """
    where = view.store.uri("")
    file_ids_by_bucket(list_slices(view), rule, where=where, remedy=remedy or _NO_BUCKETS)
    found = _read(view, engine_for, None, rule)
    if found.wrong:
        raise UnsupportedError(
            f"{found.wrong:,} keys of {where} are not in the file group of their bucket, e.g. {list(found.keys)}: "
            f"{remedy or _OTHER_BUCKETS}"
        )
    return found.rows


@dataclass(frozen=True, slots=True)
class _Checked:
    """Counts of rows, and the keys of a few that are wrong."""

    rows: int = 0
    wrong: int = 0
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Task:
    store: StoreSpec
    read: SliceRead
    slices: tuple[FileSlice, ...]
    generator: KeyGenerator | None
    rule: BucketRule | None


def _read(view: TableView, engine_for: EngineFor, generator: KeyGenerator | None, rule: BucketRule | None) -> _Checked:
    """Read the keys of all rows, and count those in a wrong partition (`generator`) or a wrong bucket (`rule`)."""
    slices = list_slices(view)
    columns = [RECORD_KEY]
    if generator is not None:
        columns += dict.fromkeys(name.split(".")[0] for name in generator.partition_fields)
    read = replace(whole_read(view), columns=tuple(columns), with_keys=True)
    if view.until is not None:
        # Log files can have blocks of later commits.
        timeline = view.timeline if read.rule.timeline is not None else None
        read = replace(read, rule=replace(read.rule, older=view.timeline, timeline=timeline))
    tasks = [_Task(view.store.spec, read, group, generator, rule) for group in chunks(slices, _TASK_BYTES)]
    parts = engine_for(sum(found.size_bytes for found in slices)).run(_check, tasks)
    keys = tuple(key for part in parts for key in part.keys)[:_SHOWN]
    return _Checked(sum(part.rows for part in parts), sum(part.wrong for part in parts), keys)


def _check(task: _Task, _context: TaskContext) -> _Checked:
    store = open_store(task.store)
    rows = wrong = 0
    keys: list[str] = []
    for found in task.slices:
        for piece in read_file_slice(store, found, task.read):
            for batch in piece.to_batches():
                mask = _misplaced(batch, found, task)
                rows += batch.num_rows
                wrong += int(mask.sum())
                if mask.any() and len(keys) < _SHOWN:
                    keys += batch.column(RECORD_KEY).filter(pa.array(mask)).slice(0, _SHOWN).to_pylist()
    return _Checked(rows, wrong, tuple(keys[:_SHOWN]))


def _misplaced(batch: pa.RecordBatch, found: FileSlice, task: _Task) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask of the rows that are not where the new index looks for them."""
    mask = np.zeros(batch.num_rows, np.bool_)
    if task.generator is not None:
        paths = task.generator.partition_paths(batch)
        mask |= np.asarray(pc.not_equal(paths, found.partition_path))
    if task.rule is not None:
        mask |= task.rule.buckets(batch.column(RECORD_KEY), found.partition_path) != bucket_of_file_id(found.file_id)
    return mask
