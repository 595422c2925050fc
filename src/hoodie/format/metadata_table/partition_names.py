"""Names of metadata partitions: names of their folders, and values of `hoodie.table.metadata.partitions`.

docs/format/metadata.md §3.2. On disk: do not change.
"""

from __future__ import annotations

from typing import Final

FILES: Final = "files"
"""The files of each partition of the data table. Readers do not use a metadata table without this partition."""
COLUMN_STATS: Final = "column_stats"
"""The range of each column in each file."""
PARTITION_STATS: Final = "partition_stats"
"""The range of each column in each partition of the data table."""
BLOOM_FILTERS: Final = "bloom_filters"
"""The bloom filter of each base file."""
RECORD_INDEX: Final = "record_index"
"""The location of each record key."""
