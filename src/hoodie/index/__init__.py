"""Indexes: which file group holds a record key.

Each index is one module or package that defines its kind; the registry lists the kinds.
"""

from hoodie.index.api import Index, LookUpCost, Purpose, Route, Tagged, TagRequest
from hoodie.index.bloom.index import BLOOM, GLOBAL_BLOOM
from hoodie.index.bucket import BUCKET
from hoodie.index.hbase.index import HBASE
from hoodie.index.kind import IndexKind
from hoodie.index.record.index import RECORD
from hoodie.index.record.partitioned import PARTITIONED_RECORD
from hoodie.index.registry import INDEXES, index_kind
from hoodie.index.selection import (
    breaks_new_index,
    check_index_options,
    index_of,
    index_of_view,
    lost_record_index,
    obeys_buckets,
    obeys_index,
    partition_follows_columns,
    rows_follow_columns,
    stored_index,
    table_index,
    wants_record_index,
)
from hoodie.index.simple import GLOBAL_SIMPLE, SIMPLE

__all__ = [
    "BLOOM",
    "BUCKET",
    "GLOBAL_BLOOM",
    "GLOBAL_SIMPLE",
    "HBASE",
    "INDEXES",
    "PARTITIONED_RECORD",
    "RECORD",
    "SIMPLE",
    "Index",
    "IndexKind",
    "LookUpCost",
    "Purpose",
    "Route",
    "TagRequest",
    "Tagged",
    "breaks_new_index",
    "check_index_options",
    "index_kind",
    "index_of",
    "index_of_view",
    "lost_record_index",
    "obeys_buckets",
    "obeys_index",
    "partition_follows_columns",
    "rows_follow_columns",
    "stored_index",
    "table_index",
    "wants_record_index",
]
