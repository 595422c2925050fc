"""Errors for files of the metadata table: they name the call that rebuilds what is damaged or missing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from hoodie.errors import CorruptFileError
from hoodie.files.damage import missing_file
from hoodie.metadata.places import REBUILD_ADVICE
from hoodie.storage import Store

_REMEDY = f"or {REBUILD_ADVICE}"


@contextlib.contextmanager
def expected_metadata_file(store: Store, path: str) -> Iterator[None]:
    """Add what to do to the errors for a file of the metadata table that is damaged or missing."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing_file(store, path).with_remedy(_REMEDY) from error
    except CorruptFileError as error:
        raise error.with_remedy(_REMEDY) from error
