"""Choose the partitions that a clean looks at: those that commits changed since the last clean, or all.

docs/format/table.md §9.4. An incremental clean reads the metadata of the commits between the last clean and this one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hoodie.errors import CorruptFileError
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.table.table_config import TableType
from hoodie.services.cleaning.options import CleanOptions, Policy
from hoodie.timeline import Action, Instant
from hoodie.view.commit_cache import CleanFacts
from hoodie.view.savepoints import savepointed_instants
from hoodie.view.table_view import TableView

SAVEPOINTS: Final = "savepointed_timestamps"
"""Extra metadata of a clean: the savepoints at its time, separated by commas. On disk: do not change."""
VERSIONS: Final = "hoodie.python.clean.fileversions"
"""Extra metadata of a clean that keeps file versions: how many. On disk: do not change."""
LEFT: Final = "hoodie.python.clean.partitions.left"
"""Extra metadata of a clean: a JSON list of empty partitions that a writer may be filling. On disk: do not change."""

_WITHOUT_NEW_SLICES: Final = frozenset(
    {
        WriteOperation.INSERT,
        WriteOperation.INSERT_PREPPED,
        WriteOperation.BULK_INSERT,
        WriteOperation.BULK_INSERT_PREPPED,
        WriteOperation.UPSERT,
        WriteOperation.UPSERT_PREPPED,
    }
)
"""Writes that leave an older file slice only where they update a file group, in a copy-on-write table."""


@dataclass(frozen=True, slots=True)
class Examined:
    """The partitions that a clean looks at; None: all. `commits`: number of commits whose metadata decided that."""

    partitions: frozenset[str] | None
    commits: int = 0


def partitions_to_examine(
    view: TableView, options: CleanOptions, last: CleanFacts | None, earliest: Instant | None
) -> Examined:
    """Return the partitions in which files may have become removable since the last clean.

    A clean looks at all partitions if planning is not incremental, if a savepoint was deleted since the last clean, or
    if the last clean's commits are archived. Without a clean before, the commits decide if none is archived.
    """
    if not options.is_incremental:
        return Examined(None)
    since = _commits_to_examine(view, options, last, earliest)
    if since is None or (last is not None and _savepoints_of(last) - {*savepointed_instants(view)}):
        return Examined(None)
    found: set[str] = set() if last is None else set(left_partitions(last.extra))
    for instant in since:
        found |= _changed_partitions(view, instant)
    return Examined(frozenset(found), len(since))


def left_partitions(extra: Mapping[str, str]) -> list[str]:
    """Return the empty partitions that a clean did not drop, from its extra metadata.

    Raises: CorruptFileError if the clean's metadata has no list of partition paths.
    """
    text = extra.get(LEFT)
    if not text:
        return []
    try:
        found = json.loads(text)
    except ValueError as error:
        raise CorruptFileError(f"{LEFT}: a JSON list expected, found {text[:100]!r}", path="clean") from error
    if not isinstance(found, list) or not all(isinstance(path, str) for path in found):
        raise CorruptFileError(f"{LEFT}: a list of partition paths expected, found {text[:100]!r}", path="clean")
    return found


def extra_metadata(view: TableView, options: CleanOptions, left: Iterable[str]) -> dict[str, str]:
    """Return the extra metadata of a clean, from which the next clean plans."""
    extra: dict[str, str] = {}
    if times := savepointed_instants(view):
        extra[SAVEPOINTS] = ",".join(times)
    if options.policy is Policy.VERSIONS:
        extra[VERSIONS] = str(options.retained)
    if paths := sorted(left):
        extra[LEFT] = json.dumps(paths)
    return extra


def _commits_to_examine(
    view: TableView, options: CleanOptions, last: CleanFacts | None, earliest: Instant | None
) -> Sequence[Instant] | None:
    """Return the commits since the last clean whose changes may be removable now; None: all partitions."""
    commits = view.timeline.writes().completed().instants
    if options.policy is Policy.VERSIONS:
        if last is None:
            return None if view.has_archived_instants() else commits
        is_same = last.policy == options.policy.value and last.extra.get(VERSIONS) == str(options.retained)
        if not is_same or (view.timeline.start or "") > last.planned_at:
            return None
        return [found for found in commits if (found.completion_time or "") > last.planned_at]
    end = "" if earliest is None else earliest.requested_time
    if last is not None and last.earliest:
        if (view.timeline.start or "") > last.earliest:
            return None
        return [found for found in commits if last.earliest <= found.requested_time < end]
    return None if view.has_archived_instants() else [found for found in commits if found.requested_time < end]


def _changed_partitions(view: TableView, instant: Instant) -> set[str]:
    """Return the partitions in which a commit may have left an older file slice or a replaced file group."""
    metadata = view.commit_metadata(instant)
    stats: Mapping[str, Sequence[object]] = metadata.partition_to_write_stats
    if instant.action is Action.REPLACE_COMMIT:
        return {*stats, *(metadata.partition_to_replace_file_ids or {})}
    is_copy_on_write = view.config.table_type is TableType.COPY_ON_WRITE
    if is_copy_on_write and metadata.operation_type in _WITHOUT_NEW_SLICES:
        return {stat.partition_path or "" for stat in metadata.write_stats() if not stat.is_new_file_group}
    return set(stats)


def _savepoints_of(last: CleanFacts) -> set[str]:
    return set(filter(None, last.extra.get(SAVEPOINTS, "").split(",")))
