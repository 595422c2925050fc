"""Log compaction: fold many log blocks of a file slice into new blocks of one log file; base files do not change.

Implements docs/format/table.md §4.6 and §9.2. Log compaction is for slices with many small log files: it makes reads
cheaper at a fraction of the cost of a compaction. The new blocks name the instants whose blocks they replace; readers
skip the replaced blocks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.commit.pending import request
from hoodie.commit.writable import check_no_exclusive_service
from hoodie.config import compaction
from hoodie.engine import TaskContext
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.files.column_ranges import rows_ranges
from hoodie.files.compaction_operation import operation_of
from hoodie.files.logs.log_file import LogFileWriter, delete_blocks
from hoodie.files.logs.log_records import VersionReader
from hoodie.files.logs.log_scan import FoundBlock, ScanRule, scan_blocks
from hoodie.files.markers import write_marker
from hoodie.files.slice_read import SliceRead
from hoodie.files.slices import FileSlice, LogFile, join_path
from hoodie.format.filenames import IoType, LogFileName, write_token
from hoodie.format.instants.commit_metadata import WriteOperation, WriteStat
from hoodie.format.instants.service_metadata import CompactionPlan, CompactionStrategy
from hoodie.format.log.data_block import DataFormat, data_block
from hoodie.format.log.log_block import HeaderKey, LogBlock
from hoodie.records.change import KIND
from hoodie.records.merging.fold import FoldRule, LogFold, VersionKind
from hoodie.services.compaction.plan import check_compactable
from hoodie.storage import Store, StoreSpec, open_store
from hoodie.timeline import Action
from hoodie.view.pending_plans import planned_groups
from hoodie.view.slices import list_slices
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView

_LOG_BYTES_MAX = 64 * 1024 * 1024
"""Log bytes of a slice above which only a compaction is useful: folding takes memory and saves readers little."""
_EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
_VERSION = 1
_APPENDS = Action.DELTA_COMMIT


def schedule_log_compaction(state: TableState, *, blocks_min: int | None = None) -> str | None:
    """Plan a log compaction; return its instant, or None if no file slice needs it.

    The plan contains the slices with at least `blocks_min` log blocks (default:
    `hoodie.log.compaction.blocks.threshold`). Slices with partial blocks, which have only some of the columns, are
    skipped: JVM engines cannot log-compact them. Slices with more than 64 MiB of log files are skipped too. Log files
    behind a pending write that is older than they are stay (see `LogOrder`).
    `compact(…, instant)` executes the plan.

    Raises: as `schedule_compaction`; InvalidConfigError if `blocks_min` is not positive.
    """
    if blocks_min is not None and blocks_min < 1:
        raise InvalidConfigError(f"blocks_min is {blocks_min}: expected at least 1 log block")
    view = TableView.load(state)
    check_compactable(view)
    if not view.config.version.has_log_compaction:
        raise UnsupportedError(
            f"{view.store.uri('')} has table version {view.config.version.value}: log compactions need version 8 or "
            "later; compact the table with t.compact()"
        )
    least = blocks_min if blocks_min is not None else compaction.LOG_COMPACTION_BLOCKS.get(view.config.raw)
    rule, order = view.slice_read().rule, LogOrder(view)
    foldable = (order.foldable(found) for found in list_slices(view))
    chosen = [found for found in foldable if _gains(view.store, found, rule, least)]
    if not chosen:
        return None
    with TableView.locked(state, finishes_update=True) as view:
        check_no_exclusive_service(view)
        busy = planned_groups(view)
        newest = {found.group: found for found in list_slices(view)}
        order = LogOrder(view)
        operations = []
        for found in chosen:
            now = newest.get(found.group)
            # Later log files stay beside the new block. A new base file would make the operation invalid.
            if (
                now is not None
                and now.base_file == found.base_file
                and found.group not in busy
                and order.keeps(found.log_files, now.log_files)
            ):
                operations.append(operation_of(found.partition_path, found))
        if not operations:
            return None
        plan = CompactionPlan(
            operations=tuple(operations),
            strategy=CompactionStrategy(compactor_class_name=_EXECUTOR, strategy_params={}),
            preserve_hoodie_metadata=True,
        )
        return request(view, Action.LOG_COMPACTION, plan.to_bytes()).requested_time


class LogOrder:
    """Which log files one block can replace without a change of the order of the writes.

    Readers apply the logs of a slice in the order of the requested times of their writes, and the new block in the
    place of the newest block that it replaces (docs/format/table.md §4.6). Non-blocking writes of a slice may complete
    in another order: a write that was requested between the planned ones and completes after the plan would come
    before the new block, which has rows older than its own, and they would win. Such a write is pending at the plan,
    or completed since the log files were listed. A write that begins after the plan has a later time than every planned
    one, and a write that is older than all of them comes before them in any case. So a pending plan for which this was
    true stays right whatever completes before it is executed. Plans of others are checked when they are executed.

    A log file of an earlier log compaction has a later name than its place. The log files that it replaces are in the
    slice too, so that the times of the names contain all places.
    """

    def __init__(self, view: TableView) -> None:
        self._view = view
        self._pending = {found.requested_time for found in view.timeline.pending() if found.action is _APPENDS}

    def keeps(self, planned: Iterable[LogFile], there: Iterable[LogFile]) -> bool:
        """Return whether no write is between the planned log files, pending or among those that are there."""
        times = _times(planned)
        between = (_times(there) | self._pending) - times
        return not times or not any(min(times) < other < max(times) for other in between)

    def foldable(self, found: FileSlice) -> FileSlice:
        """Return the slice with its log files before the first pending write among them; without any if that is unsafe.

        Behind a cut, a block of an earlier log compaction would lose the log files that it replaces.
        """
        times = _times(found.log_files)
        later = [time for time in self._pending if times and min(times) < time < max(times)]
        if not later:
            return found
        kept = tuple(log for log in found.log_files if log.name.instant_time < min(later))
        behind = {log.name.instant_time for log in found.log_files} - _times(kept)
        return replace(found, log_files=() if any(map(self._is_folded, behind)) else kept)

    def _is_folded(self, requested_time: str) -> bool:
        instant = self._view.timeline.get(requested_time, _APPENDS)
        if instant is None or not instant.is_completed:
            return True  # archived: it is not known what it was
        return self._view.commit_facts(instant).operation_type == WriteOperation.LOG_COMPACT


def _times(logs: Iterable[LogFile]) -> set[str]:
    return {log.name.instant_time for log in logs}


def _gains(store: Store, found: FileSlice, rule: ScanRule, blocks_min: int) -> bool:
    logs = found.log_files
    if len(logs) < 2 or sum(log.size_bytes for log in logs) > _LOG_BYTES_MAX:
        return False
    blocks = scan_blocks(store, logs, rule)
    is_partial = any(block.is_partial for block in blocks)
    return len(blocks) >= blocks_min and len({block.instant_time for block in blocks}) > 1 and not is_partial


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactLogs:
    """Callable for `Engine.run`: fold the log files of one file slice into one log file. Picklable as `CompactSlice`.

    `avro_schema` has the table's columns and the meta fields. Memory: one version of each logged record.
    """

    store: StoreSpec
    read: SliceRead
    avro_schema: str
    data_format: DataFormat
    instant_time: str
    number: int
    range_columns: tuple[str, ...] | None = None
    """Columns whose ranges are noted for column statistics; None if the table has none."""

    def __call__(self, task: FileSlice, attempt: TaskContext) -> WriteStat | None:
        """Write the log file and return its write statistic. Rows keep their commit time and sequence number.

        Two kinds of slices are skipped, and None is returned:
        - a slice with partial blocks, which have only some of the columns: a plan of the JVM may name such a slice;
        - a slice in which a row follows a delete, and the merge function must not be called with the stored row: one
          block cannot represent that.
        """
        started = time.monotonic()
        store = open_store(self.store)
        blocks = scan_blocks(store, task.log_files, self.read.rule)
        if any(block.is_partial for block in blocks):
            return None
        entries, count = self._folded(store, blocks)
        if pc.any(pc.equal(entries[KIND], int(VersionKind.ROW_ALONE))).as_py():
            return None
        token = write_token(attempt.partition, self.number, attempt.attempt)
        name = LogFileName(task.file_id, self.instant_time, _VERSION, token).name
        path = join_path(task.partition_path, name)
        write_marker(store, self.instant_time, path, IoType.CREATE)
        rows, deletes = _split(entries)
        with LogFileWriter(store, path) as writer:
            for block in self._blocks(task, rows, deletes, blocks):
                writer.write(block)
        stat = WriteStat.of_log(
            path,
            task.partition_path,
            writer.size_bytes,
            prev_commit=task.base_instant_time,
            upsert_time_ms=int((time.monotonic() - started) * 1000),
        )
        return replace(
            stat,
            column_ranges=None if self.range_columns is None else rows_ranges(rows, self.range_columns),
            num_writes=rows.num_rows,
            num_update_writes=rows.num_rows,
            num_deletes=deletes.num_rows,
            total_log_records=count,
            total_updated_records_compacted=entries.num_rows,
            total_log_blocks=len(blocks),
            total_log_files_compacted=len(task.log_files),
            total_log_size_compacted=sum(block.place.content_bytes for block in blocks),
        )

    def _folded(self, store: Store, blocks: list[FoundBlock]) -> tuple[pa.Table, int]:
        """Return one version of each logged key, and the number of versions before the fold."""
        reader = VersionReader(store, self.read, is_partial=False)
        fold = LogFold(reader.schema, FoldRule(self.read.merger))
        count = 0
        for block in blocks:
            entries = reader.entries(block)
            count += entries.num_rows
            fold.add(entries)
        return fold.result(), count

    def _blocks(self, task: FileSlice, rows: pa.Table, deletes: pa.Table, replaced: list[FoundBlock]) -> list[LogBlock]:
        """Return a data block and delete blocks; each block names the instants whose blocks it replaces.

        A block without content is omitted. If there are neither rows nor deletes, an empty data block is returned.
        """
        times = ",".join(dict.fromkeys(block.instant_time for block in replaced))
        headers = {HeaderKey.COMPACTED_BLOCK_TIMES: times}
        found: list[LogBlock] = []
        if rows.num_rows or not deletes.num_rows:
            found.append(
                data_block(
                    rows.select(self.read.schema.names),
                    instant_time=self.instant_time,
                    avro_schema=self.avro_schema,
                    data_format=self.data_format,
                    extra=headers,
                )
            )
        if deletes.num_rows:
            found += delete_blocks(
                deletes,
                np.asarray(deletes[KIND].combine_chunks()) != VersionKind.DELETE,
                partition_path=task.partition_path,
                ordering_columns=self.read.merger.ordering_columns,
                headers={HeaderKey.INSTANT_TIME: self.instant_time, HeaderKey.SCHEMA: self.avro_schema, **headers},
            )
        return found


def _split(entries: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Split the folded versions into rows and deletes; a row that is marked as a delete is returned as a delete.

    The mark may be in a field that is not a column of the table (`_hoodie_operation`); then it is not written again.
    """
    is_row = np.asarray(entries[KIND].combine_chunks()) == VersionKind.ROW
    return entries.filter(pa.array(is_row)), entries.filter(pa.array(~is_row))
