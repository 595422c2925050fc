"""Replace file groups: their ids, the number of their records, and the commit that removes whole partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hoodie.commit.call import Call, ChoosePartitions
from hoodie.commit.write_instant import WriteInstant
from hoodie.engine import TaskContext
from hoodie.errors import HoodieError
from hoodie.files.base_file import open_base_file
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.files.staging.staged import stage_folder
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.index.record import StagedEntries
from hoodie.progress import PhaseTimes
from hoodie.storage import StoreSpec, open_store
from hoodie.timeline import Action
from hoodie.view.slices import list_slices
from hoodie.write.result import WRITE_PHASES
from hoodie.write.setup import WriteSetup

Removed = tuple[WriteInstant, int | None]
"""The committed write, and the number of records that it removed; None if they were not counted."""


_FOOTER_BYTES = 64 * 1024
_FOOTERS_MAX = 1000
"""More footers are not read for a number in the result: each costs a request."""


def remove_partitions(setup: WriteSetup, choose: ChoosePartitions, watch: PhaseTimes) -> Removed | None:
    """Replace the file groups that the chosen partitions have now; None, without a trace, if none is chosen.

    Raises: CommitConflictError; the attempt is undone then.
    """
    plan = RequestedReplaceMetadata().to_bytes()
    operation = WriteOperation.DELETE_PARTITION
    store = setup.view.store
    with stage_folder(store) as folder, setup.begin(Action.REPLACE_COMMIT, operation, plan) as write:
        wanted = choose(write.view)
        if not wanted:
            write.undo()
            return None
        replaced = list_slices(write.view, wanted)
        with watch.phase("index"):
            gone = write.index.stage_deletes(replaced, folder)
            write.index.note_locations(gone)
            count = count_replaced(setup, write, replaced, gone)
        with watch.phase("commit"):
            write.commit(
                (),
                schema=setup.schema.avro,
                extra_metadata=setup.call.extra_metadata,
                replaced=file_ids_of(replaced),
            )
    return write, count


def remove_by_service(call: Call, choose: ChoosePartitions) -> str | None:
    """Remove partitions for a table service; return the instant, or None if none is chosen. No service follows.

    Raises: as `remove_partitions`; the next run of the service tries again.
    """
    removed = remove_partitions(WriteSetup.of(call, None), choose, PhaseTimes(*WRITE_PHASES))
    return None if removed is None else removed[0].instant_time


def file_ids_of(slices: Iterable[FileSlice]) -> dict[str, list[str]]:
    """Return the ids of the file groups by partition path."""
    found: dict[str, list[str]] = {}
    for slice_ in slices:
        found.setdefault(slice_.partition_path, []).append(slice_.file_id)
    return found


def count_replaced(
    setup: WriteSetup, write: WriteInstant, replaced: Sequence[FileSlice], gone: Sequence[StagedEntries]
) -> int | None:
    """Return the number of records in replaced file groups; None if that requires a merge of log files.

    `gone`: the index entries that the write deleted; with a record index, these are the records. Without one, the
    count reads the footer of each replaced base file, up to `_FOOTERS_MAX`. A note of the write says why files that
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
