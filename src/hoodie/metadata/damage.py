"""Errors for files of the metadata table: they name the call that rebuilds what is damaged or missing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from hoodie.errors import CorruptFileError
from hoodie.files.damage import missing_file
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.metadata.places import partition_folder
from hoodie.storage import Store


@contextlib.contextmanager
def expected_metadata_file(store: Store, path: str) -> Iterator[None]:
    """Add what to do to the errors for a file of the metadata table that is damaged or missing."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing_file(store, path).with_remedy(_remedy(path)) from error
    except CorruptFileError as error:
        raise error.with_remedy(_remedy(path)) from error


def _remedy(path: str) -> str:
    if path.startswith(f"{partition_folder(RECORD_INDEX)}/"):
        return "or build the index anew: t.index.drop('record'), then t.index.build('record')"
    return "or drop the metadata table and build it anew"
