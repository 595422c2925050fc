"""Delete whole partitions: replace all their file groups in one replace commit."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from hoodie.errors import InvalidConfigError
from hoodie.files.staging.staged import stage_folder
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.progress import PhaseTimes
from hoodie.timeline import Action
from hoodie.write.files.written import Written
from hoodie.write.outcome import result_of, services_after
from hoodie.write.replaced import count_replaced, file_ids_of
from hoodie.write.result import WRITE_PHASES, WriteResult
from hoodie.write.setup import WriteCall, WriteSetup
from hoodie.write.write_instant import WriteInstant


def delete_partitions(call: WriteCall, partition_paths: Sequence[str]) -> WriteResult:
    """Remove all file groups of the partitions from the table; their files exist until the cleaner deletes them.

    Raises: InvalidConfigError if `partition_paths` is empty or has an unknown path.
    """
    setup = WriteSetup.of(call, None)
    wanted = set(partition_paths)
    if isinstance(partition_paths, str) or not wanted:
        raise InvalidConfigError(f"delete_partitions: expected a list of partition paths, got {partition_paths!r}")
    known = set(setup.view.listing())
    if wanted - known:
        raise InvalidConfigError(
            f"no partitions {sorted(wanted - known)} in {setup.view.store.uri('')}; it has {sorted(known)[:10]}"
        )
    watch = PhaseTimes(*WRITE_PHASES)
    retries = setup.retries()
    write, count = retries.run(lambda _number: _attempt(setup, wanted, watch))
    after = services_after(setup, watch)
    after = replace(after, notes=(*retries.notes, *after.notes))
    return result_of(setup, write, Written(), watch, replaced=count, after=after)


def _attempt(setup: WriteSetup, wanted: Set[str], watch: PhaseTimes) -> tuple[WriteInstant, int | None]:
    """Replace the file groups that the partitions have now; returns the committed write, and the records removed.

    Raises: CommitConflictError; the attempt is undone then.
    """
    plan = RequestedReplaceMetadata().to_bytes()
    operation = WriteOperation.DELETE_PARTITION
    store = setup.view.store
    with stage_folder(store) as folder, setup.begin(Action.REPLACE_COMMIT, operation, plan) as write:
        replaced = write.view.slices(wanted)
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
