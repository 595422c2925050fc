"""The metadata table: derived data about the data table that can always be rebuilt."""

from hoodie.metadata.files_partition import FileChanges
from hoodie.metadata.initialise import drop_partitions, initialise, initialise_record_index
from hoodie.metadata.listing import list_from_storage
from hoodie.metadata.table import MAINTAINED, MetadataTable
from hoodie.metadata.view import TableSchema, TableState, TableView

__all__ = [
    "MAINTAINED",
    "FileChanges",
    "MetadataTable",
    "TableSchema",
    "TableState",
    "TableView",
    "drop_partitions",
    "initialise",
    "initialise_record_index",
    "list_from_storage",
]
