"""Indexes: which file group holds a record key."""

from hoodie.index.api import Index, LookUpCost, Route, Tagged, TagRequest
from hoodie.index.selection import (
    GLOBAL_INDEXES,
    INDEX_NAMES,
    index_name,
    index_of,
    moves_option,
    moves_records,
    partition_tells,
    stored_index,
    table_index,
)

__all__ = [
    "GLOBAL_INDEXES",
    "INDEX_NAMES",
    "Index",
    "LookUpCost",
    "Route",
    "TagRequest",
    "Tagged",
    "index_name",
    "index_of",
    "moves_option",
    "moves_records",
    "partition_tells",
    "stored_index",
    "table_index",
]
