"""The Spark partitions of a read by the data source: what each task reads, and with what. Picklable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from hoodie.engine.packing import balanced
from hoodie.read.cdc import cdc_schema
from hoodie.read.cdc_plan import CdcPlan
from hoodie.read.local import SliceScan
from hoodie.read.plan import ScanPlan
from hoodie.spark.cdc import ChangeReader
from hoodie.spark.merged import SliceReader
from hoodie.spark.tasks import Batches
from hoodie.storage import StoreSpec

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition
else:
    try:
        from pyspark.sql.datasource import InputPartition
    except ImportError:
        InputPartition = object

_PARTITION_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True)
class SlicesPartition(InputPartition):
    """What one task reads: file slices, or the changes of file groups; and their reader."""

    reader: SliceReader | ChangeReader
    slices: tuple[Any, ...]

    def batches(self) -> Batches:
        """Read the rows. Memory: as the reader needs for one of the slices or changes."""
        yield from self.reader.batches(self.slices)


def slice_partitions(store: StoreSpec, plan: ScanPlan, schema: pa.Schema) -> list[SlicesPartition]:
    """Divide a planned scan into Spark partitions of about 64 MiB of files, at least one.

    `schema`: the rows that Spark expects, in the types of `arrow_schema_of`.
    """
    return _partitions(SliceReader(store, SliceScan.of(plan), schema), plan.slices)


def change_partitions(plan: CdcPlan, schema: pa.Schema, *, flat: bool) -> list[SlicesPartition]:
    """Divide planned change data as `slice_partitions` does; `schema` as there."""
    reader = ChangeReader(plan.view.store.spec, cdc_schema(plan.schema, flat=flat), schema)
    return _partitions(reader, plan.changes)


def _partitions(reader: SliceReader | ChangeReader, found: Sequence[Any]) -> list[SlicesPartition]:
    return [SlicesPartition(reader, group) for group in balanced(found, _PARTITION_BYTES) or [()]]
