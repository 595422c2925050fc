"""The indexes by name."""

from __future__ import annotations

from typing import Final

from hoodie.config.known import hint
from hoodie.errors import InvalidConfigError
from hoodie.index.bloom.index import BLOOM, GLOBAL_BLOOM
from hoodie.index.bucket import BUCKET
from hoodie.index.hbase.index import HBASE
from hoodie.index.kind import IndexKind
from hoodie.index.record.index import RECORD
from hoodie.index.record.partitioned import PARTITIONED_RECORD
from hoodie.index.simple import GLOBAL_SIMPLE, SIMPLE

INDEXES: Final = (SIMPLE, GLOBAL_SIMPLE, RECORD, PARTITIONED_RECORD, BLOOM, GLOBAL_BLOOM, BUCKET, HBASE)

_BY_NAME: Final = {name: kind for kind in INDEXES for name in kind.names}


def index_kind(name: str) -> IndexKind:
    """Find an index by its name in `index=` or by a value of `hoodie.index.type`, in upper or lower case.

    Raises: InvalidConfigError for an unknown name.

    >>> index_kind("RECORD_INDEX").name
    'record'
    """
    known = name.strip().lower()
    if known not in _BY_NAME:
        names = [kind.name for kind in INDEXES]
        raise InvalidConfigError(f"index={name!r} is no index; expected one of {', '.join(names)}{hint(known, names)}")
    return _BY_NAME[known]
