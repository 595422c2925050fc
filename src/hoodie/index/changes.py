"""Changes of a table's index while writes run that began under the index before."""

from __future__ import annotations

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.table.table_config import TableConfig
from hoodie.index.kind import IndexKind
from hoodie.index.record.index import RECORD
from hoodie.index.selection import table_index


def breaks_new_index(before: TableConfig, now: TableConfig) -> bool:
    """Return whether a write that began with the properties `before` may break what the index relies on now.

    The write may have put a key into a file group that is not that of its bucket, into a second partition although keys
    are unique in the whole table now, or into another partition than that of its columns. A record index that was built
    since the write began is no such change: the write brings it up to date when it commits.
    """
    old, new = _index(before), _index(now)
    if old is None or new is None:
        return False
    if new.places_rows:
        return old is not new or any(found.get(before.raw) != found.get(now.raw) for found in new.own_options)
    if new.is_global == old.is_global:
        return False
    if not new.is_global:
        return not old.moves_records(before.raw)
    return new is not RECORD or RECORD.needs_one_of(before.metadata_partitions)


def _index(config: TableConfig) -> IndexKind | None:
    try:
        return table_index(config)
    except (InvalidConfigError, UnsupportedError):
        return None
