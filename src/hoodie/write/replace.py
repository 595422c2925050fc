"""Replace file groups: the commit with those that replace them, and the commit that removes whole partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hoodie.commit.call import Call, ChoosePartitions
from hoodie.commit.pending import FollowUp
from hoodie.commit.write_instant import WriteInstant
from hoodie.engine import TaskContext
from hoodie.errors import HoodieError
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.files.staging.staged import stage_folder
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.index.record.entries import StagedEntries, WrittenEntries
from hoodie.progress import PhaseTimes
from hoodie.storage import StoreSpec, open_store
from hoodie.view.slices import list_slices
from hoodie.write.attempt import begin
from hoodie.write.files.context import Written
from hoodie.write.result import WRITE_PHASES
from hoodie.write.setup import WriteSetup, set_up

_FOOTER_BYTES = 64 * 1024
_FOOTERS_MAX = 1000
"""More footers are not read for a number in the result: each costs a request."""


def remove_partitions(
    setup: WriteSetup, choose: ChoosePartitions, watch: PhaseTimes, follow_up: FollowUp | None = None
) -> tuple[WriteInstant, int | None] | None:
    """Replace the file groups that the chosen partitions have now; None, without a trace, if none is chosen.

    Returns the committed write, and the number of removed records as `_count`. Raises: CommitConflictError; the attempt
    is undone then.
    """
    with stage_folder(setup.view.store) as folder, begin(setup, WriteOperation.DELETE_PARTITION) as write:
        wanted = choose(write.view)
        if not wanted:
            write.undo()
            return None
        replaced = list_slices(write.view, wanted)
        _, count = commit_groups(setup, write, Written(), replaced, folder, watch, follow_up)
    return write, count


def commit_groups(
    setup: WriteSetup,
    write: WriteInstant,
    written: Written,
    replaced: Sequence[FileSlice] | None,
    folder: str,
    watch: PhaseTimes,
    follow_up: FollowUp | None = None,
) -> tuple[WrittenEntries, int | None]:
    """Commit new file groups, and the file slices that the write replaces; None if it replaces none by design.

    Returns the index entries, and the number of replaced records as `_count`.
    """
    with watch.phase("index"):
        gone = () if replaced is None else write.index.stage_deletes(replaced, folder)
        index = write.index.note_locations((*gone, *written.entries))
        count = 0 if replaced is None else _count(setup, write, replaced, gone)
    with watch.phase("commit"):
        ids: dict[str, list[str]] = {}
        for found in replaced or ():
            ids.setdefault(found.partition_path, []).append(found.file_id)
        extra = setup.call.extra_metadata
        given = None if replaced is None else ids
        write.commit(written.stats, schema=setup.schema.avro, extra_metadata=extra, replaced=given, follow_up=follow_up)
    return index, count


def remove_by_service(call: Call, choose: ChoosePartitions) -> str | None:
    """Remove partitions for a table service; return the instant, or None if none is chosen. No service follows.

    Raises: as `remove_partitions`; the next run of the service tries again.
    """
    removed = remove_partitions(set_up(call, WriteOperation.DELETE_PARTITION, None), choose, PhaseTimes(*WRITE_PHASES))
    return None if removed is None else removed[0].instant_time


def _count(
    setup: WriteSetup, write: WriteInstant, replaced: Sequence[FileSlice], gone: Sequence[StagedEntries]
) -> int | None:
    """Return the number of records in replaced file groups; None if that requires a merge of log files.

    `gone`: the index entries that the write deleted; with a record index, these are the records. Without one, the
    count reads the footer of each replaced base file, up to `_FOOTERS_MAX`. A note of the write explains why files that
    have no other obstacle are not counted: too many, or damaged, which must not keep a user from replacing them.
    """
    if write.index.stages_deletes:
        return sum(entries.rows for entries in gone)
    if any(found.log_files for found in replaced):
        return None
    files = [found.base_file for found in replaced if found.base_file is not None]
    if len(files) > _FOOTERS_MAX:
        write.notes.append(f"the records of {len(files):,} replaced files were not counted: more than {_FOOTERS_MAX:,}")
        return None
    engine = setup.call.engine_for(len(files) * _FOOTER_BYTES)
    try:
        return sum(engine.run(_CountRows(setup.view.store.spec), files))
    except (HoodieError, OSError) as error:
        write.notes.append(f"the records of the replaced files were not counted: {str(error)[:500]}")
        return None


@dataclass(frozen=True, slots=True)
class _CountRows:
    """Callable for `Engine.run`: read the number of rows from a footer."""

    store: StoreSpec

    def __call__(self, file: BaseFile, _context: TaskContext) -> int:
        with open_base_file(open_store(self.store), file) as (parquet, _):
            return int(parquet.metadata.num_rows)
