"""The commit that removes whole partitions: a replace commit without files. Users and time to live share it."""

from __future__ import annotations

from hoodie.commit.call import Call, ChoosePartitions
from hoodie.files.staging.staged import stage_folder
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.progress import PhaseTimes
from hoodie.timeline import Action
from hoodie.view.slices import list_slices
from hoodie.write.replaced import count_replaced, file_ids_of
from hoodie.write.result import WRITE_PHASES
from hoodie.write.setup import WriteSetup
from hoodie.write.write_instant import WriteInstant

Removed = tuple[WriteInstant, int | None]
"""The committed write, and the number of records that it removed; None if they were not counted."""


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
