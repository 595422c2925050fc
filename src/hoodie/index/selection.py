"""Determine the index of a table, and the index that serves a write."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.config import flag, indexes
from hoodie.config.option import Option
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.format.table.table_config import TableConfig, TableType
from hoodie.index.api import Index
from hoodie.index.bloom.index import GLOBAL_BLOOM
from hoodie.index.bucket import has_consistent_hashing, looks_bucketed, refuse_consistent_hashing
from hoodie.index.hbase.index import HBASE
from hoodie.index.kind import IndexKind
from hoodie.index.record.index import RECORD
from hoodie.index.record.partitioned import PARTITIONED_RECORD
from hoodie.index.registry import INDEXES, index_kind
from hoodie.index.simple import GLOBAL_SIMPLE, SIMPLE
from hoodie.metadata.kinds.partition_kind import PartitionKind
from hoodie.view.table_view import TableView

_COMMITS_ASKED = 3
"""Newest commits whose file groups are read."""


def stored_index(config: TableConfig) -> IndexKind | None:
    """Return the index of the stored type; None if the table stores no type, or this release lacks the index."""
    try:
        return index_kind(config.raw[indexes.INDEX_TYPE_KEY])
    except (KeyError, InvalidConfigError, UnsupportedError):
        return None


def table_index(config: TableConfig) -> IndexKind:
    """Return the index of the table: the stored index, else the record index if the table has one, else `simple`."""
    given = config.raw.get(indexes.INDEX_TYPE_KEY)
    if given is not None:
        return index_kind(given)
    return next((kind for kind in INDEXES if kind.needs_one_of(config.metadata_partitions)), SIMPLE)


def wants_record_index(config: TableConfig) -> bool:
    """Return whether the table's properties enable a record index of the whole table, whether or not it has one.

    `create` and index builds store the index type and the switches, `t.index.drop` removes them. A JVM call without
    index options may drop the index; it leaves these properties.
    """
    kind = stored_index(config)
    return kind is RECORD or (kind is not PARTITIONED_RECORD and any(s.get(config.raw) for s in RECORD.switches))


def lost_record_index(view: TableView) -> str | None:
    """Return a message if a record index is enabled but missing; None otherwise.

    A table without writes has no index yet: its first write adds it.
    """
    config = view.config
    if RECORD.needs_one_of(config.metadata_partitions):
        return None
    if not wants_record_index(config) or not view.completed_writes():
        return None
    named = ",".join(sorted(config.metadata_partitions)) or "nothing"
    return (
        f"the record index of {view.store.uri('')} is missing: the properties enable it, but "
        f"hoodie.table.metadata.partitions names {named} (a JVM call without index options drops it, and a rollback or "
        "restore that dies can lose it)"
    )


def index_of_view(view: TableView) -> IndexKind:
    """Return the index as `table_index`; if the table stores no type, read which kind of record index it has."""
    kind = table_index(view.config)
    if indexes.INDEX_TYPE_KEY in view.config.raw or kind.metadata_partition is None:
        return kind
    return next((found for found in INDEXES if found.metadata_partition and found.exists_in(view)), kind)


def partition_follows_columns(config: TableConfig) -> bool:
    """Return whether every row is in the partition that its columns determine, so that reads can skip partitions.

    False if rows stay in their first partition when their columns change.
    """
    stored = stored_index(config)
    if stored is PARTITIONED_RECORD:
        return True
    if stored is HBASE:
        return HBASE.moves_records(config.raw)
    is_record = RECORD.needs_one_of(config.metadata_partitions) or flag(
        config.raw.get(indexes.RECORD_INDEX_ENABLE.key, "false")
    )
    kinds = (RECORD,) if is_record else (GLOBAL_SIMPLE, GLOBAL_BLOOM)
    return all(kind.moves_records(config.raw) for kind in kinds)


def obeys_buckets(view: TableView, *, as_of: str | None = None) -> bool:
    """Return whether the rows of a view are in the buckets of the table's bucket index.

    False if the view is of a state before a switch whose check proved this for later states only. `as_of` is a
    requested time that limits the view further.
    """
    return not _is_before(view, indexes.BUCKETS_SINCE, as_of)


def rows_follow_columns(view: TableView, *, as_of: str | None = None) -> bool:
    """Return whether each row of a view is in the partition of its columns; `as_of` as for `obeys_buckets`."""
    return partition_follows_columns(view.config) and not _is_before(view, indexes.COLUMNS_SINCE, as_of)


def obeys_index(view: TableView) -> bool:
    """Return whether no switch of the index leaves open where the rows of a view are."""
    return not (_is_before(view, indexes.BUCKETS_SINCE) or _is_before(view, indexes.COLUMNS_SINCE))


def _is_before(view: TableView, option: Option[str], as_of: str | None = None) -> bool:
    since = option.get(view.config.raw)
    if not since:
        return False
    if as_of is not None and as_of < since:
        return True
    return any(found.action.writes_data and view.order_time(found) <= since for found in view.completed_later)


def check_index_options(config: TableConfig, properties: Mapping[str, str]) -> None:
    """Refuse options of a call that differ from what the table's index stores. Raises: InvalidConfigError."""
    kind = stored_index(config)
    if kind is None:
        return
    for option in kind.own_options:
        if option.key in properties and option.get(properties) != option.get(config.raw):
            raise InvalidConfigError(
                f"{option.key}={properties[option.key]} is fixed when the table is created, because the index "
                f"{kind.name!r} depends on it: the table has {config.raw.get(option.key, option.default)!r}; omit the "
                "option, or write the rows to a new table"
            )


