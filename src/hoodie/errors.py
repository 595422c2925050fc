"""All error classes of hoodie. Each message names what was expected, what was found, where, and what to do."""

from __future__ import annotations

from functools import partial

_MESSAGE_MAX = 2000
"""Errors quote what a file contains, which may be any number of bytes."""


class HoodieWarning(UserWarning):
    """A read goes on, but not as the caller may expect; the message names the remedy.

    A part of the table is missing and the read is slower, or `as_of` includes fewer commits than its value suggests.
    Python shows it once; `warnings.simplefilter("error", HoodieWarning)` turns it into an error.
    """


class HoodieError(Exception):
    """Base of every error that hoodie raises on purpose."""

    def __str__(self) -> str:
        """Return the message; surrogates of a quoted text are escaped, so that a terminal or a log can take it."""
        return super().__str__().encode(errors="backslashreplace").decode()


class TableNotFoundError(HoodieError):
    """The path contains no Hudi table."""


class TableExistsError(HoodieError):
    """The path already contains a Hudi table, and `exist_ok` is not set."""


class InvalidConfigError(HoodieError):
    """An option is unknown, has a wrong value, or contradicts another option."""


class SchemaMismatchError(HoodieError):
    """The data does not fit the table's schema; the message names the field."""


class InputFailedError(HoodieError):
    """The caller's data could not be read to its end: its reader, query or file raised an error (`__cause__`)."""


class RecordKeyError(HoodieError):
    """Record keys are null, empty or missing; the message contains their number and three of them."""


class PartitionPathError(HoodieError):
    """A partition value or a symbolic link leads out of the table's folder, or a value cannot be written as a path."""


class CorruptFileError(HoodieError):
    """A file does not have the content that its name implies; has the file's path and, if known, the offset."""

    def __init__(self, message: str, *, path: str, offset: int | None = None) -> None:
        self.path = path
        self.offset = offset
        if len(message) > _MESSAGE_MAX:
            message = f"{message[:_MESSAGE_MAX]}…"
        where = path if offset is None else f"{path} at byte {offset}"
        super().__init__(f"{where}: {message}")

    def with_remedy(self, remedy: str) -> CorruptFileError:
        """Return the same error with a sentence on the remedy."""
        return _rebuild_corrupt_file_error(type(self), f"{self}; {remedy}", self.path, self.offset)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the message, path and offset, so that the error of a worker reaches the driver complete."""
        return (_rebuild_corrupt_file_error, (type(self), str(self), self.path, self.offset))


def _rebuild_corrupt_file_error(
    kind: type[CorruptFileError], text: str, path: str, offset: int | None
) -> CorruptFileError:
    error = kind.__new__(kind)
    Exception.__init__(error, text)
    error.path = path
    error.offset = offset
    return error


class MissingFileError(CorruptFileError):
    """A file that the table lists does not exist."""


class MetadataTableMissingError(CorruptFileError):
    """The table's properties name partitions of a metadata table that does not exist.

    Reads then list the storage, and the next write builds the metadata table anew.
    """


class MetadataPartitionMissingError(CorruptFileError):
    """The table's properties name a metadata partition that holds no file group.

    A restore by the JVM leaves a partition so if it was filled after the instant to which the table was taken back.
    The next write drops the partition, and builds a record index again.
    """


class CommitConflictError(HoodieError):
    """Another writer changed, or is changing, the same file groups; nothing is committed.

    `retry_cause` is the other writer's action, if the same rows can be written again to the table as it is now. It is
    None for every other conflict, even if the outcome of the write is not known.
    """

    def __init__(self, message: str, *, retry_cause: str | None = None) -> None:
        super().__init__(message)
        self.retry_cause = retry_cause


class BatchWrittenError(CommitConflictError):
    """A commit has this batch of a stream, so it is not written again."""


class StreamCheckpointError(HoodieError):
    """A stream began its batch numbers anew, so that its batches would count as written; nothing is written."""


class SourceError(HoodieError):
    """A source of an ingestion cannot go on from the place of the newest commit, or cannot be read."""


class BadRowsError(HoodieError):
    """A batch has more rows that cannot be decoded than the flow allows; nothing is written."""


class LockTimeoutError(HoodieError):
    """Another writer held the table's lock for longer than the maximum waiting time."""


class IndexUnavailableError(HoodieError):
    """The server of an external index cannot be reached, does not answer in time, or refuses a call."""


class IndexIncompleteError(HoodieError):
    """An external index lacks keys of the table, so that a write would store them twice; build it again."""


class JobFailedError(HoodieError):
    """Spark did not complete a job: executors were lost, tasks failed, or Spark cannot be reached; has Spark's reason.

    Errors that Spark has classes for, such as an analysis error of the caller's plan, are raised as they are.
    """


class InstantNotFoundError(HoodieError):
    """The timeline does not contain the instant."""


class UnsupportedError(HoodieError):
    """This release does not support what the table or the call requires; the message names a release that does."""


class WorkerEnvironmentError(HoodieError):
    """Spark's workers cannot run this package: it is missing, of another release, or lacks what it needs.

    The message names the interpreter of the workers, what was found there, and what to do.
    """


class HistoryLostError(UnsupportedError):
    """The table no longer has the past state or the changes that a read requests: they were cleaned or taken back.

    `oldest_instant` is the requested time of the oldest instant as of which, and since which, the table can be read.
    """

    def __init__(self, message: str, *, oldest_instant: str) -> None:
        super().__init__(message)
        self.oldest_instant = oldest_instant

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), oldest_instant=self.oldest_instant), (str(self),)


class ViewOvertakenError(HistoryLostError):
    """A clean, a rollback or a restore deleted files while a read of them was planned; the read can be planned again.

    Reads of a table are planned again by themselves; the error remains if that happened to several views in a row.
    """


class StorageError(HoodieError, OSError):
    """The file system or object store refused a call: no access, no space, no connection, not a folder.

    `errno` is the system's error number, or None.
    """

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.errno = code

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the message and the error number, so that the error of a worker reaches the driver complete."""
        return (StorageError, (str(self), self.errno))
