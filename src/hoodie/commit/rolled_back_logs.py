"""Roll back what a write appended to log files in table version 6: find the file slices, and append rollback blocks.

docs/format/table.md §5.4. In version 6 a log file has the name of its file slice, and blocks of any number of writes.
A write is undone by a command block in a later log file of the slice. In later versions each write has log files of its
own, which are deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hoodie.commit.pending import inflight_content
from hoodie.files.logs.log_file import append_rollback_block
from hoodie.files.markers import Marker
from hoodie.files.named_paths import named_data_file
from hoodie.format.filenames import IoType, LogFileName, name_of, parse_data_file
from hoodie.format.instants.commit_metadata import NULL_COMMIT, CommitMetadata
from hoodie.format.instants.service_metadata import InstantInfo, RollbackPlan, RollbackRequest, appending_requests
from hoodie.storage import FileInfo
from hoodie.timeline import Instant
from hoodie.view.table_view import TableView


@dataclass(frozen=True, slots=True, order=True)
class _Slice:
    partition_path: str
    file_id: str
    base_time: str


def logs_of_write(
    view: TableView, instant: Instant, markers: Sequence[Marker] | None
) -> tuple[list[str], list[RollbackRequest]]:
    """Return the log files that only the write has, to delete, and requests to append rollback blocks to the others.

    `markers` are those of the write; None if it has none. Lists the partitions that it changed. Nothing is returned for
    later versions.
    """
    if not view.config.version.log_name_has_base_instant:
        return [], []
    changed = _changed(view, instant, markers)
    listed = {path: view.store.list(path) for path in sorted({found.partition_path for found in changed})}
    own: list[str] = []
    newest: list[tuple[str, str, str, int]] = []
    for found in sorted(changed):
        logs = _logs(listed[found.partition_path], found)
        if found.base_time == instant.requested_time:
            own += [info.path for _, info in logs]
        elif logs:
            info = logs[-1][1]
            newest.append((found.partition_path, found.file_id, view.store.uri(info.path), info.size_bytes))
    target = InstantInfo(commit_time=instant.requested_time, action=instant.action.value)
    return own, list(appending_requests(target, newest))


def append_rollback_blocks(
    view: TableView, plan: RollbackPlan, rollback_time: str, *, target: str, by: str
) -> dict[str, dict[str, int]]:
    """Append the rollback blocks of a plan; return their log files and the sizes, by partition path.

    Raises: CorruptFileError if the plan names another file than a log file of the table; then nothing is appended.
    """
    slices = [
        _Slice(request.partition_path, name.file_id, name.instant_time)
        for request in plan.rollback_requests
        for path in request.log_blocks_to_be_deleted or ()
        if (name := LogFileName.parse(name_of(named_data_file(view.store, path, by=by)))) is not None
    ]
    appended: dict[str, dict[str, int]] = {}
    for found in sorted(set(slices)):
        path, size_bytes = append_rollback_block(
            view.store, found.partition_path, found.file_id, found.base_time, target=target, rollback_time=rollback_time
        )
        appended.setdefault(found.partition_path, {})[view.store.uri(path)] = size_bytes
    return appended


def _changed(view: TableView, instant: Instant, markers: Sequence[Marker] | None) -> set[_Slice]:
    """Return the file slices to which the write appended, or may have appended."""
    if instant.is_completed:
        return set(_of_stats(view.commit_metadata(instant)))
    if markers is not None:
        return set(_of_markers(markers))
    content = inflight_content(view, instant)
    return set(_of_workload(CommitMetadata.parse(content, path=str(instant)))) if content else set()


def _of_stats(metadata: CommitMetadata) -> Iterator[_Slice]:
    for stat in metadata.write_stats():
        name = LogFileName.parse(name_of(stat.path or ""))
        if stat.is_log_append and name is not None:
            yield _Slice(stat.partition_path or "", name.file_id, name.instant_time)


def _of_markers(markers: Iterable[Marker]) -> Iterator[_Slice]:
    """The JVM's marker of an append names a base file that need not exist; it tells the file group and the slice."""
    for marker in markers:
        parsed = parse_data_file(marker.path)
        if marker.io_type is IoType.APPEND and parsed is not None:
            yield _Slice(marker.path.rpartition("/")[0], parsed.file_id, parsed.instant_time)


def _of_workload(metadata: CommitMetadata) -> Iterator[_Slice]:
    """A JVM writer stores in the inflight file which file groups it is about to change."""
    for path, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.file_id and stat.prev_commit not in ("", NULL_COMMIT):
                yield _Slice(path, stat.file_id, stat.prev_commit)


def _logs(infos: Iterable[FileInfo], found: _Slice) -> list[tuple[LogFileName, FileInfo]]:
    """Return the log files of a slice, oldest first."""
    named = [(name, info) for info in infos if (name := LogFileName.parse(info.name)) is not None]
    own = [pair for pair in named if (pair[0].file_id, pair[0].instant_time) == (found.file_id, found.base_time)]
    return sorted(own, key=lambda pair: pair[0].sort_key)
