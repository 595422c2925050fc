"""Options of the services that delete: cleaning, time to live of partitions, archiving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.config.option import (
    NO_NAMES,
    Option,
    at_least,
    hours_or_never,
    off,
    one_of,
    positive,
    whole,
)
from hoodie.config.patterns import check_pattern
from hoodie.errors import InvalidConfigError

CLEAN_AUTOMATIC: Final = Option(
    "hoodie.clean.automatic",
    True,
    "0.4",
    "A commit after which a clean is due deletes the files of old file slices before the write returns.",
)
CLEAN_POLICY: Final = Option(
    "hoodie.clean.policy",
    "keep_latest_commits",
    "0.4",
    "What a clean retains: the files of the newest commits, of the commits of the last hours, or the newest file "
    "slices of each file group. Unless it is set, a retention option that is set alone decides; for a call, the "
    "only retention option that it gives does.",
    parse=one_of("keep_latest_commits", "keep_latest_by_hours", "keep_latest_file_versions"),
)
CLEAN_COMMITS_RETAINED: Final = Option(
    "hoodie.clean.commits.retained",
    10,
    "0.4",
    "keep_latest_commits: number of newest commits whose snapshots stay readable.",
    parse=positive,
)
CLEAN_HOURS_RETAINED: Final = Option(
    "hoodie.clean.hours.retained",
    24,
    "0.10",
    "keep_latest_by_hours: snapshots of the commits of this number of hours stay readable.",
    parse=positive,
)
CLEAN_VERSIONS_RETAINED: Final = Option(
    "hoodie.clean.fileversions.retained",
    3,
    "0.4",
    "keep_latest_file_versions: number of file slices that each file group keeps.",
    parse=positive,
)
CLEAN_TRIGGER: Final = Option(
    "hoodie.clean.trigger.strategy",
    "num_commits",
    "0.8",
    "When a clean is due: after commits.",
    parse=one_of("num_commits"),
)
CLEAN_TRIGGER_COMMITS: Final = Option(
    "hoodie.clean.trigger.max.commits",
    1,
    "0.8",
    "Number of commits after the last clean at which the next clean is due.",
    parse=positive,
)
CLEAN_FAILED_WRITES: Final = Option(
    "hoodie.clean.failed.writes.policy",
    "eager",
    "0.7",
    "Who rolls back writes whose process died. Both values mean the same: the next write, clean that is called, or "
    "round of services does, once no heartbeat is live. `never` is refused.",
    parse=one_of("eager", "lazy"),
)
CLEAN_SEVERAL: Final = Option(
    "hoodie.clean.multiple.enabled",
    False,
    "0.11",
    "Only false: no clean is planned while another is pending, as both would delete the same files.",
    parse=off,
)
CLEAN_BOOTSTRAP_FILES: Final = Option(
    "hoodie.clean.delete.bootstrap.base.file",
    False,
    "0.6",
    "Only false: files of the table that a bootstrap was made from are never deleted.",
    parse=off,
)
CLEAN_INCREMENTAL: Final = Option(
    "hoodie.clean.incremental.enabled",
    True,
    "0.5",
    "A clean looks only at the partitions that commits changed since the last clean (true), or at all (false).",
)
CLEAN_COMMITS_MAX: Final = Option(
    "hoodie.clean.max.commits.to.clean",
    2**63 - 1,
    "1.2",
    "Number of commits that one clean releases at most; the next clean goes on.",
    parse=positive,
)
EMPTY_CLEAN_HOURS: Final = Option(
    "hoodie.write.empty.clean.interval.hours",
    -1,
    "1.2",
    "Hours after the last clean at which a clean without files to delete is put on the timeline, so that later cleans "
    "do not look at the same commits again; -1: only after ten commits without files to delete.",
    parse=hours_or_never,
)
CLEAN_PARTITIONS_SELECTED: Final = Option(
    "hoodie.clean.partition.filter.selected",
    NO_NAMES,
    "1.2",
    "Partition paths, separated by commas, to which a clean that is not incremental is limited.",
)
CLEAN_PARTITIONS_PATTERN: Final = Option(
    "hoodie.clean.partition.filter.regex",
    "",
    "1.2",
    "Regular expression, without look-around and back-references, of the partition paths to which a clean that is not "
    "incremental is limited.",
    parse=check_pattern,
)
TTL_INLINE: Final = Option(
    "hoodie.partition.ttl.inline",
    False,
    "1.0",
    "A commit deletes the partitions that have expired before the write returns.",
)
TTL_STRATEGY: Final = Option(
    "hoodie.partition.ttl.management.strategy.type",
    "keep_by_time",
    "1.0",
    "From when the time to live of a partition counts: from its last write, or from its creation.",
    parse=one_of("keep_by_time", "keep_by_creation_time"),
)
TTL_DAYS: Final = Option(
    "hoodie.partition.ttl.strategy.days.retain",
    -1,
    "1.0",
    "Days after which a partition has expired; 0 or less: no partition expires.",
    parse=whole,
)
TTL_PARTITIONS_SELECTED: Final = Option(
    "hoodie.partition.ttl.strategy.partition.selected",
    NO_NAMES,
    "1.0",
    "Partition paths, separated by commas, that may expire; empty: all.",
)
TTL_PARTITIONS_MAX: Final = Option(
    "hoodie.partition.ttl.strategy.max.delete.partitions",
    1000,
    "1.0",
    "Number of partitions that one run deletes at most; the longest expired first.",
    parse=positive,
)
ARCHIVE_AUTOMATIC: Final = Option(
    "hoodie.archive.automatic",
    True,
    "0.11",
    "Move the oldest instants of the timeline to its archive after a write, if there are more commits than "
    "hoodie.keep.max.commits.",
)
KEEP_COMMITS_MAX: Final = Option(
    "hoodie.keep.max.commits",
    30,
    "0.4",
    "Commits on the active timeline with which nothing is archived.",
    parse=positive,
)
KEEP_COMMITS_MIN: Final = Option(
    "hoodie.keep.min.commits", 20, "0.4", "Commits that archiving keeps on the active timeline.", parse=positive
)
ARCHIVE_BEYOND_SAVEPOINT: Final = Option(
    "hoodie.archive.beyond.savepoint",
    False,
    "0.12",
    "Archive commits after the first savepoint too; savepointed commits stay on the active timeline.",
)
ARCHIVE_LAYER_FILES: Final = Option(
    "hoodie.timeline.compaction.batch.size",
    10,
    "1.0",
    "Files of one layer of the archived timeline that are merged into one file of the next layer.",
    parse=at_least(2, "from 2 up"),
)
ARCHIVE_FILE_BYTES: Final = Option(
    "hoodie.timeline.compaction.target.file.max.bytes",
    64 * 1024 * 1024,
    "1.1",
    "Files of the archived timeline with more bytes are not merged again. (In Hudi: 1,048,576,000. A merge here holds "
    "its files in memory.)",
    parse=positive,
)
ARCHIVE_MANIFESTS: Final = Option(
    "hoodie.timeline.manifest.retained.versions",
    3,
    "1.1",
    "Snapshots of the archived timeline whose files are kept for readers.",
    parse=positive,
)


def kept_commits(properties: Mapping[str, str]) -> tuple[int, int]:
    """Return the number of commits that archiving keeps, and the number above which it is due.

    Raises: InvalidConfigError if the first is not below the second.
    """
    least, most = KEEP_COMMITS_MIN.get(properties), KEEP_COMMITS_MAX.get(properties)
    if least >= most:
        raise InvalidConfigError(
            f"{KEEP_COMMITS_MIN.key}={least} must be below {KEEP_COMMITS_MAX.key}={most}: archiving is due above the "
            "maximum, and keeps the minimum"
        )
    return least, most
