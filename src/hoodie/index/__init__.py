"""Indexes: which file group holds a record key."""

from hoodie.index.api import Index, LookUpCost, Route, Tagged, TagRequest
from hoodie.index.selection import (
    GLOBAL_INDEXES,
    INDEX_NAMES,
    RECORD_INDEXES,
    index_name,
    index_of,
    index_of_view,
    moves_option,
    moves_records,
    partition_tells,
    stored_index,
    table_index,
)

__all__ = [
    "GLOBAL_INDEXES",
    "INDEX_NAMES",
    "RECORD_INDEXES",
    "Index",
    "LookUpCost",
    "Route",
    "TagRequest",
    "Tagged",
    "index_name",
    "index_of",
    "index_of_view",
    "moves_option",
    "moves_records",
    "partition_tells",
    "stored_index",
    "table_index",
]
