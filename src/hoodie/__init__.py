"""Apache Hudi for Python on PySpark, without the Hudi JAR."""

from hoodie.errors import (
    CommitConflictError,
    CorruptFileError,
    HoodieError,
    InstantNotFoundError,
    InvalidConfigError,
    LockTimeoutError,
    PartitionPathError,
    RecordKeyError,
    SchemaMismatchError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from hoodie.records.merging.mergers import register_merger
from hoodie.table import Table, create, exists, open, register
from hoodie.write.result import WriteResult

__all__ = [
    "CommitConflictError",
    "CorruptFileError",
    "HoodieError",
    "InstantNotFoundError",
    "InvalidConfigError",
    "LockTimeoutError",
    "PartitionPathError",
    "RecordKeyError",
    "SchemaMismatchError",
    "Table",
    "TableExistsError",
    "TableNotFoundError",
    "UnsupportedError",
    "WriteResult",
    "create",
    "exists",
    "open",
    "register",
    "register_merger",
]
