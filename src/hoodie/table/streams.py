"""The writes of streams: micro-batches, each of them once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hoodie.arguments import check_methods
from hoodie.table.context import TableContext, Text, with_schema

if TYPE_CHECKING:
    from hoodie.write.result import WriteResult


@check_methods
class TableStreams:
    """The methods of `Table` that write batches of streams."""

    _context: TableContext

    def stream(
        self,
        df: Any,
        operation: str = "upsert",
        *,
        checkpoint: str | None = None,
        trigger: dict[str, Any] | None = None,
        name: str | None = None,
        identifier: str | None = None,
        output_mode: str = "append",
        schema: str | None = None,
        properties: Text | None = None,
    ) -> Any:
        """Start a query that writes a streaming DataFrame to the table, each micro-batch as one commit, exactly once.

        A query that died goes on from its checkpoint: a batch that was committed is not written again
        (docs/streaming.md). Table services run after each batch as after other writes.

        Args:
            df: a streaming DataFrame, classic or Connect.
            operation: upsert, insert, bulk_insert, delete (rows with the key columns), insert_overwrite or
                insert_overwrite_table.
            checkpoint: folder of Spark's checkpoint. Without it, the session needs
                `spark.sql.streaming.checkpointLocation`, and the query a name.
            trigger: arguments of Spark's `DataStreamWriter.trigger`, such as `{"availableNow": True}` or
                `{"processingTime": "10 seconds"}`; without them a batch begins when the last one ended.
            name: name of the query.
            identifier: name of the stream in the commits, if several streams write to the table; it takes precedence
                over the option `hoodie.datasource.write.streaming.checkpoint.identifier`.
            output_mode: append, update (aggregates: changed groups, for upserts) or complete.
            schema: as for `upsert`, for the operations that write rows.
            properties: `hoodie.*` options of the writes (docs/options.md).

        Returns the started `pyspark.sql.streaming.StreamingQuery`. A batch that fails stops the query with the error of
        its write, and commits nothing.

        Raises: InvalidConfigError if `df` is not a streaming DataFrame, for another operation, and without a
            checkpoint; UnsupportedError if Spark's workers cannot reach the table; the errors that the first write
            would raise before it changes anything.

        For example `t.stream(spark.readStream.format("hoodie").load("trips"), checkpoint="checkpoints/copy")`.
        """
        from hoodie.table.sessions import spark_room

        return spark_room().start_stream(
            self._context,
            df,
            operation,
            checkpoint=checkpoint,
            trigger=trigger,
            name=name,
            identifier=identifier,
            output_mode=output_mode,
            properties=with_schema(properties or {}, schema),
        )

    def write_batch(
        self,
        data: Any,
        batch_id: int,
        *,
        operation: str = "upsert",
        identifier: str | None = None,
        query: str | None = None,
        schema: str | None = None,
        extra_metadata: Text | None = None,
        properties: Text | None = None,
    ) -> WriteResult | None:
        """Write a numbered batch of a stream once; return None if a commit has it, or a later one, already.

        For functions of `foreachBatch`, and for streams without Spark: repeat a batch with the same number until the
        call returns. Two attempts at once commit once. JVM Hudi's streaming sink keeps the same numbers.

        Args:
            data: as for `upsert`; for delete also keys, as for `delete`.
            batch_id: number of the batch, from 0; later batches have greater numbers.
            operation: as for `stream`.
            identifier: name of the stream in the commits; default: the option
                `hoodie.datasource.write.streaming.checkpoint.identifier` of the call or of the table.
            query: id of what numbers the batches. With it, a stream that begins its numbers anew is an error: without
                it, its batches count as written.
            schema: as for `upsert`, for the operations that write rows.
            extra_metadata: text by name, stored in the commit (`extraMetadata`).
            properties: `hoodie.*` options of this call (docs/options.md).

        Warns: HoodieWarning if a batch is left out because of a commit that names no query, and if a restore or a
            rollback took back batches before this one, which a query does not send again.

        Raises: as `upsert`; InvalidConfigError for another operation, or a number below 0; StreamCheckpointError if
            commits of another query have this number or a later one.

        >>> import hoodie
        >>> rows = {"id": ["a", "b"], "fare": [1.0, 2.0]}
        >>> t = hoodie.create("memory://doc-write-batch", rows, record_key="id")
        >>> t.write_batch(rows, 0).inserted
        2
        >>> t.write_batch(rows, 0) is None
        True
        """
        from hoodie.engine.inputs import with_types
        from hoodie.errors import InvalidConfigError
        from hoodie.write.stream_batch import check_operation, write_batch

        check_operation(operation)
        if isinstance(batch_id, bool) or not isinstance(batch_id, int) or batch_id < 0:
            raise InvalidConfigError(f"batch_id={batch_id!r}: expected a whole number from 0")
        is_delete = operation == "delete"
        call, dataset = self._context.write_call(
            self._context.keys(data) if is_delete else data, extra_metadata, properties, schema
        )
        rows = with_types(dataset) if is_delete else dataset
        return write_batch(call, rows, operation, batch_id, identifier=identifier, query=query)
