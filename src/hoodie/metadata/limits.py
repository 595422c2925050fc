"""When the metadata table's services run: the numbers that JVM Hudi 1.2.0 derives from the data table's options.

docs/format/metadata.md §3.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.config import Option, flag

COMPACT_DELTA_COMMITS = Option(
    "hoodie.metadata.compact.max.delta.commits",
    10,
    int,
    "0.7",
    "Delta commits of the metadata table after which it is compacted.",
)
LOG_COMPACTION_ENABLE = Option(
    "hoodie.metadata.log.compaction.enable",
    False,
    flag,
    "0.14",
    "Whether log blocks of the metadata table are merged into one between compactions.",
)
LOG_COMPACTION_BLOCKS = Option(
    "hoodie.metadata.log.compaction.blocks.threshold",
    5,
    int,
    "0.14",
    "Log blocks of a file group after which they are merged into one.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """Counts of completed instants that add or remove files: delta commits and compactions."""

    delta_commits_to_compact: int = COMPACT_DELTA_COMMITS.default
    """Delta commits since the last compaction at which the next one is due."""
    commits_retained: int = 20
    """Newest commits whose file slices the cleaner leaves: twice the data table's, as it keeps 10."""
    commits_kept_min: int = 21
    """What archiving leaves on the active timeline; one more than on the data table's."""
    commits_kept_max: int = 31
    """More commits than this on the active timeline are archived."""
    is_log_compaction_enabled: bool = LOG_COMPACTION_ENABLE.default
    log_blocks_to_compact: int = LOG_COMPACTION_BLOCKS.default
    """Log blocks of a file slice at which they are compacted into one, if that is enabled."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ServiceLimits:
        """The limits of a table with these stored properties.

        Raises:
            InvalidConfigError: an option does not parse.
        """
        return cls(
            delta_commits_to_compact=COMPACT_DELTA_COMMITS.get(properties),
            is_log_compaction_enabled=LOG_COMPACTION_ENABLE.get(properties),
            log_blocks_to_compact=LOG_COMPACTION_BLOCKS.get(properties),
        )
