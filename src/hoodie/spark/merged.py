"""Read slices with log files, and change data, in Python workers of Spark, which merge them and return Arrow batches.

The readers are picklable. A read of a DataFrame gives them to the tasks of `by_groups`, the data source to its Spark
partitions.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F

from hoodie.engine.packing import Item, balanced, file_bytes
from hoodie.errors import InvalidConfigError
from hoodie.files.slices import FileSlice
from hoodie.format.schema.conform import conform
from hoodie.read.cdc import AFTER, BEFORE, cdc_schema, change_batches, flat_images, json_images, with_json_images
from hoodie.read.cdc_plan import CdcPlan, GroupChange
from hoodie.read.local import SliceScan
from hoodie.read.plan import ScanPlan
from hoodie.records.sql.quoting import quoted
from hoodie.spark.engine import SparkEngine
from hoodie.spark.small_tables import empty_frame
from hoodie.spark.tasks import Batches, each_in_a_task, packed_tasks
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.storage import StoreSpec, open_store

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition
else:
    try:
        from pyspark.sql.datasource import InputPartition
    except ImportError:
        InputPartition = object

_TASK_BYTES_MIN = 4 * 1024 * 1024
_TASK_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of files for a Spark task: each task has an overhead of about 50 ms of a core."""
_PARTITION_BYTES = 64 * 1024 * 1024
_KEY_SHARE = 4
"""Estimated bytes of a base file per byte of its record keys."""
_TIME_ZONE: Final = "spark.sql.session.timeZone"
_IN_UTC: Final = frozenset({"UTC", "ETC/UTC", "UCT", "ETC/UCT", "ZULU", "ETC/ZULU", "Z", "GMT", "ETC/GMT", "+00:00"})
"""Names of UTC, in capital letters; a session in a zone with another name is refused, which loses no rows."""
_BATCH_ROWS = 64 * 1024
_BATCH_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SliceReader:
    """The reader of slices in workers. Picklable; `schema` has the types that Spark expects.

    `only_logged`: of slices with a base file, only the rows that come from logs are read.
    """

    store: StoreSpec
    scan: SliceScan
    schema: pa.Schema
    only_logged: bool = False

    def batches(self, slices: tuple[FileSlice, ...]) -> Batches:
        """Read the rows of the slices in batches of bounded size. Memory: as `SliceScan.batches` of one slice."""
        store = open_store(self.store)
        for file_slice in slices:
            logged = self.only_logged and file_slice.base_file is not None
            batches = self.scan.logged_batches if logged else self.scan.batches
            for batch in batches(store, file_slice):
                yield from pieces(conform(batch, self.schema, stored=True))


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch into batches of at most 65,536 rows and about 16 MiB, which limits the memory of the JVM.

    Each batch has at least one row.
    """
    row_bytes = max(batch.nbytes // max(batch.num_rows, 1), 1)
    step = max(min(_BATCH_ROWS, _BATCH_BYTES // row_bytes), 1)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def read_merged(session: Any, slices: Sequence[FileSlice], reader: SliceReader, schema: Any) -> Any:
    """Return the rows of the slices as a DataFrame of this Spark schema; its columns must be those of the reader."""
    size_of = decisive_bytes if reader.only_logged else file_bytes
    return by_groups(session, "merged_rows", slices, size_of, reader.batches, schema)


def decisive_bytes(found: FileSlice) -> int:
    """Return about how many bytes are read to decide which rows of a slice win: its logs, and keys of its base file."""
    base = 0 if found.base_file is None else found.base_file.size_bytes
    return found.size_bytes - base + base // _KEY_SHARE


def by_groups(
    session: Any,
    name: str,
    slices: Sequence[Item],
    size_of: Callable[[Item], int],
    read: Callable[[tuple[Item, ...]], Batches],
    schema: Any,
) -> Any:
    """Return what `read` yields for groups of slices, or of slices around commits, as a DataFrame of this Spark schema.

    Each group is read in its own task: the tasks keep all cores busy, and none is very small. `name`: of the step in
    Spark's plan. `size_of` measures a slice.
    """

    def work(number: int, packed: bytes) -> Batches:
        yield from read(pickle.loads(packed))

    work.__name__ = name
    total = sum(map(size_of, slices))
    size = _TASK_BYTES_MIN
    if total > _TASK_BYTES_MIN:
        size = min(max(-(-total // SparkEngine(session).parallelism), _TASK_BYTES_MIN), _TASK_BYTES_MAX)
    return each_in_a_task(session, packed_tasks(balanced(slices, size, size_of)), work, schema)


@dataclass(frozen=True, slots=True)
class _ChangeReader:
    """The reader of change data in workers. Picklable.

    `images` are the columns of an image; `schema` has the types that Spark expects, and may leave out columns.
    `flat`: the images are columns in `schema`. `as_json`: they are JSON texts.
    """

    store: StoreSpec
    images: pa.Schema
    schema: pa.Schema
    flat: bool = False
    as_json: bool = False

    def batches(self, changes: tuple[GroupChange, ...]) -> Batches:
        """Read the changes in batches of bounded size. Memory: as `change_batches` of one file group and commit."""
        store = open_store(self.store)
        for change in changes:
            for batch in change_batches(store, change, self.images):
                found = flat_images(batch, self.images) if self.flat else batch
                found = json_images(found) if self.as_json else found
                yield from pieces(conform(found, self.schema, stored=True))


def read_cdc(session: Any, plan: CdcPlan, *, flat: bool = False, as_json: bool = False) -> Any:
    """Return the changes of the plan as a DataFrame. Memory of a task: as `change_batches`."""
    if not plan.returns_what_it_reads:
        return _chosen(read_cdc(session, plan.all_read), plan, flat=flat)
    schema = cdc_schema(plan.schema, flat=flat)
    spark_schema = spark_schema_of(with_json_images(schema) if as_json else schema)
    if not plan.changes:
        return empty_frame(session, spark_schema)
    reader = _ChangeReader(plan.view.store.spec, plan.schema, arrow_schema_of(spark_schema), flat, as_json)
    return by_groups(session, "changed_rows", plan.changes, file_bytes, reader.batches, spark_schema)


def _chosen(changes: Any, plan: CdcPlan, *, flat: bool) -> Any:
    """Return changes with struct images, filtered by the condition, with the chosen columns of the images."""
    if plan.where is not None:
        # Only a read with a condition loads the parser (decision 0015).
        from hoodie.read.image_condition import condition_on_images

        changes = changes.where(condition_on_images(plan.where, plan.read))
    columns = []
    for image in (BEFORE, AFTER):
        fields = [(F.col(".".join(map(quoted, (image, *path)))), path[-1]) for path in plan.paths]
        if flat:
            columns += [column.alias(f"{image}_{name}") for column, name in fields]
        else:
            struct = F.struct(*(column.alias(name) for column, name in fields))
            columns.append(F.when(F.col(image).isNotNull(), struct).alias(image))
    return changes.select("op", "ts_ms", *columns)


@dataclass(frozen=True)
class SlicesPartition(InputPartition):
    """What one task reads: file slices, or the changes of file groups; and their reader.

    `zoned`: the condition of the read, if its result depends on the time zone.
    """

    reader: SliceReader | _ChangeReader
    slices: tuple[Any, ...]
    zoned: str | None = None

    def batches(self) -> Batches:
        """Read the rows. Memory: as the reader needs for one of the slices or changes.

        Raises: InvalidConfigError if `zoned` has a condition, and the time zone of the task's session is not UTC.
        """
        if self.zoned is not None:
            _refuse_other_zones(self.zoned)
        yield from self.reader.batches(self.slices)


def _refuse_other_zones(where: str) -> None:
    """Raises: InvalidConfigError if the time zone of this task's session is not UTC. No task: it is not checked."""
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is None:
        return
    # Spark gives the settings of a session to its tasks, if they are set: the default is the zone of the machine.
    zone = task.getLocalProperty(_TIME_ZONE)
    in_utc = zone.upper() in _IN_UTC if zone else not time.timezone and not time.daylight
    if not in_utc:
        raise InvalidConfigError(
            f"where={where!r}: this data source evaluates the condition in UTC, and {_TIME_ZONE} is "
            f"{zone or f'not set, on a machine in {time.tzname[0]}'}: the rows would be others. Write times with their "
            "zone, such as TIMESTAMP '2026-01-01 00:00:00Z', filter the loaded DataFrame, or use t.read(where=…), or "
            "this option in a session of hoodie.register(spark)"
        )


def slice_partitions(
    store: StoreSpec, plan: ScanPlan, schema: pa.Schema, zoned: str | None = None
) -> list[SlicesPartition]:
    """Divide a planned scan into Spark partitions of about 64 MiB of files, at least one.

    `schema`: the rows that Spark expects, in the types of `arrow_schema_of`. `zoned`: as for `SlicesPartition`.
    """
    return _partitions(SliceReader(store, SliceScan.of(plan), schema), plan.slices, zoned)


def change_partitions(plan: CdcPlan, schema: pa.Schema, *, flat: bool, as_json: bool = False) -> list[SlicesPartition]:
    """Divide planned change data as `slice_partitions` does; `schema` as there."""
    reader = _ChangeReader(plan.view.store.spec, plan.schema, schema, flat, as_json)
    return _partitions(reader, plan.changes)


def _partitions(
    reader: SliceReader | _ChangeReader, found: Sequence[Any], zoned: str | None = None
) -> list[SlicesPartition]:
    return [SlicesPartition(reader, group, zoned) for group in balanced(found, _PARTITION_BYTES) or [()]]