def _refuse_unnamed_buckets(view: TableView) -> None:
    """Refuse a table that stores no index, but whose file groups are those of a bucket index of JVM Hudi.

    The JVM's DataFrame writer gets the index with each write. Raises: UnsupportedError.
    """
    where = view.store.uri("")
    for instant in reversed(view.completed_writes()[-_COMMITS_ASKED:]):
        file_ids = [stat.file_id for stat in view.commit_metadata(instant).write_stats()]
        if looks_bucketed(file_ids):
            raise UnsupportedError(
                f"{where}: file group {file_ids[0]} belongs to a bucket index, which the table's properties do not "
                'name; store it with t.index.switch("bucket", buckets=…), or pass '
                f"{indexes.INDEX_TYPE_KEY}=BUCKET and {indexes.BUCKET_COUNT.key}=… to each write, as to JVM Hudi"
            )
        if file_ids:
            break
    if view.config.table_type is TableType.MERGE_ON_READ and has_consistent_hashing(view):
        refuse_consistent_hashing(where)


def index_of(view: TableView, properties: Mapping[str, str]) -> Index:
    """Return the index that serves a write; `properties` are the effective options.

    Raises: as `index_kind`; InvalidConfigError if the options require a record index that the table does not have, or
    an index other than the table's index, with which keys would not stay unique.
    """
    stored = index_of_view(view)
    asked = properties.get(indexes.INDEX_TYPE_KEY)
    kind = stored if asked is None else index_kind(asked)
    if kind is stored:
        if asked is None and kind is SIMPLE:
            _refuse_unnamed_buckets(view)
        return kind.make(view, properties)
    if indexes.INDEX_TYPE_KEY in view.config.raw or stored.is_global:
        raise InvalidConfigError(
            f"{indexes.INDEX_TYPE_KEY}={asked}: the table has the index {stored.name!r}; every write must "
            "use it, or keys would not stay unique; remove the option"
        )
    if not kind.exists_in(view):
        raise InvalidConfigError(
            f"{indexes.INDEX_TYPE_KEY}={asked}: the table has no record index of that "
            'kind; build it with t.index.build("record"), or remove the option'
        )
    return kind.make(view, properties)


def breaks_new_index(before: TableConfig, now: TableConfig) -> bool:
    """Return whether a write that began with the properties `before` may break what the index relies on now.

    The write may have put a key into a file group of another bucket, into a second partition although keys
    are unique in the whole table now, or into another partition than its columns have. A record index that was built
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


def partitions_to_add(view: TableView) -> tuple[PartitionKind, ...]:
    """Return the metadata partitions to add with the first commit of a table, because its index needs them.

    Nothing is added to a table that has writes: entries of its existing rows would be missing. An index build adds the
    partition to such a table.
    """
    if view.timeline.writes().instants or view.has_archived_instants():
        # Checked last: a table service works on a table whose index this release lacks.
        return ()
    wanted = table_index(view.config).metadata_partition
    if wanted is None or wanted.name in view.config.metadata_partitions:
        return ()
    return (wanted,)
