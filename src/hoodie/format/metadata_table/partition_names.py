"""Names of metadata partitions: names of their folders, and values of `hoodie.table.metadata.partitions`.

docs/format/metadata.md §3.2. On disk: do not change.
"""

from __future__ import annotations

from typing import Final

FILES: Final = "files"
"""The files of each partition of the data table. Readers do not use a metadata table without this partition."""
RECORD_INDEX: Final = "record_index"
"""The location of each record key."""
