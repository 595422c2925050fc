"""When the metadata table's services run: the numbers that JVM Hudi 1.2.0 derives from the data table's options.

docs/format/metadata.md §3.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoodie.config import METADATA_COMPACT_DELTA_COMMITS


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLimits:
    """Counts of completed instants that add or remove files: delta commits and compactions."""

    delta_commits_to_compact: int = METADATA_COMPACT_DELTA_COMMITS.default
    """Delta commits since the last compaction at which the next one is due."""
    commits_retained: int = 20
    """Newest commits whose file slices the cleaner leaves: twice the data table's, as it keeps 10."""
    commits_kept_min: int = 21
    """What archiving leaves on the active timeline; one more than on the data table's."""
    commits_kept_max: int = 31
    """More commits than this on the active timeline are archived."""

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ServiceLimits:
        """The limits of a table with these stored properties.

        Raises:
            InvalidConfigError: an option does not parse.
        """
        return cls(delta_commits_to_compact=METADATA_COMPACT_DELTA_COMMITS.get(properties))
