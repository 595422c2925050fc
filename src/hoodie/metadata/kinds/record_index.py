"""The kind `record_index`: record key -> location, in file groups by hash (docs/format/metadata.md §4.7, §5; RFC-08).

A file slice has a base HFile, and at most one HFile block and one delete block for each later commit that changed the
file group. The newest row or deletion of a key counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hoodie.config import indexes
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.metadata_table.record_location import LOCATION_FIELD
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.data_table import DataTable
from hoodie.metadata.definitions import read_definition
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.storage import Store

FILE_ID_PREFIX: Final = "record-index-"
_IS_PARTITIONED: Final = "isPartitioned"


@dataclass(frozen=True, slots=True)
class RecordIndexKind(PartitionKind):
    """The kind `record_index`: the newest row of a key wins, a deletion removes it.

    The tasks of a write write its rows to log files. The index requires the partition, and
    `services/indexing/record_builds` builds it. `is_partitioned` has an effect on a new partition only: each data
    partition gets separate file groups when its first rows are written.
    """

    is_partitioned: bool = False
    name = RECORD_INDEX
    file_id_prefix = FILE_ID_PREFIX
    content_field = LOCATION_FIELD
    logs_before_commit = True

    @property
    def definition(self) -> Mapping[str, Any]:
        """The index definition, as the JVM stores it."""
        return {
            "indexName": self.name,
            "indexType": RECORD_INDEX,
            "indexFunction": "",
            "sourceFields": [],
            "indexOptions": {_IS_PARTITIONED: str(self.is_partitioned).lower()},
            "version": "V1",
        }

    def can_be_in(self, table: DataTable, version: TableVersion) -> bool:
        """Return whether the index, global or partitioned as it is, exists in tables of another version."""
        is_known = version.has_partitioned_record_index or not is_partitioned_record_index(table.store)
        return is_known and PartitionKind.can_be_in(self, table, version)

    def is_written_in(self, version: TableVersion) -> bool:
        """Return whether the version has the index, global or partitioned as it is."""
        return not self.is_partitioned or version.has_partitioned_record_index

    def file_groups(self, properties: Mapping[str, str]) -> int:
        """Return the least number of file groups that the properties allow: a new partition is empty."""
        return 0 if self.is_partitioned else indexes.RECORD_INDEX_BUCKETS_MIN.get(properties)


def is_partitioned_record_index(store: Store) -> bool:
    """Return whether the record index has separate file groups for each data partition.

    Raises: CorruptFileError if the index definitions do not parse.
    """
    stored = (read_definition(store, RECORD_INDEX) or {}).get("indexOptions")
    return isinstance(stored, dict) and str(stored.get(_IS_PARTITIONED)).lower() == "true"
