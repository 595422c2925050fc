"""Roll back what a write appended to log files of table version 6: find the file slices, and append rollback blocks.

docs/format/table.md §5.4. In version 6 a log file has the name of its file slice, and blocks of any number of writes.
A write is undone by a command block in a later log file of the slice. In later versions each write has log files of its
own, which are deleted. A table that was upgraded keeps log files of version 6 in its older slices, which become the
newest ones if the compaction of the upgrade is taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from hoodie.commit.pending import inflight_content
from hoodie.files.logs.log_file import LoggedSlice, append_rollback_block
from hoodie.files.logs.log_scan import logs_of_instant
from hoodie.files.markers import Marker
from hoodie.files.named_paths import named_data_file
from hoodie.files.slices import LogFile
from hoodie.format.filenames import BaseFileName, IoType, LogFileName, name_of, parse_data_file
from hoodie.format.instants.commit_metadata import NULL_COMMIT, CommitMetadata
from hoodie.format.instants.service_metadata import RollbackPlan, RollbackRequest, appending_requests
from hoodie.storage import Store
from hoodie.timeline import Action, Instant
from hoodie.view.pending_plans import stored_plan
from hoodie.view.table_view import TableView


def logs_of_write(
    view: TableView, instant: Instant, markers: Sequence[Marker] | None
) -> tuple[list[str], list[RollbackRequest]]:
    """Return the log files that go with the write, to delete, and requests to append rollback blocks to the others.

    The log files of the slices that it began go with it: they have only blocks of writes that were rolled back before,
    and without the base file they would look like slices of their own. As in the JVM they stay if a later write is
    there.

    `markers` are those of the write; None if it has none. Lists the partitions that it changed. Nothing is returned for
    a table that never had version 6, nor for what was written since an upgrade.
    """
    if not view.config.may_have_slice_logs:
        return [], []
    changed = _changed(view, instant, markers)
    is_of_version_6 = view.config.version.log_name_has_base_instant
    if not is_of_version_6:
        changed = {found: names for found, names in changed.items() if found.base_time != instant.requested_time}
    begun = _begun(view, instant)
    paths = sorted({found.partition_path for found in (*changed, *begun)})
    listed = {path: {info.name: info for info in view.store.list(path)} for path in paths}
    if not is_of_version_6:
        changed = _of_version_6(view.store, changed, instant, listed)
    for found in begun:
        changed.setdefault(found, set())
    own: list[str] = []
    shared: list[tuple[str, str, str, dict[str, int]]] = []
    for found in sorted(changed):
        infos = listed[found.partition_path]
        logs = [infos[name.name] for name in found.logs_among(infos)]
        if found.base_time == instant.requested_time:
            own += [info.path for info in logs]
        elif logs:
            # The listing loses the files of the write with its commit: each is named, so that it has them again.
            named = [info for info in logs if info is logs[-1] or info.name in changed[found]]
            sizes = {view.store.uri(info.path): info.size_bytes for info in named}
            shared.append((found.partition_path, found.file_id, found.base_time, sizes))
    return own, list(appending_requests(shared))


def slices_of_plan(store: Store, plan: RollbackPlan, *, by: str) -> list[LoggedSlice]:
    """Return the file slices to which a plan appends rollback blocks; none in later versions.

    Raises: CorruptFileError if the plan names another file than a data file of the table.
    """
    slices = {
        LoggedSlice(request.partition_path, name.file_id, name.instant_time)
        for request in plan.rollback_requests
        for path in request.log_blocks_to_be_deleted or ()
        if (name := LogFileName.parse(name_of(named_data_file(store, path, by=by)))) is not None
    }
    return sorted(slices)


def append_rollback_blocks(
    store: Store, slices: Sequence[LoggedSlice], rollback_time: str, *, target: str
) -> dict[str, dict[str, int]]:
    """Append a rollback block to each file slice; return their log files and the sizes, by partition path.

    Each partition is listed once.
    """
    names = {path: store.names(path) for path in sorted({found.partition_path for found in slices})}
    appended: dict[str, dict[str, int]] = {}
    for found in slices:
        logs = found.logs_among(names[found.partition_path])
        path, size_bytes = append_rollback_block(store, found, logs, target=target, rollback_time=rollback_time)
        appended.setdefault(found.partition_path, {})[store.uri(path)] = size_bytes
    return appended


def _changed(view: TableView, instant: Instant, markers: Sequence[Marker] | None) -> dict[LoggedSlice, set[str]]:
    """Return the file slices to which the write appended, or may have appended, each with the names of its files."""
    if instant.is_completed:
        found = _of_stats(view.commit_metadata(instant))
    elif markers is not None:
        found = _of_markers(markers)
    else:
        content = inflight_content(view, instant)
        found = _of_workload(CommitMetadata.parse(content, path=str(instant))) if content else iter(())
    changed: dict[LoggedSlice, set[str]] = {}
    for slice_, names in found:
        changed.setdefault(slice_, set()).update(names)
    return changed


def _begun(view: TableView, instant: Instant) -> set[LoggedSlice]:
    """Return the file slices that a write or a compaction began, if no later write can have rows in their log files."""
    if any(found.requested_time > instant.requested_time for found in view.timeline.writes()):
        return set()
    time, stats = instant.requested_time, view.commit_metadata(instant).write_stats() if instant.is_completed else ()
    names = ((stat.partition_path or "", BaseFileName.parse(name_of(stat.path or ""))) for stat in stats)
    begun = {LoggedSlice(path, name.file_id, time) for path, name in names if name and name.instant_time == time}
    if instant.action is Action.COMPACTION:
        plan = stored_plan(view, instant)
        begun |= {LoggedSlice(found.partition_path, found.file_id, time) for found in (plan.operations if plan else ())}
    return begun


def _of_version_6(
    store: Store,
    changed: Mapping[LoggedSlice, set[str]],
    instant: Instant,
    listed: Mapping[str, Collection[str]],
) -> dict[LoggedSlice, set[str]]:
    """Return the slices to which the write appended in version 6: their log files have its blocks, not its name.

    Later versions know no other kind of statistic that names a log file of another instant, but for files to which the
    write appended nothing. `listed`: the names of the files that exist, by partition path. A clean may have deleted a
    log file; no later slice has its blocks as log blocks, so it needs no rollback block.
    """
    found: dict[LoggedSlice, set[str]] = {}
    for slice_, names in changed.items():
        parsed = map(LogFileName.parse, names & {*listed[slice_.partition_path]})
        logs = [LogFile(slice_.partition_path, name, 0) for name in parsed if name is not None]
        if logs and logs_of_instant(store, logs, instant.requested_time):
            found[slice_] = names
    return found


def _of_stats(metadata: CommitMetadata) -> Iterator[tuple[LoggedSlice, set[str]]]:
    for stat in metadata.write_stats():
        name = LogFileName.parse(name_of(stat.path or ""))
        if name is not None:
            yield LoggedSlice(stat.partition_path or "", name.file_id, name.instant_time), set(map(name_of, stat.sizes))


def _of_markers(markers: Iterable[Marker]) -> Iterator[tuple[LoggedSlice, set[str]]]:
    """The marker of an append names the log file; should it name a base file, that too identifies the slice."""
    for marker in markers:
        parsed = parse_data_file(marker.path)
        if marker.io_type is IoType.APPEND and parsed is not None:
            partition, _, name = marker.path.rpartition("/")
            yield LoggedSlice(partition, parsed.file_id, parsed.instant_time), {name}


def _of_workload(metadata: CommitMetadata) -> Iterator[tuple[LoggedSlice, set[str]]]:
    """A JVM writer stores in the inflight file which file groups it is about to change."""
    for path, stats in metadata.partition_to_write_stats.items():
        for stat in stats:
            if stat.file_id and stat.prev_commit not in ("", NULL_COMMIT):
                yield LoggedSlice(path, stat.file_id, stat.prev_commit), set()
