"""The writes of a table handle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hoodie.arguments import check_methods
from hoodie.table.context import Assignments, Partitions, TableContext, Text, Where

if TYPE_CHECKING:
    from hoodie.table.merge import TableMerger
    from hoodie.write.result import WriteResult


@check_methods
class TableWrites:
    """The methods of `Table` that change rows."""

    _context: TableContext

    def upsert(
        self,
        data: Any,
        *,
        partial: bool = False,
        schema: str | None = None,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> WriteResult:
        """Insert rows with new keys, and merge rows with known keys by the table's merge rule.

        Args:
            data: a Spark DataFrame (Spark then does the work), a pyarrow Table, RecordBatch, RecordBatchReader, Dataset
                or Scanner, a pandas or Polars DataFrame, a Polars LazyFrame, a list of dicts, a dict of lists, or an
                object with `__arrow_c_stream__`.
            partial: the data may lack columns of the table. Stored rows keep the values of these columns; in rows with
                new keys they are null. The data has the columns of the record key, of the partition path and of the
                ordering, no columns that the table lacks, and one row for each key.
            schema: the changes of the table's schema that the data may make: `strict`, `typed` or `add_columns`; None:
                those of the option `hoodie.python.schema.evolution`.
            extra_metadata: text by name, stored in the commit (`extraMetadata`).
            properties: `hoodie.*` options of this call (docs/options.md); they take precedence over those of the table.

        Raises: all are `HoodieError`; nothing is committed, unless the message calls the outcome unknown.
            SchemaMismatchError: columns or values that do not fit the table.
            RecordKeyError: null, empty or missing record keys.
            PartitionPathError: partition values that cannot be a folder.
            UnsupportedError: data of another type, a table that this release does not write, or an option's value.
            InvalidConfigError: an unknown option, or an option that is fixed when the table is created.
            CommitConflictError: another writer changed the same file groups, or rolled this write back: try again.
            LockTimeoutError: another process holds the table's lock.
            CorruptFileError, MissingFileError: a file of the table is damaged or missing.
            StorageError: the storage refused a call.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"], "fare": [1.0, 2.0]})
        >>> t = hoodie.create("memory://doc-upsert", rows, record_key="id", partition_by="city")
        >>> t.upsert(rows).inserted
        2
        >>> result = t.upsert([{"id": "b", "city": "nyc", "fare": 3.0}, {"id": "c", "city": "sf", "fare": 4.0}])
        >>> result.inserted, result.updated
        (1, 1)
        >>> t.upsert([{"id": "b", "city": "nyc"}, {"id": "d", "city": "sf"}], partial=True).updated
        1
        >>> t.to_arrow(columns=["fare"], where="id in ('b', 'd')").to_pylist()
        [{'fare': 3.0}, {'fare': None}]
        """
        from hoodie.write.indexed import upsert

        if partial:
            from hoodie.merge_into.plan import plan_partial_upsert
            from hoodie.merge_into.run import check_partial
            from hoodie.table.merge import execute

            check_partial(data, schema)
            plan = plan_partial_upsert
            return execute(self._context, data, plan, extra_metadata=extra_metadata, properties=properties)
        call, dataset = self._context.write_call(data, extra_metadata, properties, schema)
        return upsert(call, dataset)

    def insert(
        self,
        data: Any,
        *,
        schema: str | None = None,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> WriteResult:
        """Add rows without looking up their keys; small file groups are filled first.

        In a table with a record index, known keys of few rows are counted in a note. The option
        `hoodie.datasource.insert.dup.policy` ignores such rows, or refuses the write.

        Args:
            data: a Spark DataFrame (Spark then does the work), a pyarrow Table, RecordBatch, RecordBatchReader, Dataset
                or Scanner, a pandas or Polars DataFrame, a Polars LazyFrame, a list of dicts, a dict of lists, or an
                object with `__arrow_c_stream__`.
            schema: the changes of the table's schema that the data may make: `strict`, `typed` or `add_columns`; None:
                those of the option `hoodie.python.schema.evolution`.
            extra_metadata: text by name, stored in the commit (`extraMetadata`).
            properties: `hoodie.*` options of this call (docs/options.md); they take precedence over those of the table.

        Raises: as `upsert`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"], "fare": [1.0, 2.0]})
        >>> t = hoodie.create("memory://doc-insert", rows, record_key="id", partition_by="city")
        >>> t.insert({"id": ["c"], "city": ["sf"], "fare": [5.0]}).inserted
        1
        """
        from hoodie.write.indexed import insert

        call, dataset = self._context.write_call(data, extra_metadata, properties, schema)
        return insert(call, dataset)

    def bulk_insert(
        self,
        data: Any,
        sort: str | Sequence[str] | None = None,
        *,
        distribution: str = "auto",
        schema: str | None = None,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> WriteResult:
        """Write all rows to new files in one pass; no keys are looked up, and no rows are merged.

        Args:
            data: a Spark DataFrame (Spark then does the work), a pyarrow Table, RecordBatch, RecordBatchReader, Dataset
                or Scanner, a pandas or Polars DataFrame, a Polars LazyFrame, a list of dicts, a dict of lists, or an
                object with `__arrow_c_stream__`.
            sort: `none` (default), `partition` (by partition path), `global` (by partition path and record key), or the
                columns to sort by within partitions.
            distribution: which rows come to one file, without a sort. `partition`: those of a partition come together,
                in files of the wanted size (`hoodie.parquet.max.file.size`), by a second step on staged rows. `none`:
                each task of the data writes its own files, a file for each partition that it has. `auto`: as
                `partition`, but tasks with many rows of one partition write them at once.
            schema: the changes of the table's schema that the data may make: `strict`, `typed` or `add_columns`; None:
                those of the option `hoodie.python.schema.evolution`.
            extra_metadata: text by name, stored in the commit (`extraMetadata`).
            properties: `hoodie.*` options of this call (docs/options.md); they take precedence over those of the table.

        Raises: as `upsert`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"], "fare": [1.0, 2.0]})
        >>> t = hoodie.create("memory://doc-bulk-insert", rows, record_key="id", partition_by="city")
        >>> t.bulk_insert(rows, sort=["fare"]).inserted
        2
        """
        from hoodie.write.bulk_insert import bulk_insert

        call, dataset = self._context.write_call(data, extra_metadata, properties, schema)
        return bulk_insert(call, dataset, sort, distribution)

    def delete(
        self, data_or_keys: Any, *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Delete the records with these keys, whatever their ordering values; unknown keys change nothing.

        Args:
            data_or_keys: keys in the same forms as for `read_keys`: a value, a list, set, array or Series of values, or
                data with the key columns. If the index is not global, data of a partitioned table must also have the
                partition columns.
            extra_metadata: text by name, stored in the commit (`extraMetadata`).
            properties: `hoodie.*` options of this call (docs/options.md); they take precedence over those of the table.

        Raises: as `upsert`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"], "fare": [1.0, 2.0]})
        >>> t = hoodie.create("memory://doc-delete", rows, record_key="id", partition_by="city")
        >>> t.upsert(rows).inserted
        2
        >>> result = t.delete(["a", "unknown"])
        >>> result.deleted, result.ignored
        (1, 1)
        """
        from hoodie.engine.inputs import with_types
        from hoodie.write.indexed import delete

        call, dataset = self._context.write_call(self._context.keys(data_or_keys), extra_metadata, properties)
        return delete(call, with_types(dataset))

    def delete_where(
        self, where: Where, *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Delete the records that match a condition.

        The matching keys are held in memory, unless Spark reads them. Inserts can store several rows with one key. If
        one of these rows matches, all of them are deleted.

        Args:
            where: condition in Spark SQL, or an expression of pyarrow or Polars that SQL can say.
            extra_metadata: text by name, stored in the commit (`extraMetadata`).
            properties: `hoodie.*` options of this call (docs/options.md); they take precedence over those of the table.

        Raises: as `upsert`, and
            SchemaMismatchError: a condition on unknown columns, or that compares values of other types.
            UnsupportedError: a condition that this process cannot evaluate.
            InvalidConfigError: a condition that is no SQL.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"], "fare": [1.0, 2.0]})
        >>> t = hoodie.create("memory://doc-delete-where", rows, record_key="id", partition_by="city")
        >>> t.upsert(rows).inserted
        2
        >>> t.delete_where("fare > 1.5").deleted
        1
        """
        condition = self._context.condition(where, session=self._context.session())
        assert condition is not None
        return self._context.computed_write(extra_metadata, properties).delete_where(condition, self._context.result)

    def delete_partitions(
        self, partitions: Partitions, *, extra_metadata: Text | None = None, properties: Text | None = None
    ) -> WriteResult:
        """Remove whole partitions from the table.

        Args:
            partitions: partition paths, such as `["city=sf"]`, or values of the partition columns, such as
                `[{"city": "sf"}]`.
            extra_metadata: text by name, stored in the commit (`extraMetadata`).
            properties: `hoodie.*` options of this call (docs/options.md); they take precedence over those of the table.

        Raises: as `upsert`; InvalidConfigError too for an empty list or partitions that the table does not have.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"], "fare": [1.0, 2.0]})
        >>> t = hoodie.create("memory://doc-delete-partitions", rows, record_key="id", partition_by="city")
        >>> t.upsert(rows).inserted
        2
        >>> t.delete_partitions(["city=sf"]).deleted
        1
        """
        from hoodie.commit.call import Call
        from hoodie.write.delete_partitions import delete_partitions

        state = self._context.state.for_call(properties)
        call = Call(state=state, extra_metadata=extra_metadata or {}, properties=properties or {})
        return delete_partitions(call, self._context.partition_paths(partitions, properties))

    def insert_overwrite(
        self,
        data: Any,
        *,
        partitions: Partitions = (),
        distribution: str = "auto",
        schema: str | None = None,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> WriteResult:
        """Replace every partition that has rows in the data; the data becomes its content.

        Args:
            data: a Spark DataFrame (Spark then does the work), a pyarrow Table, RecordBatch, RecordBatchReader, Dataset
                or Scanner, a pandas or Polars DataFrame, a Polars LazyFrame, a list of dicts, a dict of lists, or an
                object with `__arrow_c_stream__`.
            partitions: partitions to replace even if the data has no row of them: paths, such as `["city=sf"]`, or
                values of the partition columns, such as `[{"city": "sf"}]`.
            distribution: which rows come to one file: `none`, `partition` or `auto`; see `bulk_insert`.
            schema: the changes of the table's schema that the data may make: `strict`, `typed` or `add_columns`; None:
                those of the option `hoodie.python.schema.evolution`.
            extra_metadata: text by name, stored in the commit (`extraMetadata`).
            properties: `hoodie.*` options of this call (docs/options.md); they take precedence over those of the table.

        Raises: as `upsert`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"], "fare": [1.0, 2.0]})
        >>> t = hoodie.create("memory://doc-insert-overwrite", rows, record_key="id", partition_by="city")
        >>> t.upsert(rows).inserted
        2
        >>> result = t.insert_overwrite([{"id": "z", "city": "sf", "fare": 9.0}])
        >>> result.inserted, result.deleted
        (1, 1)
        """
        from hoodie.write.bulk_insert import insert_overwrite

        call, dataset = self._context.write_call(data, extra_metadata, properties, schema)
        paths = self._context.partition_paths(partitions, properties)
        return insert_overwrite(call, dataset, partitions=paths, distribution=distribution)

    def insert_overwrite_table(
        self,
        data: Any,
        *,
        distribution: str = "auto",
        schema: str | None = None,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> WriteResult:
        """Replace the whole table with the data.

        Args:
            data: a Spark DataFrame (Spark then does the work), a pyarrow Table, RecordBatch, RecordBatchReader, Dataset
                or Scanner, a pandas or Polars DataFrame, a Polars LazyFrame, a list of dicts, a dict of lists, or an
                object with `__arrow_c_stream__`.
            distribution: which rows come to one file: `none`, `partition` or `auto`; see `bulk_insert`.
            schema: the changes of the table's schema that the data may make: `strict`, `typed` or `add_columns`; None:
                those of the option `hoodie.python.schema.evolution`.
            extra_metadata: text by name, stored in the commit (`extraMetadata`).
            properties: `hoodie.*` options of this call (docs/options.md); they take precedence over those of the table.

        Raises: as `upsert`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"], "fare": [1.0, 2.0]})
        >>> t = hoodie.create("memory://doc-overwrite-table", rows, record_key="id", partition_by="city")
        >>> t.upsert(rows).inserted
        2
        >>> result = t.insert_overwrite_table(rows.slice(1))
        >>> result.inserted, result.deleted
        (1, 2)
        """
        from hoodie.write.bulk_insert import insert_overwrite

        call, dataset = self._context.write_call(data, extra_metadata, properties, schema)
        return insert_overwrite(call, dataset, whole_table=True, distribution=distribution)

    def update(
        self,
        assignments: Assignments,
        where: Where | None = None,
        *,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> WriteResult:
        """Set columns to Spark SQL expressions in the records that match a condition; without one, in all records.

        Without Spark the matching rows are held in memory. Inserts can store several rows with one key. If one of these
        rows matches, all of them are updated. A merge-on-read table that merges by commit time and has no record index
        logs the changed columns only.

        Args:
            assignments: an expression for each column to set; the case of column names does not matter. Numbers, truth
                values and None stand for themselves.
            where: condition in Spark SQL, or an expression of pyarrow or Polars that SQL can say.
            extra_metadata: text by name, stored in the commit (`extraMetadata`).
            properties: `hoodie.*` options of this call (docs/options.md); they take precedence over those of the table.

        Raises: as `upsert`, and
            UnsupportedError: expressions that this process cannot evaluate.
            InvalidConfigError: columns of the record key or the partition path, or text that is no SQL.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"], "fare": [1.0, 2.0]})
        >>> t = hoodie.create("memory://doc-update", rows, record_key="id", partition_by="city")
        >>> t.upsert(rows).inserted
        2
        >>> t.update({"fare": "fare * 2"}, where="city = 'sf'").updated
        1
        """
        session = self._context.session()
        clock = self._context.clock(session)
        condition = self._context.condition(where, session=session, clock=clock)
        write = self._context.computed_write(extra_metadata, properties)
        return write.update(assignments, condition, self._context.assigned, clock)

    def merge(
        self,
        source: Any,
        on: str | Sequence[str],
        *,
        target_alias: str = "t",
        source_alias: str = "s",
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> TableMerger:
        """Begin a merge of source rows into the table; clauses follow, and `execute()` commits it.

        The changed rows are written as an upsert writes them: with event-time ordering a row with a lower ordering
        value than the stored row changes nothing, and deletes apply regardless of ordering values. Without a Spark
        DataFrame the source and the stored rows that it matches are held in memory, and the index or the keys in the
        files determine the files to read. With a DataFrame Spark joins it with the table, unless the merge updates and
        inserts all rows: that is an upsert.

        Args:
            source: data in the forms of `upsert`. At most one row may change a record.
            on: equalities of a column of the table and one of the source, joined by AND, in Spark SQL: `t.id = s.id`.
                A column's name alone, or a list of names, compares the columns of that name on both sides. By other
                columns than those that name a record, the whole table is read. In a table with automatic keys any
                condition; inserted rows get new keys there.
            target_alias: the name of the table in expressions.
            source_alias: the name of the source in expressions.
            extra_metadata: text by name, stored in the commit (`extraMetadata`).
            properties: `hoodie.*` options of this call (docs/options.md); they take precedence over those of the table.

        Raises: as `TableMerger.execute`, which reads and writes; this call only begins the merge.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "fare": [1.0, 2.0]})
        >>> t = hoodie.create("memory://doc-merge", rows, record_key="id")
        >>> written = t.upsert(rows)
        >>> source = [{"id": "a", "fare": 5.0}, {"id": "b", "fare": -1.0}, {"id": "c", "fare": 3.0}]
        >>> merge = t.merge(source, on="t.id = s.id").when_matched_delete("s.fare < 0")
        >>> merge = merge.when_matched_update({"fare": "t.fare + s.fare"}).when_not_matched_insert_all()
        >>> result = merge.execute()
        >>> result.inserted, result.updated, result.deleted
        (1, 1, 1)
        >>> sorted(t.to_arrow(columns=["id", "fare"]).to_pylist(), key=lambda row: row["id"])
        [{'id': 'a', 'fare': 6.0}, {'id': 'c', 'fare': 3.0}]
        """
        from hoodie.merge_into.clauses import Merge
        from hoodie.records.sql.quoting import quoted
        from hoodie.table.merge import TableMerger

        if not isinstance(on, str):
            on = " AND ".join(map(quoted, on))
        merge = Merge(on=on, clauses=(), target=target_alias, source=source_alias)
        return TableMerger(self._context, source, merge, extra_metadata=extra_metadata, properties=properties)
