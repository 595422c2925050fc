"""`table.index`: build, drop, check and compare the indexes of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hoodie.arguments import check_methods
from hoodie.commit.call import Call, Wait
from hoodie.config.known import hint
from hoodie.engine import Engine
from hoodie.engine.inputs import with_types
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.index import HBASE, INDEXES, RECORD, IndexKind, index_kind, stored_index
from hoodie.metadata.kinds.registry import KINDS
from hoodie.read.times import When, completion_of
from hoodie.results import Report, ServiceResult
from hoodie.services.indexing.change import SwitchWish, switch_index
from hoodie.services.indexing.file_builds import build_partition, drop_partition, verify_partition
from hoodie.services.indexing.hbase import build_hbase_index, drop_hbase_index, verify_hbase_index
from hoodie.services.indexing.rebuild import rebuild
from hoodie.services.indexing.record_builds import build_record_index
from hoodie.services.indexing.switch import drop_record_index
from hoodie.services.indexing.verify import verify_changes, verify_record_index
from hoodie.table.sessions import engine_and_dataset
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from hoodie.write.index_compare import check_comparable, compare_batch


@check_methods
class TableIndex:
    """A handle of the indexes of one table. Creating it is cheap. Every call reads the newest commit."""

    def __init__(self, state: TableState, engine: Callable[[], Engine]) -> None:
        """Create a handle; `engine` returns the engine for large work."""
        self._state = state
        self._engine = engine

    def build(
        self,
        name: str = "record",
        *,
        buckets: int | None = None,
        columns: Sequence[str] | None = None,
        properties: Mapping[str, str] | None = None,
        wait_seconds: float = 600.0,
    ) -> ServiceResult:
        """Build the record index, or the column statistics, of a table with rows. Writers can run during the build.

        `"hbase"` fills the HBase index and makes it the index of the table; `properties` are its options. See
        `services.indexing.hbase.build_hbase_index`.

        `"column_stats"` or `"partition_stats"` builds both statistics anew; `columns` have them, by default those of
        the table's options or the first 32. See `services.indexing.file_builds.build_partition`. `"bloom_filters"`
        copies the bloom filters of the base files into the metadata table. The rest is about the record index.

        The rows can have been written by any engine. `buckets`: number of index file groups. The default is one for
        each million keys, with room for growth; keys are counted in the Parquet footers. An existing index is kept,
        unless `buckets` differs from its number of file groups. In that case a new index is built beside the old index.
        After a crash, call `build` again to continue the build. When the build is complete, the index is switched on:
        the table finds records by it (unless the table stores another index type), and the table properties make JVM
        writers maintain it. `wait_seconds`: how long the build waits for JVM writes that began before it.

        Raises: as `hoodie.services.indexing.record_builds.build_record_index`; InvalidConfigError for an unknown index,
        and for an argument of another one; SchemaMismatchError for a column without statistics.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-index-build", rows.schema, record_key="id", index="simple")
        >>> written = t.upsert(rows)
        >>> t.index.build("record").counts["entries"]
        2
        """
        call = self._call(wait_seconds)
        kind = _built_index(name)
        if properties and kind is not HBASE:
            raise InvalidConfigError(f"properties= of t.index.build are options of the HBase index, not of {name!r}")
        if buckets is not None and kind is not RECORD:
            raise InvalidConfigError(f"buckets= of t.index.build is for the record index, not for {name!r}")
        if kind is None:
            return build_partition(call, name, columns=columns)
        if columns is not None:
            raise InvalidConfigError(f"columns= of t.index.build is for column statistics, not for the index {name!r}")
        return build_hbase_index(call, properties or {}) if kind is HBASE else build_record_index(call, buckets=buckets)

    def drop(self, name: str = "record") -> ServiceResult:
        """Drop the record index, or give up the HBase index; the table then finds records by `global_simple`.

        See `services.indexing.switch`, and `services.indexing.hbase.drop_hbase_index`.

        `"column_stats"` drops the statistics of files and partitions, `"partition_stats"` those of partitions.
        `"bloom_filters"` drops that partition; the filters in the data files stay.

        Raises: UnsupportedError if the JVM is building an index; CommitConflictError if a build is running;
            InvalidConfigError for an unknown index.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-index-drop", {"id": ["a"]}, record_key="id")
        >>> written = t.upsert({"id": ["a"]})
        >>> dropped = t.index.drop("record")
        >>> t.upsert({"id": ["a"]}).updated  # the key columns of the files are searched
        1
        """
        kind = _built_index(name)
        if kind is None:
            return drop_partition(self._state, name)
        return drop_hbase_index(self._state) if kind is HBASE else drop_record_index(self._state)

    def switch(
        self,
        name: str,
        *,
        buckets: int | None = None,
        hash_field: str | None = None,
        key_keeps_partition: bool = False,
        dry_run: bool = False,
        wait_seconds: float = 600.0,
    ) -> ServiceResult:
        """Switch the table to another index, after a check of the data that keys stay unique. Writers can run.

        The new index is stored in the table's properties, which JVM writers obey. A record index is built first; the
        record index of a table that switches to another index is dropped. `buckets` and `hash_field`: for `bucket`,
        which the file groups must obey already. `key_keeps_partition`: pass True to leave an index of the whole table
        for one of single partitions if no later row gives a stored key another partition; it is not needed if the
        partition columns are part of the record key. `dry_run`: only check. `wait_seconds`: as for `build`.

        Raises: as `hoodie.services.indexing.change.switch_index`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-index-switch", rows.schema, record_key="id", index="simple")
        >>> written = t.upsert(rows)
        >>> t.index.switch("global_simple").notes
        ("the index is 'global_simple' now; it was 'simple'",)
        """
        call = self._call(wait_seconds)
        wish = SwitchWish(
            name=name, buckets=buckets, hash_field=hash_field, key_keeps_partition=key_keeps_partition, dry_run=dry_run
        )
        return switch_index(call, wish)

    def rebuild(self, *, wait_seconds: float = 600.0) -> ServiceResult:
        """Delete the metadata table and build it anew, with the record index if the table has or requires one.

        Call it if the metadata table is damaged. Nothing is lost: it is derived from the data. Writers can run
        meanwhile; readers list the storage until it is built. `wait_seconds`: as for `build`.

        Raises: as `hoodie.services.indexing.rebuild.rebuild`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-index-rebuild", rows.schema, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.index.rebuild().counts["partitions"]
        2
        """
        return rebuild(self._call(wait_seconds))

    def verify(self, name: str | None = None) -> Report:
        """Check the record index, the HBase index, `"column_stats"` or `"bloom_filters"`, beside writers.

        By default the index of the table is checked: the HBase index if it has one, else the record index.

        Every record key must have an entry, and every entry must have a record. An index that another writer dropped
        is a problem too.

        Raises: as `hoodie.services.indexing.verify.verify_record_index`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-index-verify", rows.schema, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.index.verify().ok
        True
        """
        if name is None:
            name = HBASE.name if stored_index(self._state.read_config()) is HBASE else RECORD.name
        kind = _built_index(name)
        if kind is None:
            return verify_partition(self._call(), name)
        verify = verify_hbase_index if kind is HBASE else verify_record_index
        return verify(self._state, self._call().engine_for)

    def compare(
        self, first: str = "record", second: str = "simple", *, data: Any = None, since: When | None = None
    ) -> Report:
        """Compare the results of two indexes and report every difference.

        Nothing is written. Writers can run during the comparison. Pass either `data` or `since`.

        `data`: a batch with the key columns, as for `delete`. Both indexes look up the locations of its keys; `simple`
        and `bloom` search the whole table; `bucket` is compared where the other index finds a key. `since`: an instant
        or time. The index entries of the commits that completed after it are compared with the record index. A script
        can call this at intervals.

        Raises: InvalidConfigError unless exactly one of `data` and `since` is given, or if the table has no record
        index.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-index-compare", rows.schema, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.index.compare("record", "simple", data=rows).ok
        True
        """
        names = check_comparable((first, second))
        if (data is None) == (since is None):
            raise InvalidConfigError("compare needs either data= (a batch to look up) or since= (commits to check)")
        if since is None:
            engine, dataset = engine_and_dataset(data)
            return compare_batch(Call(state=self._state, engine=engine), with_types(dataset), names)
        if RECORD.name not in names:
            raise InvalidConfigError(f"since= checks the record index: expected 'record' as an index, found {names}")
        return verify_changes(self._state, completion_of(TableView.load(self._state), since), self._call().engine_for)

    def _call(self, wait_seconds: float = 600.0) -> Call:
        return Call(state=self._state, engine=self._engine(), wait=Wait(wait_seconds))


def _built_index(name: str) -> IndexKind | None:
    """Return the index that a build makes: record or HBase; None for a metadata partition that is built from files."""
    if KINDS.builder(name) is not None:
        return None
    known = (RECORD.name, HBASE.name, *sorted(KINDS.with_followers([kind.name for kind in KINDS.built])))
    lower = name.strip().lower()
    if all(lower not in kind.names for kind in INDEXES):
        raise InvalidConfigError(f"index={name!r}: expected one of {', '.join(known)}{hint(lower, known)}")
    kind = index_kind(name)
    if kind not in (RECORD, HBASE):
        raise UnsupportedError(
            f"index={name!r}: only {', '.join(known)} can be built or dropped; other indexes read the data files"
        )
    return kind
