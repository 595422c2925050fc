"""Apache Hudi for Python on PySpark, without the Hudi JAR."""

from typing import TYPE_CHECKING, Any

from hoodie.errors import (
    BatchWrittenError,
    CommitConflictError,
    CorruptFileError,
    HistoryLostError,
    HoodieError,
    HoodieWarning,
    InputFailedError,
    InstantNotFoundError,
    InvalidConfigError,
    LockTimeoutError,
    MissingFileError,
    PartitionPathError,
    RecordKeyError,
    SchemaMismatchError,
    StorageError,
    StreamCheckpointError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedError,
    ViewOvertakenError,
    WorkerEnvironmentError,
)
from hoodie.records.merging.mergers import register_merger
from hoodie.table import Table, adopt, create, exists, open, rebuild_properties, register, sessions, unregister

if TYPE_CHECKING:
    from hoodie.spark.ship import ship
    from hoodie.statements.run import sql
    from hoodie.write.result import WriteResult

__version__ = "0.5.0.dev0"

__all__ = [
    "BatchWrittenError",
    "CommitConflictError",
    "CorruptFileError",
    "HistoryLostError",
    "HoodieError",
    "HoodieWarning",
    "InputFailedError",
    "InstantNotFoundError",
    "InvalidConfigError",
    "LockTimeoutError",
    "MissingFileError",
    "PartitionPathError",
    "RecordKeyError",
    "SchemaMismatchError",
    "StorageError",
    "StreamCheckpointError",
    "Table",
    "TableExistsError",
    "TableNotFoundError",
    "UnsupportedError",
    "ViewOvertakenError",
    "WorkerEnvironmentError",
    "WriteResult",
    "__version__",
    "adopt",
    "create",
    "exists",
    "open",
    "rebuild_properties",
    "register",
    "register_merger",
    "ship",
    "sql",
    "unregister",
]


def _spark_room() -> sessions.SparkRoom:
    import hoodie.spark

    return hoodie.spark


sessions.use(_spark_room)


def __getattr__(name: str) -> Any:
    """Load `WriteResult`, `ship` and `sql` when they are first used; their modules load many others."""
    if name == "WriteResult":
        from hoodie.write.result import WriteResult

        return WriteResult
    if name == "ship":
        from hoodie.spark.ship import ship

        return ship
    if name == "sql":
        from hoodie.statements.run import sql

        return sql
    raise AttributeError(f"module 'hoodie' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
