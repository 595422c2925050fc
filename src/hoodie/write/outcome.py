"""Make the result of a committed write, and run the table services that are due after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hoodie.commit.call import Call
from hoodie.commit.write_instant import WriteInstant
from hoodie.config.compaction import COMPACT_DELTA_COMMITS, COMPACT_INLINE
from hoodie.config.writes import SMALL_FILE_BYTES
from hoodie.display import command_text, size_text
from hoodie.files.slices import FileSlice
from hoodie.format.instants.commit_metadata import WriteStat
from hoodie.format.schema.evolution import schema_changes
from hoodie.index import LookUpCost
from hoodie.index.record.entries import WrittenEntries
from hoodie.progress import PhaseTimes
from hoodie.results import ServiceResult
from hoodie.services.compaction.compaction import compact_inline
from hoodie.services.registry import clean_with_write, run_after_write
from hoodie.view.slices import list_slices
from hoodie.view.table_view import TableView
from hoodie.write.files.context import RowCounts, Written
from hoodie.write.replace import remove_by_service
from hoodie.write.result import WriteResult
from hoodie.write.setup import WriteSetup

_BACKLOG_FACTOR = 2
"""A note is added if the backlog is at least this factor times the delta commits after which a compaction is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterWrite:
    """What followed a write: the compaction and its backlog (merge-on-read tables), and the other table services."""

    backlog: float = 0.0
    compaction: ServiceResult | None = None
    services: tuple[ServiceResult, ...] = ()
    notes: tuple[str, ...] = ()


class FollowUps:
    """The services that follow one write: a small clean under the lock of its commit, the others after it.

    No method raises an error, as the write is committed: every error becomes a note.
    """

    def __init__(self, setup: WriteSetup, watch: PhaseTimes) -> None:
        """Store the write; each service that runs is a phase of `watch`."""
        self._setup = setup
        self._watch = watch
        own = setup.call
        self._call = Call(
            state=own.state, engine=own.engine, properties=own.properties, remove_partitions=remove_by_service
        )
        self._cleaned: list[ServiceResult] | None = None

    def under_lock(self, view: TableView) -> TableView:
        """Clean, if a small clean is due: see `PendingInstant.finish`."""
        view, self._cleaned = clean_with_write(self._call, self._watch, view)
        return view

    def run(
        self, view: TableView | None, *, slices: Sequence[FileSlice] = (), stats: Sequence[WriteStat] = ()
    ) -> AfterWrite:
        """Compact the table if that is due, then run the other services that are due.

        `view` is the table after the commit (`WriteInstant.completed_view`). `slices` are the file slices of the
        touched partitions before the write; `stats` are the files of the write.
        """
        after = self._compact(view, slices, stats)
        view = view if after.compaction is None else None
        others = run_after_write(self._call, self._watch, view, is_cleaned=self._cleaned is not None)
        return replace(after, services=(*(self._cleaned or ()), *others))

    def _compact(self, view: TableView | None, slices: Sequence[FileSlice], stats: Sequence[WriteStat]) -> AfterWrite:
        """Execute or schedule a compaction if one is due, and count the log files that wait for compaction.

        The backlog is counted before the compaction, unless the compaction was executed.
        """
        setup, state = self._setup, self._call.state
        if not setup.is_merge_on_read:
            return AfterWrite()
        partitions = {stat.partition_path or "" for stat in stats}
        logs = sum(len(found.log_files) for found in slices if found.partition_path in partitions)
        logs += sum(stat.is_log_append for stat in stats)
        groups = sum(found.partition_path in partitions for found in slices) + sum(s.is_new_file_group for s in stats)
        with self._watch.phase("compact"):
            compaction = compact_inline(self._call, view=view)
        notes: tuple[str, ...] = ()
        if compaction is not None and COMPACT_INLINE.get(setup.options):
            try:
                now = list_slices(TableView.load(state), partitions)
                logs, groups = sum(len(found.log_files) for found in now), len(now)
            except Exception as error:
                notes = (
                    "the table could not be loaded after this write, which is committed; the backlog is from before "
                    f"its compaction: {error}",
                )
        backlog = logs / max(groups, 1)
        if backlog >= _BACKLOG_FACTOR * COMPACT_DELTA_COMMITS.get(setup.options):
            command = command_text("hoodie services run TABLE", state.store.uri(""))
            notes += (
                f"{backlog:.1f} log files per file slice wait for compaction, and every read merges them: call "
                f"t.compact() after t.schedule_compaction(), run `{command}`, or set {COMPACT_INLINE.key}=true",
            )
        return AfterWrite(backlog=backlog, compaction=compaction, notes=notes)


