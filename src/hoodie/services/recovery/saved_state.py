"""Check that a restore ends with the files that its savepoint names (docs/format/table.md §9.5).

A savepoint names files; a restore takes back the instants that completed after its commit. Where writers overlapped,
the two can disagree: JVM Hudi names the files of the writes that were requested before the commit. A clean then may
have deleted what the restored table needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from hoodie.errors import UnsupportedError
from hoodie.files.slices import FileSlice
from hoodie.format.filenames import name_of
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.timeline import Instant
from hoodie.view.saved_slices import named_groups
from hoodie.view.table_view import TableView


def check_saved_state(
    view: TableView, saved: Mapping[str, Collection[str]], gone: Collection[Instant], target: Instant
) -> None:
    """Refuse if the table without the instants `gone` has not the slices that the savepoint of `target` names.

    A file group may have a newer base file, of a compaction that a restore keeps: it has the rows of the named files.

    Raises: UnsupportedError.
    """
    named = named_groups(saved)
    times = {found.requested_time for found in gone}
    timeline = view.timeline.filter(lambda found: found.requested_time not in times)
    later = tuple(found for found in gone if found.is_completed)
    stays = replace(view, timeline=timeline, completed_later=(*view.completed_later, *later))
    after = {(found.partition_path, found.file_id): found for found in stays.existing_slices(sorted(saved))}
    for group in sorted({*named, *after}):
        found = after.get(group)
        if found is None or not _is_same(stays, found, named.get(group, set()), target):
            raise _refused(view, target, group, found)
    replaced = _replaced(stays, target)
    for group, written in sorted(_written_before(stays, target).items()):
        found = after.get(group)
        if group[1] not in replaced.get(group[0], ()) and (found is None or _newest_time(found) < written):
            # A clean deleted the file, as the savepoint does not name it.
            raise _refused(view, target, group, found)


def _is_same(stays: TableView, found: FileSlice, named: Collection[str], target: Instant) -> bool:
    names = {name_of(path) for path in found.paths}
    if names == named:
        return True
    base = found.base_file
    wrote = None if base is None else stays.timeline.get(base.instant_time)
    if base is None or wrote is None or not named or not wrote.is_completed:
        return False
    is_kept_compaction = (
        wrote.requested_time < target.requested_time
        and stays.order_time(wrote) > stays.order_time(target)
        and stays.commit_metadata(wrote).operation_type == WriteOperation.COMPACT
    )
    return is_kept_compaction and names - {base.name} <= set(named)


def _written_before(stays: TableView, target: Instant) -> dict[tuple[str, str], str]:
    """Return the file groups of writes that were requested after the target and completed before it.

    The value is the requested time of the last such write.
    """
    return {
        (stat.partition_path or "", stat.file_id or ""): found.requested_time
        for found in stays.timeline.writes().completed()
        if found.requested_time > target.requested_time and stays.order_time(found) <= stays.order_time(target)
        for stat in stays.commit_metadata(found).write_stats()
    }


def _newest_time(found: FileSlice) -> str:
    return max((found.base_instant_time, *(log.name.instant_time for log in found.log_files)))


def _replaced(stays: TableView, target: Instant) -> Mapping[str, set[str]]:
    gone: dict[str, set[str]] = {}
    for found in stays.completed_writes():
        if stays.order_time(found) <= stays.order_time(target):
            for path, file_ids in stays.commit_facts(found).replaced.items():
                gone.setdefault(path, set()).update(file_ids)
    return gone


def _refused(view: TableView, target: Instant, group: tuple[str, str], found: FileSlice | None) -> UnsupportedError:
    path, file_id = group
    left = "no file" if found is None else ", ".join(name_of(name) for name in found.paths)
    return UnsupportedError(
        f"{view.store.uri('')} cannot go back to {target.requested_time}: without the instants that completed later, "
        f"file group {file_id} of partition {path!r} would have {left}, and not the files that the savepoint names. "
        "Writers overlapped when the commit was made, and its savepoint has the files of another one; nothing was "
        "changed. Restore to another savepoint or commit"
    )
