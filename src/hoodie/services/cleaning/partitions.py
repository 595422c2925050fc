"""The options of a clean, and the partitions that it looks at: those that commits changed since the last clean, or all.

docs/format/table.md §9.4. An incremental clean reads the metadata of the commits between the last clean and this one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from hoodie.config import retention
from hoodie.config.patterns import match_whole
from hoodie.errors import CorruptFileError, InvalidConfigError
from hoodie.format.instants.commit_metadata import WriteOperation
from hoodie.format.table.table_config import TableType
from hoodie.timeline import Action, Instant
from hoodie.view.commit_cache import CleanFacts
from hoodie.view.history import savepointed_instants
from hoodie.view.table_view import TableView


class Policy(Enum):
    """What a clean retains. On disk (plans and metadata of cleans): do not change."""

    COMMITS = "KEEP_LATEST_COMMITS"
    """Every file that a snapshot of one of the newest commits needs."""
    HOURS = "KEEP_LATEST_BY_HOURS"
    """Every file that a snapshot of a commit of the last hours needs."""
    VERSIONS = "KEEP_LATEST_FILE_VERSIONS"
    """The newest file slices of every file group. This policy has no earliest commit to retain."""


_RETAINED = {
    Policy.COMMITS: retention.CLEAN_COMMITS_RETAINED,
    Policy.HOURS: retention.CLEAN_HOURS_RETAINED,
    Policy.VERSIONS: retention.CLEAN_VERSIONS_RETAINED,
}
_POLICY: Final = retention.CLEAN_POLICY

_ONE_WAY = (
    retention.CLEAN_TRIGGER,
    retention.CLEAN_FAILED_WRITES,
    retention.CLEAN_SEVERAL,
    retention.CLEAN_BOOTSTRAP_FILES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanOptions:
    """The options of one clean. `retained` counts commits, hours or file versions, by the policy.

    `partitions` and `pattern` limit a clean that is not incremental to some partitions; empty: all.
    """

    policy: Policy = Policy.COMMITS
    retained: int = retention.CLEAN_COMMITS_RETAINED.default
    is_incremental: bool = True
    trigger_commits: int = 1
    commits_max: int = retention.CLEAN_COMMITS_MAX.default
    empty_clean_hours: int = -1
    partitions: frozenset[str] = frozenset()
    pattern: str = ""

    @classmethod
    def of(cls, stored: Mapping[str, str], given: Mapping[str, str] = MappingProxyType({})) -> CleanOptions:
        """Return the options that the stored properties define, and those that a call gives, which take precedence.

        A call that gives one retention option and no `hoodie.clean.policy` has the policy of that option, whatever the
        table stores. Else, without a policy, it is the one of the only retention option that is set, or
        KEEP_LATEST_COMMITS.

        Raises: InvalidConfigError if a value does not parse, or a filter of partitions has incremental planning on.
        """
        properties = {**stored, **given}
        policy = _only_policy(given) or _only_policy(properties) or Policy(_POLICY.get(properties).upper())
        for option in _ONE_WAY:
            # Parsed for its error: there is one way.
            option.get(properties)
        named = retention.CLEAN_PARTITIONS_SELECTED.get(properties)
        pattern = retention.CLEAN_PARTITIONS_PATTERN.get(properties)
        is_incremental = retention.CLEAN_INCREMENTAL.get(properties)
        if is_incremental and (named or pattern):
            key = retention.CLEAN_PARTITIONS_SELECTED.key if named else retention.CLEAN_PARTITIONS_PATTERN.key
            raise InvalidConfigError(
                f"{key} is set, and {retention.CLEAN_INCREMENTAL.key} is true: the next incremental clean would skip "
                f"the other partitions; set {retention.CLEAN_INCREMENTAL.key}=false with it"
            )
        return cls(
            policy=policy,
            retained=_RETAINED[policy].get(properties),
            is_incremental=is_incremental,
            trigger_commits=retention.CLEAN_TRIGGER_COMMITS.get(properties),
            commits_max=retention.CLEAN_COMMITS_MAX.get(properties),
            empty_clean_hours=retention.EMPTY_CLEAN_HOURS.get(properties),
            partitions=frozenset(named),
            pattern=pattern,
        )

    def selects(self, partition_path: str) -> bool:
        """Return whether a clean of all partitions includes this one."""
        if self.partitions:
            return partition_path in self.partitions
        return not self.pattern or match_whole(self.pattern, [partition_path])[0]


def _only_policy(properties: Mapping[str, str]) -> Policy | None:
    """Return the policy of the only retention option; None with a named policy, and with several options or none."""
    found = [policy for policy, option in _RETAINED.items() if option.key in properties]
    return found[0] if len(found) == 1 and _POLICY.key not in properties else None


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
    """The partitions that a clean looks at; None: all. `commits`: number of commits whose metadata decided that.

    `earliest`: the earliest commit whose snapshot must stay whole; None if all do, or if the policy keeps versions.
    """

    earliest: Instant | None
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
        return Examined(earliest, None)
    since = _commits_to_examine(view, options, last, earliest)
    saved = set() if last is None else set(filter(None, last.extra.get(SAVEPOINTS, "").split(",")))
    if since is None or saved - {*savepointed_instants(view)}:
        return Examined(earliest, None)
    found: set[str] = set() if last is None else set(left_partitions(last.extra))
    for instant in since:
        found |= _changed_partitions(view, instant)
    return Examined(earliest, frozenset(found), len(since))


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
