"""Which index a table has, and which one serves a write."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie import config as options
from hoodie.config import Option, flag
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.metadata_table.partition_names import RECORD_INDEX
from hoodie.format.table.table_config import TableConfig
from hoodie.index.api import Index
from hoodie.index.record import PartitionedRecordIndex, RecordIndex
from hoodie.index.simple import SimpleIndex
from hoodie.metadata.record_index.look_up import LookUp
from hoodie.view.table_view import TableView

INDEX_NAMES = ("simple", "global_simple", "record", "partitioned_record", "bloom", "global_bloom", "bucket", "hbase")
GLOBAL_INDEXES = frozenset({"record", "global_simple"})
"""Indexes with which a key is unique in the table, not just in its partition."""
RECORD_INDEXES = frozenset({"record", "partitioned_record"})
"""Indexes that are a partition of the metadata table."""
_COMING = {"bloom": "0.4", "global_bloom": "0.4", "bucket": "0.4", "hbase": "0.4"}
_STORED_AS = {"record": "RECORD_INDEX", "partitioned_record": "RECORD_LEVEL_INDEX"}
_KNOWN_AS = {
    "record_index": "record",
    "global_record_level_index": "record",
    "record_level_index": "partitioned_record",
}


def index_name(name: str) -> str:
    """Our name of an index that is called so here or in `hoodie.index.type`, in upper or lower case.

    Raises: UnsupportedError for one that a later release brings; InvalidConfigError for an unknown name.

    >>> index_name("RECORD_INDEX")
    'record'
    """
    known = name.strip().lower()
    known = _KNOWN_AS.get(known, known)
    if known in _COMING:
        raise UnsupportedError(
            f"index={known!r} comes with hoodie {_COMING[known]}; this release has 'record', "
            "'partitioned_record', 'simple' and 'global_simple'"
        )
    if known not in INDEX_NAMES:
        raise InvalidConfigError(f"index={name!r} is no index; known are {', '.join(INDEX_NAMES)}")
    return known


def table_index(config: TableConfig) -> str:
    """Name of the index by which the table finds records: as stored, else the record index if it has one.

    Raises: as `index_name`.
    """
    given = config.raw.get(options.INDEX_TYPE_KEY)
    if given is not None:
        return index_name(given)
    return "record" if RECORD_INDEX in config.metadata_partitions else options.INDEX_TYPE.default


def index_of_view(view: TableView) -> str:
    """Name of the index by which a table finds records; of one that stores none, as its record index is.

    Raises: as `index_name`.
    """
    name = table_index(view.config)
    is_stored = options.INDEX_TYPE_KEY in view.config.raw
    return "partitioned_record" if not is_stored and view.has_partitioned_index() else name


def stored_index(name: str, properties: Mapping[str, str], *, moves_by_default: bool = True) -> dict[str, str]:
    """The index of a new table as table properties, which bind JVM writers too.

    Of the record index both are needed, the type and the switch: JVM writers drop it where the second is missing, and
    would not use it without the first. `simple` is not stored: unbound, a JVM writer may choose another index that
    keeps keys unique in each partition, such as BLOOM.
    """
    if name == options.INDEX_TYPE.default:
        return {}
    found = {options.INDEX_TYPE_KEY: _STORED_AS.get(name, name.upper())}
    if name == "record":
        moves = options.RECORD_UPDATE_PARTITION_PATH
        found |= dict.fromkeys((options.RECORD_INDEX_ENABLE.key, options.RECORD_INDEX_ENABLE_NEW.key), "true")
        found[moves.key] = properties.get(moves.key, str(moves_by_default).lower())
    if name == "partitioned_record":
        found[options.PARTITIONED_RECORD_INDEX_ENABLE.key] = "true"
    return found


def moves_records(name: str, properties: Mapping[str, str]) -> bool:
    """Whether a record whose partition changed moves there, in a table with this global index."""
    return moves_option(name).get(properties)


def moves_option(name: str) -> Option[bool]:
    """The option that decides it."""
    return options.RECORD_UPDATE_PARTITION_PATH if name == "record" else options.UPDATE_PARTITION_PATH


def partition_tells(config: TableConfig) -> bool:
    """Whether every row lies in the partition that its columns name, so that reads may leave partitions out.

    Not where rows stay in their first partition when their columns change.
    """
    if config.raw.get(options.INDEX_TYPE_KEY, "").upper() == _STORED_AS["partitioned_record"]:
        return True
    is_record = RECORD_INDEX in config.metadata_partitions or flag(
        config.raw.get(options.RECORD_INDEX_ENABLE.key, "false")
    )
    return moves_records("record" if is_record else "simple", config.raw)


def index_of(view: TableView, properties: Mapping[str, str]) -> Index:
    """The index that serves a write; `properties` are the effective options.

    A table whose record index is not there (a JVM writer may have dropped it) is searched file by file.

    Raises: as `index_name`; InvalidConfigError if a write asks for a record index that the table does not have, or for
    an index other than the table's, with which keys would not stay unique.
    """
    config, stored = view.config, index_of_view(view)
    name = index_name(properties[options.INDEX_TYPE_KEY]) if options.INDEX_TYPE_KEY in properties else stored
    if name != stored and (options.INDEX_TYPE_KEY in config.raw or stored in GLOBAL_INDEXES):
        raise InvalidConfigError(
            f"{options.INDEX_TYPE_KEY}={properties[options.INDEX_TYPE_KEY]}: the table finds records by the index "
            f"{stored!r}, and so must every write to it, or keys would not stay unique; leave the option out"
        )
    if name == "simple":
        return SimpleIndex()
    if name == "global_simple":
        return _global_simple(name, properties)
    has_index = RECORD_INDEX in config.metadata_partitions
    fits = has_index and view.has_partitioned_index() == (name == "partitioned_record")
    if not fits and name != stored:
        raise InvalidConfigError(
            f"{options.INDEX_TYPE_KEY}={properties[options.INDEX_TYPE_KEY]}: the table has no record index of that "
            'kind; build it with t.index.build("record"), or leave the option out'
        )
    if not fits and view.timeline.instants:
        return _global_simple(name, properties) if name == "record" else SimpleIndex()
    look_up = options.RECORD_INDEX_LOOK_UP.get(properties)
    way = None if look_up == "auto" else LookUp(look_up)
    if name == "partitioned_record":
        return PartitionedRecordIndex(way)
    return RecordIndex(
        update_partition_path=moves_records(name, properties),
        look_up=way,
        initial_buckets=options.RECORD_INDEX_BUCKETS_MIN.get(config.raw),
    )


def _global_simple(name: str, properties: Mapping[str, str]) -> SimpleIndex:
    return SimpleIndex(is_global=True, update_partition_path=moves_records(name, properties))