_SMALL_FILES_MIN = 20
_SMALL_SHARE = 0.25
"""A file is small if it has less than this share of the limit of small files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagging:
    """Counts of moved, ignored and duplicate rows of a write.

    `moves` rows were deleted in one partition and inserted in another; they count as updates. `counts`: rows that were
    merged or dropped before the files were written.
    """

    moves: int = 0
    look_up: LookUpCost | None = None
    counts: RowCounts = field(default_factory=RowCounts)
    notes: tuple[str, ...] = ()


def result_of(
    setup: WriteSetup,
    write: WriteInstant,
    written: Written,
    watch: PhaseTimes,
    *,
    tagging: Tagging | None = None,
    replaced: int | None = 0,
    index: WrittenEntries | None = None,
    after: AfterWrite | None = None,
) -> WriteResult:
    """Return the result of a write; `replaced`: number of records in replaced file groups, None if not counted."""
    after, tagging, stats = after or AfterWrite(), tagging or Tagging(), written.stats
    counts = written.counts + tagging.counts
    notes = [*schema_changes(setup.view.schema().arrow, setup.schema.arrow)]
    notes += [done.note for done in write.rolled_back]
    if index is not None and index.duplicates:
        notes.append(
            f"{index.duplicates:,} rows were inserted with a key that another row of the batch has: the record index "
            "stores one row of each key"
        )
    if counts.hidden:
        notes.append(
            f"{counts.hidden:,} rows have the key of a record that a log file deletes, and a lower ordering value than "
            "the deleted row in the base file: reads show the deleted row again, and not the new one, as in JVM Hudi. "
            "Compact the table after a delete and before such an upsert (t.schedule_compaction(), t.compact()), or "
            "use a record index. To repair these records, delete them, compact, and upsert them again"
        )
    deleted = sum(stat.num_deletes for stat in stats) - tagging.moves
    return WriteResult(
        instant=write.instant_time,
        action=write.action.value,
        operation=write.operation.value.lower(),
        inserted=sum(stat.num_inserts for stat in stats) - tagging.moves,
        updated=sum(stat.num_update_writes for stat in stats) + tagging.moves + counts.equal,
        deleted=None if replaced is None else deleted + replaced,
        ignored=None if counts.undecided else counts.ignored,
        duplicates=counts.duplicates,
        files_created=sum(stat.is_new_file_group for stat in stats),
        files_updated=sum(not (stat.is_new_file_group or stat.is_log_append) for stat in stats),
        log_files_appended=sum(stat.is_log_append for stat in stats),
        bytes_written=sum(stat.total_write_bytes for stat in stats),
        seconds=watch.seconds(),
        backlog=after.backlog,
        look_up=tagging.look_up,
        compaction=after.compaction,
        services=after.services,
        notes=(
            *notes,
            *write.notes,
            *tagging.notes,
            *_unordered(setup, counts),
            *_small_files(setup, stats),
            *after.notes,
        ),
    )


def _unordered(setup: WriteSetup, counts: RowCounts) -> tuple[str, ...]:
    """Return a note on rows without an ordering value: every stored row with a value wins against them."""
    if not counts.unordered:
        return ()
    names = ", ".join(setup.merger.logged_ordering)
    outcome = "were logged, and lose" if counts.undecided else "lost"
    return (f"{counts.unordered:,} rows without a value of {names} {outcome} against stored rows that have one",)


def _small_files(setup: WriteSetup, stats: Sequence[WriteStat]) -> tuple[str, ...]:
    """Return a note if a write made many files that are much smaller than a file needs to be, several in a partition.

    Every later read and write opens these files. An index that decides where rows are makes them on purpose.
    """
    new = [stat for stat in stats if stat.is_new_file_group and not stat.is_log_append]
    if setup.places_rows or len(new) < _SMALL_FILES_MIN:
        return ()
    partitions = Counter(stat.partition_path for stat in new)
    limit = SMALL_FILE_BYTES.get(setup.options) * _SMALL_SHARE
    small = [stat for stat in new if stat.file_size_bytes < limit and partitions[stat.partition_path] > 1]
    if len(small) < _SMALL_FILES_MIN or 2 * len(small) <= len(new):
        return ()
    largest = size_text(max(stat.file_size_bytes for stat in small))
    return (
        f"{len(small):,} of {len(new):,} new files are small (at most {largest}), in {len(partitions):,} partitions: "
        "every later read opens them. bulk_insert and overwrites with distribution='auto' or 'partition', without a "
        "sort, make fewer; t.cluster() joins those of this write",
    )
