"""The indexes by name: the indexes of this release, and the indexes planned for a later release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.index.bucket.index import BUCKET
from hoodie.index.global_simple import GLOBAL_SIMPLE
from hoodie.index.hbase.index import HBASE
from hoodie.index.kind import IndexKind
from hoodie.index.record.index import RECORD
from hoodie.index.record.partitioned import PARTITIONED_RECORD
from hoodie.index.simple import SIMPLE

INDEXES: Final = (SIMPLE, GLOBAL_SIMPLE, RECORD, PARTITIONED_RECORD, BUCKET, HBASE)
COMING: Final[Mapping[str, str]] = {"bloom": "0.4", "global_bloom": "0.4"}
"""Indexes of JVM Hudi that this release refuses, each with the release that will have it."""

_BY_NAME: Final = {name: kind for kind in INDEXES for name in kind.names}


def index_kind(name: str) -> IndexKind:
    """Find an index by its name in `index=` or by a value of `hoodie.index.type`, in upper or lower case.

    Raises: UnsupportedError for an index of a later release; InvalidConfigError for an unknown name.

    >>> index_kind("RECORD_INDEX").name
    'record'
    """
    known = name.strip().lower()
    if known in COMING:
        raise UnsupportedError(
            f"index={known!r} comes with hoodie {COMING[known]}; this release has "
            + ", ".join(repr(kind.name) for kind in INDEXES)
        )
    if known not in _BY_NAME:
        names = ", ".join((*(kind.name for kind in INDEXES), *COMING))
        raise InvalidConfigError(f"index={name!r} is no index; expected one of {names}")
    return _BY_NAME[known]
