"""Execute the plan of a clean: delete its files, then complete the instant (docs/format/table.md §9.4).

Every step can be repeated: a file that is missing counts as deleted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from hoodie.commit.data_commit import REBUILT_NOTE
from hoodie.commit.metadata_table import build_metadata_table_anew, drop_lost_partitions, open_metadata_table
from hoodie.commit.pending import Completion, PendingInstant
from hoodie.commit.steps import Step, reached
from hoodie.commit.writable import check_no_exclusive_service
from hoodie.engine import EngineFor, TaskContext
from hoodie.errors import CorruptFileError, MetadataPartitionMissingError, MetadataTableMissingError, UnsupportedError
from hoodie.files.named_paths import named_data_file
from hoodie.files.slices import join_path
from hoodie.format.filenames import PARTITION_METADATA_NAME, name_of
from hoodie.format.instants.service_metadata import CleanerPlan, CleanMetadata, CleanPartitionMetadata
from hoodie.metadata.changes import MetadataChanges
from hoodie.services.cleaning.partitions import LEFT, left_partitions
from hoodie.storage import StoreSpec, open_store
from hoodie.view.commit_cache import CleanFacts
from hoodie.view.listing import list_files
from hoodie.view.slices import data_table
from hoodie.view.table_view import TableView

_FILES_AT_ONCE = 1000
"""Files that one task deletes; object stores delete as many with one request."""

FilesByPartition = Mapping[str, tuple[str, ...]]
"""Partition path -> file names."""


def files_to_delete(view: TableView, plan: CleanerPlan, *, by: str) -> FilesByPartition:
    """Return the files of a plan of this library or of the JVM. `by` names the plan in error messages.

    The plan has absolute paths. Their last components decide, so that a table that was copied or moved with a pending
    clean deletes its own files.

    Raises: CorruptFileError if the plan names a file that is not a data file of its partition; UnsupportedError if it
        names the source file of a bootstrapped table. Nothing was deleted then.
    """
    found: dict[str, list[str]] = {}
    for partition, infos in (plan.file_paths_to_be_deleted_per_partition or {}).items():
        if any(info.is_bootstrap_base_file for info in infos):
            raise UnsupportedError(
                f"{by} deletes source files of a bootstrapped table, which this release does not: complete it with the "
                "engine that planned it"
            )
        found.setdefault(partition, []).extend(_name_in(view, partition, info.file_path, by) for info in infos)
    for partition, names in (plan.files_to_be_deleted_per_partition or {}).items():
        found.setdefault(partition, []).extend(_name_in(view, partition, name, by) for name in names)
    return {partition: tuple(names) for partition, names in found.items()}


def delete_files(pending: PendingInstant, files: FilesByPartition, engine_for: EngineFor) -> None:
    """Delete the files in batches, on threads of this process: a deletion moves no bytes.

    Raises: CommitConflictError if the heartbeat could not be renewed, so that another process may have taken over.
    """
    store = pending.view.store
    paths = [join_path(partition, name) for partition, names in files.items() for name in names]
    batches = [paths[start : start + _FILES_AT_ONCE] for start in range(0, len(paths), _FILES_AT_ONCE)]
    engine = engine_for(0)
    # Not all at once: an abandoned clean must stop.
    for start in range(0, len(batches), max(engine.parallelism, 1)):
        if pending.heartbeat is not None:
            pending.heartbeat.ensure_fresh()
        engine.run(partial(_delete_all, store=store.spec), batches[start : start + max(engine.parallelism, 1)])
    reached(Step.WRITTEN)


@dataclass(slots=True, kw_only=True)
class CleanCompletion(Completion):
    """The steps that complete a clean. `started`: monotonic clock."""

    instant_time: str
    plan: CleanerPlan
    files: FilesByPartition
    started: float
    engine_for: EngineFor
    dropped: tuple[str, ...] = ()
    """Partitions that the clean drops: decided under the lock."""
    notes: list[str] = field(default_factory=list)

    def check(self, now: TableView) -> None:
        """Decide which of the plan's emptied partitions are dropped.

        A partition stays if a write is pending, which may be filling it, or if it has other files by now. Then the next
        clean looks at it again.

        Raises: UnsupportedError if an exclusive service is pending.
        """
        check_no_exclusive_service(now)
        planned = [path for path in self.plan.partitions_to_be_deleted or () if path]
        if not planned or now.timeline.writes().pending().instants:
            return
        listing = list_files(now, planned)
        self.dropped = tuple(path for path in planned if not set(listing[path]) - set(self.files.get(path, ())))

    def update_metadata_table(self, now: TableView) -> None:
        """Remove the dropped partitions, and record the deleted files in the metadata table.

        A metadata table that is missing is built anew from the files that are left; statistics without a file group are
        dropped.
        """
        if self.dropped:
            now.held_lock.ensure_held()
        for path in self.dropped:
            _remove_partition(now, path)
        if not now.config.has_metadata_table:
            return
        changes = MetadataChanges(files_deleted=self.files, partitions_dropped=self.dropped)
        try:
            self._commit(now, changes)
        except MetadataPartitionMissingError:
            now, dropped = drop_lost_partitions(now)
            self._commit(now, changes)
            self.notes.extend(dropped)
        except MetadataTableMissingError:
            build_metadata_table_anew(now)
            self.notes.append(REBUILT_NOTE)

    def _commit(self, now: TableView, changes: MetadataChanges) -> None:
        with now.state.lock:
            open_metadata_table(now).commit(self.instant_time, changes, data_table(now, self.engine_for))

    def content(self, now: TableView) -> bytes:
        plan, dropped, facts = self.plan, set(self.dropped), self.facts()
        done = CleanMetadata(
            start_clean_time=self.instant_time,
            time_taken_in_millis=int((time.monotonic() - self.started) * 1000),
            total_files_deleted=sum(map(len, self.files.values())),
            earliest_commit_to_retain=facts.earliest,
            last_completed_commit_timestamp=facts.last_completed,
            partition_metadata={
                path: CleanPartitionMetadata(
                    partition_path=path,
                    policy=plan.policy,
                    delete_path_patterns=names,
                    success_delete_files=names,
                    is_partition_deleted=path in dropped,
                )
                for path, names in self.files.items()
            },
            extra_metadata=facts.extra,
        )
        return done.to_bytes()

    def facts(self) -> CleanFacts:
        """Return the facts of the clean, after `check`: from them the next clean plans."""
        plan = self.plan
        extra = {key: text for key, text in (plan.extra_metadata or {}).items() if key != LEFT}
        left = {*left_partitions(plan.extra_metadata or {}), *(plan.partitions_to_be_deleted or ())} - {*self.dropped}
        if left:
            extra[LEFT] = json.dumps(sorted(left))
        return CleanFacts.of_plan(self.instant_time, replace(plan, extra_metadata=extra))


def _delete_all(paths: list[str], _context: TaskContext, *, store: StoreSpec) -> None:
    open_store(store).delete_all(paths)


def _name_in(view: TableView, partition: str, named: str, by: str) -> str:
    """Return the name of a data file that a plan names in a partition; plans of version 1 name no folders."""
    name = name_of(named)
    path = join_path(partition, name)
    if named not in (name, path) and not named.endswith(f"/{path}"):
        raise CorruptFileError(f"expected a file of partition {partition!r}, found {named[:300]!r}", path=by)
    named_data_file(view.store, path, by=by)
    return name


def _remove_partition(now: TableView, path: str) -> None:
    """Delete the partition's metadata file, and its folder if nothing else is in it: another partition may be below."""
    for info in now.store.list(path):
        if info.name.startswith(PARTITION_METADATA_NAME):
            now.store.delete(info.path)
    if not now.store.list(path, recursive=True):
        now.store.delete_folder(path)
