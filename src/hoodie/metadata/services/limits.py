"""Limits that decide when the metadata table's services run, as JVM Hudi 1.2.0 derives them from table options.

docs/format/metadata.md §3.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.config.indexes import METADATA_COMPACT_DELTA_COMMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """Limits as numbers of completed delta commits and compactions."""

    delta_commits_to_compact: int = METADATA_COMPACT_DELTA_COMMITS.default
    """Number of delta commits since the last compaction at which the next compaction is due."""
    commits_retained: int = 20
    """Number of newest commits whose file slices the cleaner keeps: twice the number of the data table, which is 10."""
    commits_kept_min: int = 21
    """Number of commits that archiving keeps on the active timeline; one more than for the data table."""
    commits_kept_max: int = 31
    """Archiving is due if the active timeline has more commits than this."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ServiceLimits:
        """Return the limits of a table with these stored properties.

        Raises:
            InvalidConfigError: an option does not parse.
        """
        return cls(delta_commits_to_compact=METADATA_COMPACT_DELTA_COMMITS.get(properties))
