"""Names of metadata partitions, which are their folders and stand in `hoodie.table.metadata.partitions`.

docs/format/metadata.md §3.2. On disk: do not change.
"""

from __future__ import annotations

from typing import Final

FILES: Final = "files"
"""The files of each partition of the data table. A metadata table without it is not used by any reader."""
RECORD_INDEX: Final = "record_index"
"""The location of each record key."""
