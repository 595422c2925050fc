"""Indexes: which file group holds a record key."""

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.index.api import Index, Route, TagRequest
from hoodie.index.simple import SimpleIndex

__all__ = ["INDEX_NAMES", "Index", "Route", "TagRequest", "index_for"]

INDEX_NAMES = ("simple", "global_simple", "record", "bloom", "global_bloom", "bucket", "hbase")
_COMING = {"record": "0.2", "bloom": "0.4", "global_bloom": "0.4", "bucket": "0.4", "hbase": "0.4"}


def index_for(name: str, *, update_partition_path: bool = True) -> Index:
    """The index of that name, in upper or lower case.

    Raises: UnsupportedError for one that a later release brings; InvalidConfigError for an unknown name.

    >>> index_for("simple").is_global
    False
    """
    name = name.strip().lower()
    if name in ("simple", "global_simple"):
        return SimpleIndex(name == "global_simple", update_partition_path)
    if name in _COMING:
        raise UnsupportedError(
            f"index={name!r} comes with hoodie {_COMING[name]}; this release has 'simple' and 'global_simple'"
        )
    raise InvalidConfigError(f"index={name!r} is no index; known are {', '.join(INDEX_NAMES)}")
