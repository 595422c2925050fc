"""Recognise writes that completed although their completed file is lost: what was done afterwards proves it.

The files that remain look like the files of a dead write, which the next writer rolls back. docs/format/table.md §2.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoodie.display import command_text
from hoodie.errors import CorruptFileError
from hoodie.files.markers import marker_folder
from hoodie.format.filenames import instant_of_data_file
from hoodie.format.instants.commit_metadata import REARRANGING, CommitMetadata, WriteOperation
from hoodie.format.metadata_table.metadata_record import FileListRecord, RecordType
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.folder import MetadataFolder
from hoodie.metadata.kinds.registry import KINDS
from hoodie.metadata.paths import METADATA_FOLDER
from hoodie.metadata.slice_content import RowBlock
from hoodie.metadata.slices import read_log
from hoodie.timeline import Action, Instant, State, read_instant
from hoodie.timeline.heartbeat import heartbeat_path
from hoodie.view.listing import list_files
from hoodie.view.pending_plans import input_files, stored_rollback_plan
from hoodie.view.table_view import TableView

REPLACING = frozenset({Action.REPLACE_COMMIT, Action.CLUSTERING})
"""Actions after which files of other groups are gone too."""


@dataclass(frozen=True, slots=True)
class LostInstant:
    """A write that completed and whose completed file is lost; `proof` is the sentence that shows it.

    `instant` is what is left of it on the timeline; None if no file is left. `recorded_at` is the completion time of
    its delta commit in the metadata table (in version 6 its requested time); None if there is none.
    """

    requested_time: str
    instant: Instant | None
    recorded_at: str | None
    proof: str

    def error(self, view: TableView) -> CorruptFileError:
        """Return the error of a read that needs the instant, and of a write."""
        folder = view.store.uri(view.layout.instant_folder())
        if self.instant is None:
            text = f"all files of the instant {self.requested_time} are lost, and this call needs its rows"
            advice = f"restore {folder}/{self.requested_time}* from a copy"
        else:
            text = f"the completed file of {self.instant} is lost, but the instant completed"
            command = command_text("hoodie repair TABLE --execute", view.store.uri(""))
            advice = (
                f"`{command}` (t.repair(dry_run=False)) writes it anew; or "
                f"restore {folder}/{self.requested_time}_*.{self.instant.action.completed_as} from a copy"
            )
        return CorruptFileError(f"{text}: {self.proof}. Nothing was changed; {advice}", path=folder)


def recorded_commits(view: TableView) -> dict[str, str]:
    """Return the completed delta commits of the metadata table: requested time -> order time.

    One listing of the metadata table's timeline; none if the table has no metadata table that this release reads.
    """
    if not view.config.has_metadata_table:
        return {}
    folder = MetadataFolder(view.store, view.config)
    commits = (found for found in folder.timeline().completed() if found.action is Action.DELTA_COMMIT)
    return {found.requested_time: folder.order_time(found) for found in commits}


def lost_writes(view: TableView, suspects: Iterable[Instant], recorded: Mapping[str, str]) -> list[LostInstant]:
    """Return those of the pending writes that completed; `recorded` as `recorded_commits` returns it.

    A write completed if a later write was based on its files, or if it is archived. A table service also completed if
    the metadata table has its delta commit, and a clean deleted an input file: a clean keeps those of pending plans. A
    write that is no table service completed if the metadata table has its delta commit, neither markers nor a heartbeat
    are left of it, and another write began later: that write would have rolled it back. In version 6 another write may
    begin later and complete while the writer runs; so the write must also have recorded a file, because a failed write
    of files has markers, or be a change of columns, which does not complete after later writes. The newest write is
    never among them: its writer may have died before it completed. Nor is the target of a pending rollback: a rollback
    first deletes its completed file.

    Reads each later write, and of a write that is in the metadata table the names of its markers and heartbeat. Of a
    table service it reads the plan, and lists the partitions of the plan.
    """
    found = []
    for instant in suspects:
        recorded_at = recorded.get(instant.requested_time)
        # The writer of a recorded delta commit held the lock until it ended, so no later write began before. (Not so in
        # version 6, which records the requested time.)
        since = recorded_at or instant.requested_time
        completed = view.whole_timeline().writes().completed()
        later = [known for known in completed if known.requested_time > since]
        proof = _proof(view, instant, later, is_recorded=recorded_at is not None) if later else None
        if proof is not None:
            found.append(LostInstant(instant.requested_time, instant, recorded_at, proof))
    taken_back = _taken_back(view) if found else set()
    return [one for one in found if one.requested_time not in taken_back]


def check_no_write_is_lost(view: TableView, suspects: Sequence[Instant]) -> None:
    """Refuse if one of these pending writes completed, before it is rolled back or executed again.

    It takes no request without suspects, and one listing with some. Raises: CorruptFileError.
    """
    if suspects:
        for lost in lost_writes(view, suspects, recorded_commits(view)):
            raise lost.error(view)


def lost_and_recorded(view: TableView) -> list[LostInstant]:
    """Return the pending writes up to the view's time that completed, of those that the last listing knew as recorded.

    It takes no request if there is no such pending write, and one listing if one completed: the listing of the view may
    have missed a file that was created meanwhile.
    """
    recorded = recorded_by_last_listing(view)
    pending = [found for found in view.whole_timeline().writes().pending() if found.requested_time in recorded]
    lost = lost_writes(view, pending, recorded) if pending else []
    still = {found.requested_time for found in view.refreshed().timeline.pending()} if lost else set()
    return [found for found in lost if found.requested_time in still]


def gone_instants(view: TableView, unknown: Iterable[str]) -> list[LostInstant]:
    """Return the instants without any file on the timeline, of the unknown instants of listed files.

    The timeline is listed again if there are some: their writers may have begun after the view was loaded.
    """
    recorded = recorded_by_last_listing(view)
    times = {time for time in unknown if time in recorded and view.whole_timeline().is_missing(time)}
    times -= {found.requested_time for found in view.archive().find(times)} if times else set()
    now = view.refreshed().timeline if times else view.timeline
    proof = "the metadata table has its completed delta commit"
    return [LostInstant(time, None, recorded[time], proof) for time in sorted(times) if now.get(time) is None]


def recorded_by_last_listing(view: TableView) -> dict[str, str]:
    table = view.state.metadata_table if view.config.has_metadata_table else None
    recorded = {} if table is None else table.recorded
    return {time: at for time, at in recorded.items() if view.until is None or time <= view.until}


def _taken_back(view: TableView) -> set[str]:
    """Return the instants that pending rollbacks roll back."""
    found: set[str] = set()
    for instant in view.whole_timeline().pending():
        if instant.action is Action.ROLLBACK:
            plan = stored_rollback_plan(view, instant)
            if plan is not None and plan.instant_to_rollback is not None:
                found.add(plan.instant_to_rollback.commit_time)
    return found


def bases_of(commit: CommitMetadata, version: TableVersion) -> set[str]:
    """Return the instants on whose files a write was based: they had completed.

    In version 6 a log file has the instant of a compaction in its name, and a JVM has it as its `prev_commit`, before
    the compaction completes.
    """
    found: set[str] = set()
    for stat in commit.write_stats():
        names = [stat.base_file, stat.prev_base_file]
        if not (version.log_name_has_base_instant and stat.is_log_append):
            names += stat.log_files or ()
            found.add(stat.prev_commit)
        found |= {instant_of_data_file(name) or "" for name in names if name}
    return found


def _proof(view: TableView, instant: Instant, later: Sequence[Instant], *, is_recorded: bool) -> str | None:
    time, writer = instant.requested_time, None
    for known in later:
        commit = view.commit_metadata(known)
        if time in bases_of(commit, view.config.version):
            return f"{known} was written on its files"
        if commit.operation_type not in REARRANGING:  # these begin without rolling back dead writes
            writer = writer or known
    if any(found.action.writes_data for found in view.archive().find([time])):
        return "it is archived"
    if instant.action.is_planned:  # it is executed again, as long as its input files are there
        gone = _deleted_input(view, instant) if is_recorded else ""
        return f"its input file {gone} was deleted, and a clean keeps the files of pending plans" if gone else None
    if not is_recorded or writer is None:
        return None
    if view.store.head(heartbeat_path(time)) is not None or view.store.list(marker_folder(time), recursive=True):
        return None
    is_ordered = view.config.version.has_completion_time_in_name
    if not (is_ordered or _changes_columns(view, instant) or _recorded_a_file(view, time)):
        return None
    return f"the metadata table has its delta commit, its writer ended regularly, and {writer} began later"


def _deleted_input(view: TableView, instant: Instant) -> str:
    """Return an input file of the plan that is not listed; an empty text if all are there."""
    files = input_files(view, instant)
    listed = list_files(view, sorted(files))
    return next((name for path, names in sorted(files.items()) for name in sorted(names - listed[path].keys())), "")


def _changes_columns(view: TableView, instant: Instant) -> bool:
    content = view.pending_content(instant, State.INFLIGHT)
    operation = CommitMetadata.parse(content, path=str(instant)).operation_type if content else None
    return operation == WriteOperation.ALTER_SCHEMA


def _recorded_a_file(view: TableView, requested_time: str) -> bool:
    """Return whether the delta commit of an instant in the metadata table of version 6 adds a data file.

    Also true if its log file is gone: a compaction of the metadata table waits for pending instants.
    """
    folder = MetadataFolder(view.store, view.config)
    instant = folder.timeline().get(requested_time, Action.DELTA_COMMIT)
    if instant is None:
        return False
    content = read_instant(folder.store, folder.layout, instant)
    stats = CommitMetadata.parse(content, path=str(instant)).partition_to_write_stats
    for stat in (stat for kind in KINDS.required for stat in stats.get(kind.name, ())):
        path = f"{METADATA_FOLDER}/{stat.path}"
        try:
            blocks = read_log(view.store, path, version=view.config.version).blocks
        except CorruptFileError:
            return True
        if any(_adds_a_file(block, path) for block in blocks if block.instant_time == requested_time):
            return True
    return False


def _adds_a_file(block: RowBlock, path: str) -> bool:
    values = () if block.values is None else block.values.to_pylist()
    rows = (FileListRecord.parse(value, schema_json=block.schema_json, path=path) for value in values)
    return any(
        size_bytes is not None
        for row in rows
        if row.record_type is RecordType.FILE_LIST
        for size_bytes in row.files.values()
    )
