"""Choose the file slices of one partition that a clean deletes. Pure functions (docs/format/table.md §9.4)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hoodie.files.slices import FileSlice, SliceHistory
from hoodie.format.filenames import name_of
from hoodie.services.cleaning.options import CleanOptions, Policy

FileGroup = tuple[str, str]
"""Partition path and file id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What the table needs besides its newest file slices.

    `savepointed` are names of files by partition path. `compacting` are the base instants of the file slices in pending
    compactions and log compactions. `clustering` are the file groups in pending clusterings. `replaced` are the
    requested times of the replace commits that replaced a file group.
    """

    savepointed: Mapping[str, Collection[str]] = field(default_factory=dict, hash=False)
    compacting: Mapping[FileGroup, str] = field(default_factory=dict, hash=False)
    clustering: Collection[FileGroup] = frozenset()
    replaced: Mapping[FileGroup, str] = field(default_factory=dict, hash=False)

    def keeps(self, found: FileSlice) -> bool:
        """Return whether a savepoint or a pending plan needs the file slice."""
        if self.is_compacted(found):
            return True
        names = self.savepointed.get(found.partition_path, ())
        return bool(names) and any(name_of(path) in names for path in found.paths)

    def is_compacted(self, found: FileSlice) -> bool:
        """Return whether a pending (log) compaction reads the file slice, or a newer one of its file group."""
        base = self.compacting.get((found.partition_path, found.file_id))
        return base is not None and found.base_instant_time >= base


def obsolete_slices(
    histories: Sequence[SliceHistory], options: CleanOptions, earliest: str, needed: Needed
) -> list[FileSlice]:
    """Return the file slices of a partition to delete.

    `earliest` is the requested time of the earliest commit to retain; it is not used by KEEP_LATEST_FILE_VERSIONS.
    """
    return [
        found
        for history in histories
        for found in _candidates(history, options, earliest, needed)
        if not needed.keeps(found)
    ]


def _candidates(
    history: SliceHistory, options: CleanOptions, earliest: str, needed: Needed
) -> Iterator[FileSlice] | Sequence[FileSlice]:
    group = (history.partition_path, history.file_id)
    replaced_at = needed.replaced.get(group)
    keeps_versions = options.policy is Policy.VERSIONS
    if replaced_at is not None:
        return history.slices if keeps_versions or replaced_at < earliest else ()
    if keeps_versions:
        return () if group in needed.clustering else _older_versions(history, options.retained, needed)
    return _before(history, earliest)


def _before(history: SliceHistory, earliest: str) -> Iterator[FileSlice]:
    """Yield the slices that no snapshot from `earliest` on reads, and neither the newest snapshot before it."""
    older = [found for found in history.slices[1:] if found.base_instant_time < earliest]
    newest = history.slices[0]
    yield from older if newest.base_instant_time < earliest else older[1:]


def _older_versions(history: SliceHistory, retained: int, needed: Needed) -> Iterator[FileSlice]:
    """Yield the slices beyond the newest `retained`; the slice of a pending compaction counts as one."""
    free = [found for found in history.slices if not needed.is_compacted(found)]
    kept = retained - ((history.partition_path, history.file_id) in needed.compacting)
    yield from free[kept:]
