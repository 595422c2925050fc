"""Which index a table has, and which one serves a write."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie import config as options
from hoodie.config import flag
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.table.table_config import TableConfig
from hoodie.index.api import Index
from hoodie.index.global_simple import GLOBAL_SIMPLE
from hoodie.index.kind import IndexKind
from hoodie.index.record.index import RECORD
from hoodie.index.record.partitioned import PARTITIONED_RECORD
from hoodie.index.registry import INDEXES, index_kind
from hoodie.index.simple import SIMPLE
from hoodie.view.table_view import TableView


def stored_index(config: TableConfig) -> IndexKind | None:
    """The index whose type the table's properties store; None if they store none, or one that this release lacks."""
    try:
        return index_kind(config.raw[options.INDEX_TYPE_KEY])
    except (KeyError, InvalidConfigError, UnsupportedError):
        return None


def table_index(config: TableConfig) -> IndexKind:
    """The index by which the table finds records: as stored, else the record index if it has one, else `simple`.

    Raises: as `index_kind`.
    """
    given = config.raw.get(options.INDEX_TYPE_KEY)
    if given is not None:
        return index_kind(given)
    return next((kind for kind in INDEXES if kind.needs_one_of(config.metadata_partitions)), SIMPLE)


def index_of_view(view: TableView) -> IndexKind:
    """As `table_index`; for a table that stores no type, the kind of record index that it has is looked up.

    Raises: as `index_kind`.
    """
    kind = table_index(view.config)
    if options.INDEX_TYPE_KEY in view.config.raw or kind.metadata_partition is None:
        return kind
    return next((found for found in INDEXES if found.metadata_partition and found.exists_in(view)), kind)


def partition_tells(config: TableConfig) -> bool:
    """Whether every row lies in the partition that its columns name, so that reads may leave partitions out.

    Not where rows stay in their first partition when their columns change.
    """
    if stored_index(config) is PARTITIONED_RECORD:
        return True
    is_record = RECORD.needs_one_of(config.metadata_partitions) or flag(
        config.raw.get(options.RECORD_INDEX_ENABLE.key, "false")
    )
    return (RECORD if is_record else GLOBAL_SIMPLE).moves_records(config.raw)


def index_of(view: TableView, properties: Mapping[str, str]) -> Index:
    """The index that serves a write; `properties` are the effective options.

    Raises: as `index_kind`; InvalidConfigError if a write asks for a record index that the table does not have, or for
    an index other than the table's, with which keys would not stay unique.
    """
    stored = index_of_view(view)
    asked = properties.get(options.INDEX_TYPE_KEY)
    kind = stored if asked is None else index_kind(asked)
    if kind is stored:
        return kind.make(view, properties)
    if options.INDEX_TYPE_KEY in view.config.raw or stored.is_global:
        raise InvalidConfigError(
            f"{options.INDEX_TYPE_KEY}={asked}: the table finds records by the index "
            f"{stored.name!r}, and so must every write to it, or keys would not stay unique; leave the option out"
        )
    if not kind.exists_in(view):
        raise InvalidConfigError(
            f"{options.INDEX_TYPE_KEY}={asked}: the table has no record index of that "
            'kind; build it with t.index.build("record"), or leave the option out'
        )
    return kind.make(view, properties)
