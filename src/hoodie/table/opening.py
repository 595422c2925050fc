"""Create, open and find tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hoodie.arguments import check_arguments
from hoodie.table.context import Session, Spark, Text
from hoodie.table.handle import Table

if TYPE_CHECKING:
    from hoodie.records.merging.mergers import MergeFunction
    from hoodie.write.lost_properties import RebuiltProperties


@check_arguments
def create(
    path: str | os.PathLike[str],
    schema: Any,
    *,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = (),
    ordering: str | Sequence[str] | None = None,
    type: str = "copy_on_write",
    index: str | None = None,
    name: str | None = None,
    table_version: int = 9,
    merge_mode: str | MergeFunction | None = None,
    key_generator: str | None = None,
    properties: Text | None = None,
    storage_options: Text | None = None,
    spark: Session = None,
    exist_ok: bool = False,
) -> Table:
    """Create a table and return its handle.

    Args:
        path: folder or URI (`s3://…`, `gs://…`, `az://…`, `memory://…`) of the table.
        schema: a pyarrow Schema, a Spark StructType, or an object with a schema: a DataFrame, a pyarrow Table.
        record_key: column or columns whose values identify a record; a dot selects a field of a struct. Without one,
            each inserted row gets an automatic key (docs/automatic-keys.md).
        partition_by: column or columns that form the partition path; `column:timestamp` with `key_generator="custom"`.
        ordering: column or columns; a greater value marks a newer version. Without them a later commit is newer.
            A null is 0 in a column of 32-bit integers, and lower than every value in others (docs/sql.md).
        type: `copy_on_write` or `cow` (a write creates new versions of the files that it changes), `merge_on_read` or
            `mor` (a write appends changes to log files; reads and compactions merge the log files with the base files).
        index: `record` (every key's location is in the metadata table; keys are unique in the table), `simple` (keys
            are unique in a partition), `global_simple` (keys are unique in the table), `bloom` or `global_bloom` (as
            these two, with bloom filters in the data files), `bucket` or `hbase`.
            The default is `record`, without a record key `simple`.
        name: name of the table; default is the last folder of the path.
        merge_mode: `event_time` (default with `ordering`), `commit_time`, or a function over Arrow tables.
        key_generator: `simple`, `complex`, `non_partition`, `timestamp`, `custom`; the default depends on the columns.
        properties: further `hoodie.*` options, as strings.
        storage_options: settings of the object store.
        spark: Spark session for reads. Default is the active session; with False reads run in this process.
        exist_ok: open an existing table instead of raising an error, unless it contradicts the options given here.

    Raises:
        TableExistsError, InvalidConfigError, SchemaMismatchError, UnsupportedError: before anything is created.

    >>> import hoodie, pyarrow as pa
    >>> trips = pa.schema([("id", pa.string()), ("fare", pa.float64()), ("city", pa.string())])
    >>> t = hoodie.create("memory://doc-create", trips, record_key="id", partition_by="city")
    >>> t.upsert(pa.table({"id": ["a", "b"], "fare": [1.0, 2.0], "city": ["sf", "nyc"]})).inserted
    2
    """
    from hoodie.files.table_properties import read_table_config, table_exists
    from hoodie.storage import open_store
    from hoodie.table.sessions import arrow_schema
    from hoodie.write.create import CreateOptions, check_same_table, create_table

    store = open_store(path, storage_options)
    wanted = CreateOptions(
        record_key=record_key,
        partition_by=partition_by,
        ordering=ordering,
        type=type,
        index=index,
        name=name,
        table_version=table_version,
        merge_mode=merge_mode,
        key_generator=key_generator,
        properties=properties or {},
    )
    if exist_ok and table_exists(store):
        check_same_table(read_table_config(store), wanted)
    else:
        create_table(store, arrow_schema(schema), wanted)
    return Table(store, spark=spark)


@check_arguments
def open(
    path: str | os.PathLike[str],
    *,
    storage_options: Text | None = None,
    spark: Session = None,
    lock: Text | None = None,
) -> Table:
    """Open a table of any writer; table versions 6, 8 and 9 can be read, version 9 can be written.

    `lock`: options `hoodie.write.lock.*` of all operations of this handle, where the other writers have them in their
    own options; better they are properties of the table (docs/operations/locks.md).

    Raises: TableNotFoundError, CorruptFileError, UnsupportedError, InvalidConfigError.
    """
    from hoodie.storage import open_store

    table = Table(open_store(path, storage_options), spark=spark, lock=lock)
    table.view()
    return table


@check_arguments
def rebuild_properties(
    path: str | os.PathLike[str],
    *,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    index: str | None = None,
    name: str | None = None,
    properties: Text | None = None,
    dry_run: bool = True,
    storage_options: Text | None = None,
) -> RebuiltProperties:
    """Write a lost `hoodie.properties` from what the table's files tell; by default only say what would be written.

    The notes of the result say what was found where, what is a guess, and what must be given. Arguments are as for
    `create`: None for what is not known, an empty list for no such columns. `properties` win over what is found. See
    `hoodie.write.lost_properties`.

    Raises: TableNotFoundError, TableExistsError, InvalidConfigError, UnsupportedError: nothing is written then.

    >>> import hoodie, pyarrow as pa
    >>> t = hoodie.create("memory://doc-rebuild", {"id": ["a"], "x": [1]}, record_key="id")
    >>> written = t.upsert({"id": ["a", "b"], "x": [1, 2]})
    >>> t.view().store.delete(".hoodie/hoodie.properties")
    >>> hoodie.rebuild_properties("memory://doc-rebuild", ordering=[], dry_run=False).missing
    ()
    >>> hoodie.open("memory://doc-rebuild").verify(full=True).ok
    True
    """
    from hoodie.storage import open_store
    from hoodie.write.create import CreateOptions
    from hoodie.write.lost_properties import rebuild_properties as rebuild

    given = CreateOptions(
        record_key=record_key,
        partition_by=partition_by,
        ordering=ordering,
        index=index,
        name=name,
        properties=properties or {},
    )
    return rebuild(open_store(path, storage_options), given, dry_run=dry_run)


@check_arguments
def exists(path: str | os.PathLike[str], *, storage_options: Text | None = None) -> bool:
    """Check whether the path holds a Hudi table."""
    from hoodie.files.table_properties import table_exists
    from hoodie.storage import open_store

    return table_exists(open_store(path, storage_options))


@check_arguments
def register(spark: Spark) -> None:
    """Let `spark.read` and `df.write` of this session serve `format("hoodie")` and `format("hudi")` at native speed.

    Loads return what `Table.read`, `Table.changes` or `Table.read_keys` return, saves do what the methods of `Table`
    do, all modes and PySpark 3.5 too; errors are `HoodieError`. Other formats and other sessions are not changed. With
    a JAR of JVM Hudi in the session, the JAR serves `hudi`. docs/data-source.md.

    Warns: `HoodieWarning` if there is such a JAR.
    """
    from hoodie.table.sessions import spark_room

    spark_room().register(spark)


@check_arguments
def unregister(spark: Spark) -> None:
    """Undo `register`. The data sources of the session stay."""
    from hoodie.table.sessions import spark_room

    spark_room().unregister(spark)
