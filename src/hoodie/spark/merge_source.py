"""The source of a merge in Spark: a DataFrame whose rows are staged once, and read from there as often as needed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from hoodie.errors import SchemaMismatchError
from hoodie.files.staging.staged import stage_folder
from hoodie.spark.engine import SparkDataset, SparkEngine, session_of
from hoodie.spark.merged import by_groups, pieces
from hoodie.spark.tasks import Batches
from hoodie.spark.types import spark_schema_of
from hoodie.storage import Store
from hoodie.write.merge_source import SourceFile, StagedSource, stage_source

Rows: TypeAlias = Callable[[], StagedSource | None]


@contextlib.contextmanager
def merge_source(frame: Any, store: Store) -> Iterator[Rows]:
    """Yield a function that stages the rows in the table's folder, when it is called first; delete them at the end.

    It returns None, and stages nothing, for a source with columns that have no Arrow type here, equal names, or texts
    that are compared by a collation.
    """
    with contextlib.ExitStack() as held:
        yield functools.cache(lambda: _staged(frame, store, held))


def _staged(frame: Any, store: Store, held: contextlib.ExitStack) -> StagedSource | None:
    dataset = SparkDataset(frame)
    names = frame.columns
    if len(set(names)) < len(names) or " collate " in frame.schema.simpleString().lower():
        return None
    try:
        _ = dataset.schema
    except SchemaMismatchError:
        return None
    return stage_source(SparkEngine(session_of(frame)), dataset, store, held.enter_context(stage_folder(store)))


def read_source(session: Any, source: StagedSource) -> Any:
    """Return the staged rows as a DataFrame."""

    def staged_rows(files: tuple[SourceFile, ...]) -> Batches:
        for file in files:
            for batch in source.batches(file):
                yield from pieces(batch)

    schema = spark_schema_of(source.schema)
    if not source.files:
        return session.createDataFrame([], schema)
    return by_groups(session, source.files, lambda file: file.size_bytes, staged_rows, schema)
