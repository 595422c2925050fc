"""Write the lost or damaged completed file of an instant anew, from its plan, its files, and the metadata table.

docs/operations/verify-and-repair.md lists what the new file cannot have.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import pyarrow.compute as pc

from hoodie.commit.metadata_table import commit_metadata
from hoodie.commit.pending import complete_again
from hoodie.errors import UnsupportedError
from hoodie.files.base_file import open_base_file
from hoodie.files.logs.log_scan import logs_of_instant
from hoodie.files.slices import BaseFile, FileSlice, LogFile, join_path
from hoodie.format.filenames import BaseFileName, LogFileName, instant_of_data_file, name_of, parse_data_file
from hoodie.format.instants.accepted_loss import ACCEPTED_LOSS
from hoodie.format.instants.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteOperation, WriteStat
from hoodie.format.instants.planned_replacement import PlannedReplacement
from hoodie.format.instants.replaced_files import FileGroup
from hoodie.format.instants.service_metadata import RequestedReplaceMetadata
from hoodie.storage import Store
from hoodie.timeline import (
    HOODIE_FOLDER,
    Action,
    Instant,
    State,
    instant_time_of_ms,
    is_live,
    ms_of_instant_time,
)
from hoodie.view.listing import list_files
from hoodie.view.lost_instants import LostInstant, lost_writes, recorded_commits
from hoodie.view.slices import list_existing_slices
from hoodie.view.table_view import TableView

SET_ASIDE: Final = f"{HOODIE_FOLDER}/.aux/damaged"
"""Where damaged completed files are kept after they were replaced."""
FILE_ID_HEAD: Final = 8
"""The characters of a file id that an accepted loss keeps: with a bucket index they are the number of the bucket."""
_SERVICES = {
    Action.COMPACTION: WriteOperation.COMPACT,
    Action.LOG_COMPACTION: WriteOperation.LOG_COMPACT,
    Action.CLUSTERING: WriteOperation.CLUSTER,
}


def lost_completions(view: TableView) -> list[LostInstant]:
    """Return the pending writes and services that completed, and whose completed file is lost.

    It takes one listing if a write without a live writer is pending; see `lost_writes`.
    """
    suspects = [found for found in view.timeline.writes().pending() if not is_live(view.store, found.requested_time)]
    return lost_writes(view, suspects, recorded_commits(view)) if suspects else []


def complete_anew(
    view: TableView, lost: LostInstant, damaged: Mapping[str, Instant], others: Collection[str] = ()
) -> str:
    """Write the completed file, and return a note of what could not be known; `view` was loaded under the lock.

    `damaged`: the instants whose completed file does not parse, by requested time. The file is replaced, and keeps its
    completion time. `others`: the requested times of further instants whose completed file is lost or damaged.

    Raises: UnsupportedError if the replaced file groups of a write are unknown.
    """
    instant = lost.instant
    if instant is None:
        raise UnsupportedError(f"{lost.requested_time}: no file of the instant is left; restore them from a copy")
    left_out = {*damaged, *others, lost.requested_time}
    before = replace(view, timeline=view.timeline.filter(lambda found: found.requested_time not in left_out))
    made = _Content(before, instant, lost.recorded_at, frozenset(left_out))
    content = made.metadata().to_bytes(view.config.version)
    if lost.requested_time in damaged:
        _replace(view, damaged[lost.requested_time], content)
        time = f"; the damaged file is kept in {view.store.uri(SET_ASIDE)}"
    else:
        completion_time = _completion_time(view, lost)
        complete_again(view, instant, content, completion_time)
        time = "" if lost.recorded_at else f"; its completion time {completion_time} is a guess"
    return (
        f"{instant.requested_time} has a new completed file: the extra metadata of its writer (also the batch of a "
        f"stream) is lost, and the numbers of inserts, updates and deletes are estimates{time}{made.doubt}"
    )


def _replace(view: TableView, damaged: Instant, content: bytes) -> None:
    """Replace a damaged completed file in one step: without one, the newest write would be taken for dead.

    The damaged file is copied to `SET_ASIDE`: a person may read from it what the new file cannot have.
    """
    paths = [f"{view.layout.instant_folder()}/{name}" for name in view.layout.names(damaged, State.COMPLETED)]
    path = next(path for path in paths if view.store.head(path) is not None)
    view.store.replace(f"{SET_ASIDE}/{name_of(path)}", view.store.read(path))
    view.held_lock.ensure_held()
    view.store.replace(path, content)


@dataclass(frozen=True)
class _Content:
    """The commit metadata of a lost instant; `view` is the table without the instants of `left_out`."""

    view: TableView
    instant: Instant
    recorded_at: str | None
    left_out: frozenset[str]

    def metadata(self) -> CommitMetadata:
        """Return the content of the completed file."""
        operation = self._operation()
        files = self._files()
        # A clean may have deleted slices since: the slices that are left count.
        past = self.view.as_completed_by(self.recorded_at or self.instant.requested_time)
        slices = list_existing_slices(past, sorted(list_files(self.view)))
        # In version 6 also log files of later writes have the instant of the slice that it began in their names.
        earlier = (i for i in slices if not self._names_slices or i.base_instant_time < self.instant.requested_time)
        before = {(found.partition_path, found.file_id): found for found in earlier}
        stats = [stat for path, sizes in sorted(files.items()) for stat in self._stats(path, sizes, before)]
        return commit_metadata(
            stats,
            operation,
            {SCHEMA_KEY: self._schema(), **self._accepted()},
            self._replaced(operation, files, before),
            compacted=operation is WriteOperation.COMPACT,
        )

    def _operation(self) -> WriteOperation:
        if self.instant.action in _SERVICES:
            return _SERVICES[self.instant.action]
        stored = None
        if content := self.view.pending_content(self.instant, State.INFLIGHT):
            stored = CommitMetadata.parse(content, path=str(self.instant)).operation_type
        for known in WriteOperation:
            if known.value == stored:
                return known
        if self.instant.action is Action.REPLACE_COMMIT:
            raise self._unknown("its inflight file does not name the operation, so what it replaced is unknown")
        return WriteOperation.UPSERT

    def _files(self) -> dict[str, dict[str, int]]:
        """Return the files of the instant with their sizes: those of the metadata table, else those in storage."""
        found = dict[str, dict[str, int]]()
        for partition_path, names in self._listing().items():
            logs = self._own_logs(partition_path, names)
            own = {name: size for name, size in names.items() if name in logs or self._is_named(name)}
            found |= {partition_path: own} if own else {}
        return found

    def _listing(self) -> Mapping[str, Mapping[str, int]]:
        if self.recorded_at is not None:
            return list_files(self.view)
        found: dict[str, dict[str, int]] = {}
        for info in self.view.store.list("", recursive=True):
            partition_path, _, name = info.path.rpartition("/")
            if partition_path.partition("/")[0] != HOODIE_FOLDER:
                found.setdefault(partition_path, {})[name] = info.size_bytes
        return found

    def _is_named(self, name: str) -> bool:
        """Return whether a file has the instant in its name, as the instant that wrote it."""
        is_of_slice = self._names_slices and (log := LogFileName.parse(name)) is not None and not log.is_cdc
        return not is_of_slice and instant_of_data_file(name) == self.instant.requested_time

    @property
    def _names_slices(self) -> bool:
        """Whether log files of the instant may be of version 6."""
        config = self.view.config
        is_older = config.may_have_slice_logs and self.instant.action is Action.DELTA_COMMIT
        return config.version.log_name_has_base_instant or is_older

    def _own_logs(self, partition_path: str, names: Iterable[str]) -> set[str]:
        """Return the log files of version 6 that have a block of the instant, among those that no commit recorded."""
        if not self._names_slices or self.instant.action in _SERVICES:
            return set()
        logs = (LogFileName.parse(name) for name in names if join_path(partition_path, name) not in self._recorded)
        unknown = [LogFile(partition_path, log, 0) for log in logs if log is not None and not log.is_cdc]
        return {log.name.name for log in logs_of_instant(self.view.store, unknown, self.instant.requested_time)}

    @cached_property
    def _recorded(self) -> frozenset[str]:
        """The files that the other completed writes of the timeline wrote."""
        commits = map(self.view.commit_metadata, self.view.completed_writes())
        return frozenset(stat.path for commit in commits for stat in commit.write_stats() if stat.path)

    def _stats(
        self, partition_path: str, sizes: Mapping[str, int], before: Mapping[tuple[str, str], FileSlice]
    ) -> Iterator[WriteStat]:
        logs = [found for found in map(LogFileName.parse, sizes) if found is not None]
        changes = {
            found.file_id: {join_path(partition_path, found.name): sizes[found.name]} for found in logs if found.is_cdc
        }
        for name, size_bytes in sizes.items():
            base = BaseFileName.parse(name)
            if base is not None:
                file = BaseFile(partition_path, name, base.file_id, base.instant_time, size_bytes)
                stat = _base_stat(self.view.store, file, before.get((partition_path, base.file_id)))
                yield replace(stat, cdc_stats=changes.get(base.file_id))
        for log in logs:
            if not log.is_cdc:
                old = before.get((partition_path, log.file_id))
                stat = _log_stat(log, partition_path, sizes[log.name], old, self.instant.requested_time)
                yield replace(stat, cdc_stats=changes.get(log.file_id))

    def _schema(self) -> str:
        """Return the schema of the first later commit, which has all columns of the instant; else of an earlier one."""
        for found in self.view.completed_writes():
            if found.requested_time > self.instant.requested_time:
                facts = self.view.commit_facts(found)
                if facts.schema and facts.changes_schema:
                    return facts.schema
        return self.view.schema(as_of=self.instant.requested_time).avro

    def _replaced(
        self, operation: WriteOperation, files: Mapping[str, object], before: Mapping[FileGroup, FileSlice]
    ) -> dict[str, Sequence[str]] | None:
        if self.instant.action.completed_as is not Action.REPLACE_COMMIT:
            return None
        planned = self._planned
        if operation is WriteOperation.CLUSTER:
            plan = RequestedReplaceMetadata.parse(self.view.pending_content(self.instant), path=str(self.instant))
            groups = () if plan.clustering_plan is None else plan.clustering_plan.input_groups
            found = {(piece.partition_path, piece.file_id) for group in groups for piece in group.slices}
        elif planned is not None and planned.groups is not None:
            found = {*planned.groups}
        elif operation is WriteOperation.INSERT_OVERWRITE:
            found = self._overwritten({*files, *(() if planned is None else planned.partitions)}, before)
        elif operation is WriteOperation.INSERT_OVERWRITE_TABLE:
            found = self._overwritten(None, before)
        else:
            raise self._unknown(f"the file groups that the {operation.value.lower()} replaced are unknown")
        return {
            path: sorted(file_id for other, file_id in found if other == path)
            for path in sorted({path for path, _ in found} | {*files})
        }

    @cached_property
    def _planned(self) -> PlannedReplacement | None:
        """What the write replaces by its plan; None if another engine or an earlier release began it."""
        return PlannedReplacement.parse(self.view.pending_content(self.instant), path=str(self.instant))

    def _accepted(self) -> Mapping[str, str]:
        """Return the entry of an accepted loss: the files that it gave up."""
        lost = () if self._planned is None else self._planned.lost
        return {ACCEPTED_LOSS: json.dumps(lost)} if lost else {}

    @property
    def doubt(self) -> str:
        """Return what a note adds about the replaced file groups of an overwrite without `_planned`."""
        if self._operation() is not WriteOperation.INSERT_OVERWRITE or self._planned is not None:
            return ""
        return "; partitions that it replaced and has no rows of, if any, are unknown and have their earlier rows"

    def _overwritten(self, partitions: Set[str] | None, later: Mapping[FileGroup, FileSlice]) -> set[FileGroup]:
        """Return the file groups of the partitions (None: of all) that the table had when the overwrite began.

        `later` are those that it had at the end of the overwrite. A writer of this library replaces those that it had
        at its requested time. Another writer may have seen file groups that were added meanwhile.

        Raises: UnsupportedError if file groups of another write may or may not be among them.
        """
        began = self.instant.requested_time
        if unknown := sorted(time for time in self.left_out if time < began):
            raise self._unknown(f"the completed file of {unknown[0]} is lost too, and it may have replaced its files")
        listed = sorted(list_files(self.view) if partitions is None else partitions & list_files(self.view).keys())
        slices = list_existing_slices(self.view.as_completed_by(began), listed)
        found = {(one.partition_path, one.file_id): one for one in slices if one.base_instant_time < began}
        meanwhile = {group for group, one in found.items() if not self._was_there(one)}
        if self._planned is None:
            meanwhile |= {group for group in later.keys() - found.keys() if group[0] in listed}
            if partitions is not None and (not partitions or self._keeps_groups(partitions, found)):
                raise self._unknown("it may have replaced some of the file groups of its partitions only")
        if meanwhile:
            path, file_id = min(meanwhile)
            raise self._unknown(
                f"another write may have added the file group {file_id} of {path or 'the table'} while it ran, and "
                "whether it was replaced is unknown"
            )
        return {*found}

    def _was_there(self, found: FileSlice) -> bool:
        """Return whether a file slice had completed when the instant began.

        In version 6 the view goes by requested times. There the change time of the completed file decides.
        """
        if self.view.config.version.has_completion_time_in_name:
            return True
        time = found.base_instant_time
        active = self.view.timeline.get(time)
        instants = self.view.archive().find([time]) if active is None else [active]
        return any((known.completion_time or "9") < self.instant.requested_time for known in instants)

    def _keeps_groups(self, partitions: Set[str], found: Mapping[FileGroup, FileSlice]) -> bool:
        """Return whether a new file id and the file id of an older group of its partition begin alike.

        An accepted loss of an earlier release wrote such file ids, and replaced only the file groups of lost files.
        With a bucket index, the file ids of every overwrite are such.
        """
        heads = {(path, file_id[:FILE_ID_HEAD]) for path, file_id in found}
        parsed = ((path, parse_data_file(name)) for path, names in self._files().items() for name in names)
        return any((path, name.file_id[:FILE_ID_HEAD]) in heads for path, name in parsed if name and path in partitions)

    def _unknown(self, reason: str) -> UnsupportedError:
        time, begun = self.instant.requested_time, f"{self.instant}: {reason}. Restore its completed file from a copy"
        if any(known.requested_time > time for known in self.view.timeline.writes()):
            return UnsupportedError(begun)
        return UnsupportedError(
            f'{begun}; or delete its completed file, if it is there and damaged, call t.rollback("{time}"), and write '
            "its rows again"
        )


def _base_stat(store: Store, file: BaseFile, before: FileSlice | None) -> WriteStat:
    with open_base_file(store, file) as (parquet, _):
        rows = parquet.metadata.num_rows
        times = parquet.read(columns=["_hoodie_commit_time"]).column(0)
    written = pc.sum(pc.equal(times, file.instant_time)).as_py() or 0
    old = None if before is None else before.base_file
    stat = WriteStat(
        file_id=file.file_id,
        path=file.path,
        num_writes=rows,
        num_inserts=rows,
        total_write_bytes=file.size_bytes,
        file_size_bytes=file.size_bytes,
        partition_path=file.partition_path,
    )
    if before is None:
        return stat
    return replace(
        stat,
        prev_commit=before.base_instant_time,
        prev_base_file=None if old is None else old.name,
        num_inserts=0,
        num_update_writes=written,
    )


def _log_stat(log: LogFileName, partition_path: str, size_bytes: int, before: FileSlice | None, time: str) -> WriteStat:
    path = join_path(partition_path, log.name)
    if before is None:
        return WriteStat.of_log(path, partition_path, size_bytes, prev_commit=time)
    stat = WriteStat.of_log(path, partition_path, size_bytes, prev_commit=before.base_instant_time)
    # In version 6 the names of later writes' log files do not differ from those of earlier ones but by their number.
    earlier = [found.name for found in before.log_files if found.name.sort_key < log.sort_key]
    names = (*(name.name for name in earlier), log.name)
    return replace(stat, base_file="" if before.base_file is None else before.base_file.name, log_files=names)


def _completion_time(view: TableView, lost: LostInstant) -> str:
    """Return the first free time after the delta commit of the metadata table: the same lock held both."""
    zone = view.layout.zone
    taken = {time for found in view.timeline for time in (found.requested_time, found.completion_time)}
    found = lost.recorded_at or lost.requested_time
    while True:
        found = instant_time_of_ms(ms_of_instant_time(found, zone) + 1, zone)
        if found not in taken:
            return found
