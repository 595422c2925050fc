"""When the metadata table of a new table is compacted."""

from __future__ import annotations

from hoodie.metadata.services.context import ServiceLimits

DELTA_COMMITS_MAX = ServiceLimits().delta_commits_to_compact
