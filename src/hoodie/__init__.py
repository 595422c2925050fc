"""Apache Hudi for Python on PySpark, without the Hudi JAR."""

from typing import TYPE_CHECKING, Any

from hoodie.errors import (
    BadRowsError,
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
    SourceError,
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
    from hoodie.ingest.result import IngestResult
    from hoodie.ingest.run import ingest
    from hoodie.ingest.source import Batch, Decoded, Request, Source
    from hoodie.spark.ship import ship
    from hoodie.statements.run import sql
    from hoodie.write.result import WriteResult

__version__ = "0.5.0.dev0"

__all__ = [
    "BadRowsError",
    "Batch",
    "BatchWrittenError",
    "CommitConflictError",
    "CorruptFileError",
    "Decoded",
    "HistoryLostError",
    "HoodieError",
    "HoodieWarning",
    "IngestResult",
    "InputFailedError",
    "InstantNotFoundError",
    "InvalidConfigError",
    "LockTimeoutError",
    "MissingFileError",
    "PartitionPathError",
    "RecordKeyError",
    "Request",
    "SchemaMismatchError",
    "Source",
    "SourceError",
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
    "ingest",
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
    """Load a name whose module loads many others when it is first used. `ingest` is a module that can be called."""
    if name == "ingest":
        import hoodie.ingest as module

        return module
    if name in {"Batch", "Decoded", "Request", "Source"}:
        from hoodie.ingest import source

        return getattr(source, name)
    if name == "IngestResult":
        from hoodie.ingest.result import IngestResult

        return IngestResult
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
