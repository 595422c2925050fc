"""Errors for data files that are missing or lost, or do not have the length that the table's listing states."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pyarrow as pa

from hoodie.display import counted
from hoodie.errors import CorruptFileError, MissingFileError, StorageError
from hoodie.format.filenames import instant_of_data_file
from hoodie.storage import Store

_REMEDY = (
    "restore the file from a copy, or roll back or restore the table to an instant before it; `hoodie verify` names "
    "all such files, and the command that gives up their rows"
)


def damaged_file(store: Store, path: str, problem: str) -> CorruptFileError:
    """Return the error for a data file of a completed instant that is damaged. `problem`: what was found."""
    return CorruptFileError(f"{problem}. {_written_by(path)}; {_REMEDY}", path=store.uri(path))


def check_length(store: Store, path: str, *, listed_bytes: int, found_bytes: int) -> None:
    """Compare the length of a file with the length in the listing of the table; 0 means that the length is not known.

    Raises: CorruptFileError if the lengths differ.
    """
    if listed_bytes and found_bytes != listed_bytes:
        problem = f"expected {listed_bytes} bytes as the table's listing states, found {found_bytes} bytes"
        raise damaged_file(store, path, problem)


@contextlib.contextmanager
def expected_file(store: Store, path: str) -> Iterator[None]:
    """Turn a `FileNotFoundError` for a data file that the table lists into a `MissingFileError`."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing_file(store, path) from error


def missing_file(store: Store, path: str) -> MissingFileError:
    """Return the error for a data file that the table lists and that does not exist."""
    return MissingFileError(
        f"the table lists this file, but it does not exist. {_written_by(path)}; if a cleaner or a rollback deleted it "
        f"while it was to be read, read again (with Spark: make the DataFrame anew, it keeps its plan), else {_REMEDY}",
        path=store.uri(path),
    )


@contextlib.contextmanager
def readable_pages(where: str) -> Iterator[None]:
    """Raise CorruptFileError with the path `where` if pyarrow cannot decode pages; errors of the storage stay."""
    try:
        yield
    except StorageError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        raise CorruptFileError(f"the Parquet data cannot be read ({error})", path=where) from error


def lost_file(store: Store, path: str, *, others: int = 0) -> MissingFileError:
    """Return the error for a data file of an earlier state that later commits name and that no listing has."""
    more = f", nor do {counted(others, 'others')}" if others > 1 else ", nor does another one" if others else ""
    return MissingFileError(
        f"this file of an earlier state does not exist{more}, although later commits replaced it and no clean deleted "
        f"it: without it rows would be missing. {_written_by(path)}; restore the file from a copy (then "
        "t.repair(dry_run=False) lists it again), or read the table as of a later time",
        path=store.uri(path),
    )


def _written_by(path: str) -> str:
    return f"Its name has the instant {instant_of_data_file(path)}"
