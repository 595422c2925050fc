"""The one tree of errors. Each error says what was expected, what was found, where, and what to do."""

from __future__ import annotations


class HoodieError(Exception):
    """Base of every error that hoodie raises on purpose."""


class TableNotFoundError(HoodieError):
    """The path holds no Hudi table."""


class TableExistsError(HoodieError):
    """The path already holds a Hudi table and `exist_ok` was not given."""


class InvalidConfigError(HoodieError):
    """An option is unknown, has a wrong value, or contradicts another one."""


class SchemaMismatchError(HoodieError):
    """The data does not fit the table's schema; the field is named."""


class RecordKeyError(HoodieError):
    """Record keys are null, empty or missing; says how many and shows three of them."""


class PartitionPathError(HoodieError):
    """A partition value would leave the table's folder, or cannot be written as a path."""


class CorruptFileError(HoodieError):
    """A file does not hold what its name promises; carries its path and, where known, the offset."""

    def __init__(self, message: str, *, path: str, offset: int | None = None) -> None:
        self.path = path
        self.offset = offset
        where = path if offset is None else f"{path} at byte {offset}"
        super().__init__(f"{where}: {message}")

    def __reduce__(self) -> tuple[object, ...]:
        """Travel from a worker to the driver with all its facts."""
        return (_rebuild_corrupt_file_error, (str(self), self.path, self.offset))


def _rebuild_corrupt_file_error(text: str, path: str, offset: int | None) -> CorruptFileError:
    error = CorruptFileError.__new__(CorruptFileError)
    Exception.__init__(error, text)
    error.path = path
    error.offset = offset
    return error


class CommitConflictError(HoodieError):
    """Another writer changed, or is changing, the same file groups; nothing was committed."""


class LockTimeoutError(HoodieError):
    """The table's lock was held by somebody else for longer than we were willing to wait."""


class InstantNotFoundError(HoodieError):
    """The timeline holds no such instant."""


class UnsupportedError(HoodieError):
    """The table or the call needs something this release does not do; says which release or tool does."""
