"""`hoodie.ingest`: run one flow from Python."""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any

from hoodie.arguments import check_arguments
from hoodie.errors import HoodieWarning
from hoodie.ingest.bad_rows import BadRowsPolicy
from hoodie.ingest.flow import Flow, Pace, Start
from hoodie.ingest.options import require
from hoodie.ingest.result import IngestResult
from hoodie.ingest.runner import Runner
from hoodie.ingest.source import Source
from hoodie.ingest.sources.registry import source_of
from hoodie.ingest.target import Target, options_for
from hoodie.ingest.transforms import transforms_of
from hoodie.table import Table
from hoodie.table.context import Session, Text
from hoodie.table.sessions import active_session, arrow_schema


@check_arguments
def ingest(
    source: Any,
    table: Any,
    *,
    transform: Any = None,
    operation: str = "upsert",
    continuous: bool = False,
    create: Any = None,
    name: str | None = None,
    limit: int | None = None,
    batches_max: int | None = None,
    interval: float = 0.0,
    retries: int = 0,
    checkpoint: str | None = None,
    ignore_checkpoint: str | None = None,
    bad_rows: str = "refuse",
    bad_rows_max: int | None = None,
    schema: Any = None,
    evolve: str | None = None,
    properties: Text | None = None,
    storage_options: Text | None = None,
    spark: Session = None,
    report: Any = None,
    stop: Any = None,
    dry_run: bool = False,
) -> IngestResult:
    """Write the new rows of a source to a table, batch by batch, each of them once.

    The commit of a batch stores the place behind it, with the keys of HoodieStreamer, so a flow that starts again goes
    on behind the newest commit, whatever it died of (docs/ingest/README.md).

    Args:
        source: a `hoodie.Source`, or its kind and options as in a job file:
            `{"kind": "files", "path": "landing", "format": "json"}`.
        table: a handle, or the path of a table.
        transform: a function of rows, SQL over `source`, options as in a job file, or a list of these in order.
        operation: upsert, insert, bulk_insert, delete, insert_overwrite or insert_overwrite_table.
        continuous: go on for ever; else until the source has nothing new.
        create: arguments of `hoodie.create` for a table that does not exist, such as `{"record_key": "id"}`.
        name: name of the flow in the commits, if several flows write the table.
        limit: most rows of a batch (files: most files; Hudi tables: most commits).
        batches_max: most batches of this call.
        interval: seconds from the begin of a batch to the next, for `continuous`.
        retries: how often a batch is tried again after an error; with `continuous` without end.
        checkpoint: a place to begin at instead of the stored one. The commits keep the text, which counts once.
        ignore_checkpoint: any text; begin anew. The commits keep the text, which counts once.
        bad_rows: for rows that cannot be decoded: `refuse` (the batch is not written), `skip`, or the path of a table
            that gets them.
        bad_rows_max: most bad rows of a batch, for `skip` and a table.
        schema: columns of the source's rows: a pyarrow Schema or a Spark StructType; default: those of the table.
        evolve: which changes of the table's schema are allowed, as `schema` of `Table.upsert`.
        properties: `hoodie.*` options of the writes (docs/options.md).
        storage_options: settings of the object store of the table, and of the table of bad rows.
        spark: the session that does the work; None: the active session; False, or no session: this process does it.
        report: a function that gets the result of each batch.
        stop: a `threading.Event` that ends the call after the batch that runs.
        dry_run: read the next batch, and return in `preview` what it would change.

    Returns the sums of all batches. Ctrl-C ends the call after the batch that runs. With `continuous`, a batch that
    fails is a HoodieWarning, and is tried again; the last error is in the result.

    Raises: the error of the first batch that fails, after `retries`: SourceError, BadRowsError, and those of the write;
        InvalidConfigError before anything is read.

    >>> import hoodie
    >>> rows = {"id": ["a", "b"], "fare": [1.0, 2.0]}
    >>> first = hoodie.create("memory://doc-ingest-from", rows, record_key="id")
    >>> written = first.upsert(rows)
    >>> source = {"kind": "hudi", "path": "memory://doc-ingest-from"}
    >>> hoodie.ingest(source, "memory://doc-ingest-to", create={"record_key": "id"}).inserted
    2
    >>> hoodie.ingest(source, "memory://doc-ingest-to").batches
    0
    """
    require(isinstance(table, Table | str | os.PathLike), "table", "a path or a handle of a table", table)
    session = active_session() if spark is None else (spark or None)
    options = dict(storage_options or {})
    target = Target(
        path=table.path if isinstance(table, Table) else os.fspath(table),
        create=create,
        storage_options=options,
        spark=False if session is None else session,
        table=table if isinstance(table, Table) else None,
    )
    flow = Flow(
        name=name or "ingest",
        is_named=name is not None,
        source=source if isinstance(source, Source) else source_of(source),
        target=target,
        transforms=transforms_of(transform),
        operation=operation,
        limit=limit,
        spark=session,
        start=Start(place=checkpoint, ignore=ignore_checkpoint),
        bad_rows=BadRowsPolicy(mode=bad_rows, max=bad_rows_max, storage_options=options_for(bad_rows, options)),
        schema=None if schema is None else arrow_schema(schema),
        evolve=evolve,
        properties=dict(properties or {}),
    )
    if dry_run:
        return IngestResult(flow=flow.name, preview=flow.preview())
    pace = Pace(continuous=continuous, interval=interval, batches_max=batches_max, retries=retries, threads=1)
    return _run(flow, pace, report, stop)


def _run(flow: Flow, pace: Pace, report: Any, stop: threading.Event | None) -> IngestResult:
    def on_error(_name: str, error: Exception) -> None:
        if pace.continuous and runner.states[0].failures == 1:
            warnings.warn(f"{error}; the batch is tried again", HoodieWarning, stacklevel=2)

    runner = Runner(
        flows=[flow],
        pace=pace,
        report=lambda _name, batch: None if report is None else report(batch),
        on_error=on_error,
    )
    (result,) = runner.run(stop)
    if (raised := runner.states[0].raised) is not None:
        raise raised
    return result
