"""Create, open and find tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hoodie.arguments import check_arguments
from hoodie.table.context import Session, Spark, Text
from hoodie.table.handle import Table

if TYPE_CHECKING:
    from hoodie.records.merging.mergers import MergeFunction
    from hoodie.write.adopting.result import Adoption
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
    table_version: int | None = None,
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
        table_version: 9 (default), 8 for readers and writers of Hudi 1.0, or 6 for those of Hudi 0.14 and 0.15.
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
        return Table(store, spark=spark)
    created = create_table(store, arrow_schema(schema), wanted)
    table = Table(store, spark=spark)
    table._context.state.note_created(created)
    return table


@check_arguments
def open(
    path: str | os.PathLike[str],
    *,
    storage_options: Text | None = None,
    spark: Session = None,
    lock: Text | None = None,
) -> Table:
    """Open a table of any writer; table versions 6, 8 and 9 are read and written.

    `lock`: options `hoodie.write.lock.*` of all operations of this handle, where the other writers have them in their
    own options; better they are properties of the table (docs/operations/locks.md).

    Raises:
        TableNotFoundError: the path has no table, or the table lost its properties.
        UnsupportedError: a table of another version.
        CorruptFileError: the properties or the timeline are damaged.
        InvalidConfigError: an unknown storage option, or a wrong option of the lock.
        StorageError: the storage refused a call.

    >>> import hoodie
    >>> created = hoodie.create("memory://doc-open", {"id": ["a"], "x": [1]}, record_key="id")
    >>> hoodie.open("memory://doc-open").schema.names
    ['id', 'x']
    """
    from hoodie.storage import asking_ahead, open_store
    from hoodie.view.ahead import ask_for_new_handle

    table = Table(open_store(path, storage_options), spark=spark, lock=lock)
    with asking_ahead():
        ask_for_new_handle(table._context.state)
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
    """Rebuild a lost `hoodie.properties` from the table's files; by default only return its new content.

    The notes of the result list what was found where, what is a guess, and what must be given. Arguments are as for
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
def adopt(
    path: str | os.PathLike[str] | None = None,
    target: str | os.PathLike[str] | None = None,
    *,
    files: Sequence[str] | None = None,
    partition_values: Mapping[str, Any] | None = None,
    record_key: str | Sequence[str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    ordering: str | Sequence[str] | None = None,
    type: str = "copy_on_write",
    index: str | None = None,
    name: str | None = None,
    table_version: int | None = None,
    merge_mode: str | MergeFunction | None = None,
    key_generator: str | None = None,
    mode: str | Mapping[str, str] = "rewrite",
    duplicates: str = "error",
    properties: Text | None = None,
    dry_run: bool = True,
    storage_options: Text | None = None,
    source_storage_options: Text | None = None,
) -> Adoption:
    """Make a Hudi table of Parquet files; by default only say what would be done.

    The key and partition columns of all rows are read before anything is written. The plan has the files, rows, bytes,
    the unified schema, rows by partition, duplicates of keys, and what is refused and why. A rewrite is one commit: if
    it dies, the same call begins again; after a success the same call does nothing. Rows are read in batches. Memory:
    as `bulk_insert`, and up to 256 MiB for the hashes of keys.

    Args:
        path: folder with the files. Folders named `column=value` give the files this column; names that begin with `_`
            or `.` are skipped. Folders of Delta, Iceberg and Hudi tables are refused: pass the `files` of these.
        target: folder of the new table, apart from the files; a dry run does not need it.
        files: paths or URIs of Parquet files instead of a folder, as of `DeltaTable.file_uris()` or an Iceberg scan,
            without percent-encoding. Deletion vectors and delete files of such tables are not applied.
        partition_values: for `files`: values by column for each file; `{}` if no folder's name gives a column.
        record_key, ordering, type, index, name, table_version, merge_mode, key_generator, properties: as for `create`.
        partition_by: as for `create`; default: the columns of the folders' names. An empty list: no partitions.
        mode: `rewrite`: the rows are written to files of the wanted size (`hoodie.parquet.max.file.size`).
            `metadata_only`: the rows stay in the source files, and the table has a skeleton file with keys for each, as
            JVM Hudi's metadata-only bootstrap (docs/adopt.md). The default index then is `simple`. A dict has modes by
            partition path; `*` is the mode of all others, by default `rewrite`.
        duplicates: `error`: several rows of one key are an error. `merge` (mode `rewrite`): such rows become one row by
            the table's merge rule: the row with the greatest ordering value, without `ordering` the last row in the
            order of the files. Then the rows are upserted, which costs more than a bulk insert; `write.duplicates` is
            the number of rows that were merged away.
        dry_run: with False the table is written.
        storage_options: settings of the object store of the target, and of the files.
        source_storage_options: settings of the object store of the files, if they differ.

    Raises:
        InvalidConfigError: files or rows are refused, a target is missing, or an option contradicts another.
        RecordKeyError: several rows have one key, and `duplicates` is `error`.
        TableExistsError: the target is a table with other rows.
        SchemaMismatchError, PartitionPathError, CorruptFileError, StorageError, UnsupportedError: as `create` and
            `Table.bulk_insert`. Nothing is committed after any error.

    >>> import hoodie, pyarrow as pa, pyarrow.dataset as ds, tempfile
    >>> trips = pa.table({"id": ["a", "b", "c"], "city": ["sf", "sf", "nyc"], "fare": [1.0, 2.0, 3.0]})
    >>> raw = tempfile.mkdtemp()
    >>> ds.write_dataset(trips, raw, format="parquet", partitioning=["city"], partitioning_flavor="hive")
    >>> plan = hoodie.adopt(raw, record_key="id")
    >>> plan.rows, plan.partitions, plan.duplicates
    (3, {'city=nyc': 1, 'city=sf': 2}, 0)
    >>> hoodie.adopt(raw, "memory://doc-adopt", record_key="id", dry_run=False).write.inserted
    3
    """
    from hoodie.errors import InvalidConfigError
    from hoodie.storage import open_store
    from hoodie.write.adopting.adoption import AdoptOptions
    from hoodie.write.adopting.adoption import adopt as adopt_found
    from hoodie.write.adopting.source_files import find_in_folder, find_listed
    from hoodie.write.create import CreateOptions

    if (path is None) == (files is None):
        raise InvalidConfigError(
            "expected a folder, or files=[…] of Parquet files with target= for the new table: pass one of the two"
        )
    if path is not None and partition_values is not None:
        raise InvalidConfigError("partition_values requires files=[…]: the values of a folder's files are in its names")
    options = storage_options if source_storage_options is None else source_storage_options
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
    if path is not None:
        found = find_in_folder(open_store(path, options))
    else:
        found = find_listed(files or (), partition_values, options)
    store = None if target is None else open_store(target, storage_options)
    return adopt_found(found, store, AdoptOptions(wanted=wanted, mode=mode, duplicates=duplicates, dry_run=dry_run))


@check_arguments
def exists(path: str | os.PathLike[str], *, storage_options: Text | None = None) -> bool:
    """Check whether the path holds a Hudi table.

    Raises: InvalidConfigError for an unknown scheme or storage option; StorageError if the storage refused a call.

    >>> import hoodie
    >>> hoodie.exists("memory://doc-exists")
    False
    >>> created = hoodie.create("memory://doc-exists", {"id": ["a"]}, record_key="id")
    >>> hoodie.exists("memory://doc-exists")
    True
    """
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

    Raises: InvalidConfigError if `spark` is not a Spark session.

    For example `hoodie.register(spark)`, then `spark.read.format("hudi").load("/data/trips").show()`.
    """
    from hoodie.table.sessions import spark_room

    spark_room().register(spark)


@check_arguments
def unregister(spark: Spark) -> None:
    """Undo `register`. The data sources of the session stay.

    Raises: InvalidConfigError if `spark` is not a Spark session.

    For example `hoodie.unregister(spark)`.
    """
    from hoodie.table.sessions import spark_room

    spark_room().unregister(spark)
