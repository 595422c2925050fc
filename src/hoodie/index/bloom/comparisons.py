"""Sort the staged keys of a write, and plan their comparisons with files: which keys each file meets, and the tasks.

A task sorts about a million rows and stores them in blocks. The keys in the range of a file are neighbours then: two
searches find them, and a later task reads only the blocks with keys that it compares. Comparisons are counted, not
files: a file that meets many keys is divided, so that no task does more than a bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine import TaskContext
from hoodie.files.staging.staged import StagedRun, StageReader, new_staged_file
from hoodie.format.hashes.bloom import FIRST_HASHES, first_hashes
from hoodie.index.key_search import KeyRange
from hoodie.records.change import RECORD_KEY
from hoodie.storage import Store, StoreSpec, open_store

Ints = npt.NDArray[np.int64]

ORDINAL: Final = "#ordinal"
"""The column of sorted keys with the number of the row in the write."""
HASHES: Final = tuple(f"#hash_{number}" for number in range(FIRST_HASHES))
"""The columns of sorted keys with their first hashes: a key is tested against many filters, and hashed once."""
BLOCK_ROWS: Final = 16 * 1024
_SORT_ROWS: Final = 1024 * 1024
_SORT_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeySequence:
    """Sorted staged keys: record batches of `BLOCK_ROWS` rows of the file `path`, from number `first_block` on.

    `files`: the numbers of the files that meet keys; file `files[i]` meets the keys `first[i]` to `stop[i]`, exclusive.
    """

    path: str
    first_block: int
    files: Ints
    first: Ints
    stop: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class RangesFile:
    """Where the key ranges of files are staged: `batches` maps a partition path to its record batch in the file.

    The batch has the numbers of the files, and their least and greatest keys, which may be null. The partition path is
    None for files that keys of any partition meet.
    """

    path: str
    batches: Mapping[str | None, int]


_RANGES_SCHEMA: Final = pa.schema([("file", pa.int64()), ("low", pa.string()), ("high", pa.string())])


def stage_ranges(store: Store, path: str, ranges: Mapping[str | None, Mapping[int, KeyRange]]) -> RangesFile:
    """Stage the key ranges of files, by partition path and number of the file."""
    with new_staged_file(store, path) as sink, pa.ipc.new_file(sink, _RANGES_SCHEMA) as writer:
        for files in ranges.values():
            lows, highs = [found.low for found in files.values()], [found.high for found in files.values()]
            columns = [pa.array(list(files), pa.int64()), pa.array(lows, pa.string()), pa.array(highs, pa.string())]
            writer.write_batch(pa.record_batch(columns, schema=_RANGES_SCHEMA))
    return RangesFile(path=path, batches={path: number for number, path in enumerate(ranges)})


@dataclass(frozen=True, slots=True, kw_only=True)
class SortTask:
    """The runs that one task sorts, one sequence for each partition path; one for all if `is_global`."""

    store: StoreSpec
    columns: tuple[str, ...]
    runs: tuple[StagedRun, ...]
    ranges: RangesFile
    is_global: bool
    output: str


def sort_tasks(
    store: StoreSpec,
    runs: Sequence[StagedRun],
    ranges: RangesFile,
    columns: tuple[str, ...],
    folder: str,
    *,
    is_global: bool,
) -> list[SortTask]:
    """Divide the runs into tasks of about a million rows; runs of one partition path meet if possible."""
    met = [run for run in runs if is_global or run.partition_path in ranges.batches]
    ordered = met if is_global else sorted(met, key=lambda run: run.partition_path)
    return [
        SortTask(
            store=store,
            columns=columns,
            runs=group,
            ranges=ranges,
            is_global=is_global,
            output=f"{folder}/keys-{number}",
        )
        for number, group in enumerate(_groups(ordered))
    ]


def _groups(runs: Sequence[StagedRun]) -> Iterator[tuple[StagedRun, ...]]:
    group: list[StagedRun] = []
    rows = size_bytes = 0
    for run in runs:
        if group and (rows + run.rows > _SORT_ROWS or size_bytes + run.size_bytes > _SORT_BYTES):
            yield tuple(group)
            group, rows, size_bytes = [], 0, 0
        group.append(run)
        rows, size_bytes = rows + run.rows, size_bytes + run.size_bytes
    if group:
        yield tuple(group)


def sort_keys(task: SortTask, context: TaskContext) -> list[KeySequence]:
    """Sort the keys of a few runs, store them, and find the keys in the range of each file. Runs on a worker.

    Memory: twice the columns of the runs, 16 bytes for each row, and the key ranges of the files of one partition.
    """
    store = open_store(task.store)
    path = f"{task.output}-{context.attempt}.arrow"
    by_partition: dict[str | None, list[StagedRun]] = {}
    for run in task.runs:
        by_partition.setdefault(None if task.is_global else run.partition_path, []).append(run)
    found: list[KeySequence] = []
    writer: pa.ipc.RecordBatchFileWriter | None = None
    blocks = 0
    with (
        StageReader(store, task.columns) as reader,
        StageReader(store) as ranges,
        new_staged_file(store, path) as sink,
    ):
        for partition_path, runs in by_partition.items():
            rows = _sorted([reader.read(run) for run in runs], runs)
            writer = writer or pa.ipc.new_file(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))
            batches = rows.to_batches(max_chunksize=BLOCK_ROWS)
            for batch in batches:
                writer.write_batch(batch)
            bounds = ranges.read_batch(task.ranges.path, task.ranges.batches[partition_path])
            files, first, stop = keys_in_ranges(rows[RECORD_KEY].combine_chunks(), bounds)
            found.append(KeySequence(path=path, first_block=blocks, files=files, first=first, stop=stop))
            blocks += len(batches)
        if writer is not None:
            writer.close()
    return found


def keys_in_ranges(keys: pa.StringArray, bounds: pa.RecordBatch) -> tuple[Ints, Ints, Ints]:
    """Return the files that meet sorted keys, and the first key and the end of the keys of each; a range may be null.

    Keys and bounds are ranked together, then each bound is searched in the ranks: no key is compared with every file.
    """
    lows, highs = (pc.fill_null(bounds[name], "") for name in ("low", "high"))
    ranks = np.asarray(pc.rank(pa.concat_arrays([keys, lows, highs]), tiebreaker="dense"))
    own, low, high = np.split(ranks, [len(keys), len(keys) + len(lows)])
    is_known = np.asarray(pc.is_valid(bounds["low"]))
    first = np.where(is_known, np.searchsorted(own, low, "left"), 0)
    stop = np.where(is_known, np.searchsorted(own, high, "right"), len(keys))
    met = np.flatnonzero(first < stop)
    return np.asarray(bounds["file"])[met], first[met], stop[met]


def _sorted(batches: Sequence[pa.RecordBatch], runs: Sequence[StagedRun]) -> pa.Table:
    rows = pa.Table.from_batches(batches)
    ordinals = [np.arange(run.start, run.start + run.rows) for run in runs]
    placed = rows.append_column(ORDINAL, pa.array(np.concatenate(ordinals)))
    found = placed.sort_by(RECORD_KEY).combine_chunks()
    for name, hashes in zip(HASHES, first_hashes(found[RECORD_KEY]), strict=True):
        found = found.append_column(name, pa.array(hashes))
    return found


FILE_COST: Final = 50_000
"""Comparisons that cost as much as reading the footer and the filter of a file."""
_TASK_COST_MIN: Final = 1_000_000
_TASKS_EACH: Final = 4
"""Tasks for each core, so that a task that takes longer does not run alone at the end."""


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Element i: the keys `first[i]` to `stop[i]` (exclusive) of a sequence are compared with a file.

    Files and sequences are numbers in lists of the caller. The elements of one file are neighbours.
    """

    file: Ints
    sequence: Ints
    first: Ints
    stop: Ints

    @classmethod
    def of(cls, sequences: Sequence[KeySequence]) -> Comparisons:
        """Return what the files meet of all sequences."""
        numbers = [np.full(len(found.files), number) for number, found in enumerate(sequences)]
        files, first, stop = (
            np.concatenate([getattr(found, name) for found in sequences] or [np.zeros(0, np.int64)])
            for name in ("files", "first", "stop")
        )
        order = np.argsort(files, kind="stable")
        sequence = np.concatenate(numbers or [np.zeros(0, np.int64)])
        return cls(files[order], sequence[order], first[order], stop[order])

    @property
    def costs(self) -> Ints:
        """What each element costs, in comparisons; the first element of a file includes reading its filter."""
        is_new = np.concatenate([[True], np.diff(self.file) != 0])[: len(self.file)]
        found: Ints = self.stop - self.first + is_new * FILE_COST
        return found

    def part(self, first: int, stop: int) -> Comparisons:
        """Return a few neighbouring elements."""
        here = slice(first, stop)
        return Comparisons(self.file[here], self.sequence[here], self.first[here], self.stop[here])

    def divided(self, most: int) -> Comparisons:
        """Divide each element into elements of at most `most` comparisons."""
        rows = self.stop - self.first
        parts = np.maximum(-(-rows // most), 1)
        which = np.repeat(np.arange(len(rows)), parts)
        number = np.arange(len(which)) - np.repeat(np.cumsum(parts) - parts, parts)
        first = self.first[which] + number * most
        return Comparisons(self.file[which], self.sequence[which], first, np.minimum(first + most, self.stop[which]))


def tasks_of(found: Comparisons, *, bound: int, parallelism: int) -> list[Comparisons]:
    """Divide comparisons into tasks of about the same cost; no task does more than `bound` comparisons."""
    wanted = min(max(int(found.costs.sum()) // (parallelism * _TASKS_EACH), _TASK_COST_MIN), bound)
    pieces = found.divided(wanted)
    before = np.concatenate([[0], np.cumsum(pieces.costs)])
    rows_before = np.concatenate([[0], np.cumsum(pieces.stop - pieces.first)])
    tasks, start = [], 0
    while start < len(pieces.file):
        by_cost = int(np.searchsorted(before, before[start] + wanted, "right")) - 1
        by_rows = int(np.searchsorted(rows_before, rows_before[start] + wanted, "right")) - 1
        stop = max(min(by_cost, by_rows), start + 1)
        tasks.append(pieces.part(start, stop))
        start = stop
    return tasks
