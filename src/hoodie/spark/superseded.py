"""Scan base files in Spark without the rows that log files replace or delete.

Python workers find the superseded rows of each base file, as a bit for each row. These bits, one row for each file, are
broadcast, and an anti join by file name and position drops the rows. Nothing is shuffled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from hoodie.files.slices import FileSlice
from hoodie.read.plan import ScanPlan
from hoodie.read.superseded import Superseded
from hoodie.spark.merged import by_groups, decisive_bytes
from hoodie.spark.tasks import Batches
from hoodie.spark.types import arrow_schema_of
from hoodie.storage import StoreSpec, open_store

_FILE, _ROW = "#file", "#row"
"""Columns of the scan; no column of a table can have such a name."""
_NAME, _WORDS = "#name", "#words"
_BITS_SCHEMA = StructType([StructField(_NAME, StringType(), False), StructField(_WORDS, ArrayType(LongType(), False))])
_METADATA = "_metadata"
_PLAIN_NAME = re.compile(r"[\w.,=-]+", re.ASCII)
"""Spark and this library spell these file names in the same way."""


def scannable(plan: ScanPlan, session: Any) -> tuple[FileSlice, ...]:
    """Return the slices with log files whose base files Spark can scan, with their superseded rows left out.

    The name of such a base file is the only one of its kind in the scan.
    """
    if _hides_metadata(plan.schema) and not hasattr(type(session.range(0)), "metadataColumn"):
        return ()
    logged = plan.logged
    names = Counter(found.base_file.name for found in logged if found.base_file is not None)
    return tuple(
        found
        for found in logged
        if found.base_file is not None
        and names[found.base_file.name] == 1
        and _PLAIN_NAME.fullmatch(found.base_file.name)
    )


def located(frame: Any) -> Any:
    """Add the file name and the position of each row to a Parquet scan, as the last columns."""
    metadata = F.col(_METADATA)
    if _hides_metadata(frame.columns):
        metadata = frame.metadataColumn(_METADATA)
    return frame.select("*", metadata["file_name"].alias(_FILE), metadata["row_index"].alias(_ROW))


def without_superseded(session: Any, frame: Any, plan: ScanPlan, slices: Sequence[FileSlice]) -> Any:
    """Drop the superseded rows of a `located` scan of the base files of these slices, and the added columns."""
    finder = _Finder(plan.view.store.spec, Superseded.of(plan), arrow_schema_of(_BITS_SCHEMA))

    def superseded_rows(group: tuple[FileSlice, ...]) -> Batches:
        yield from finder.batches(group)

    bits = F.broadcast(by_groups(session, slices, decisive_bytes, superseded_rows, _BITS_SCHEMA))
    word = F.get(F.col(f"`{_WORDS}`"), F.shiftright(F.col(f"`{_ROW}`"), 6).cast("int"))
    is_set = F.getbit(word, (F.col(f"`{_ROW}`") % 64).cast("int")) == 1
    same_file = F.col(f"`{_FILE}`") == F.col(f"`{_NAME}`")
    return frame.join(bits, same_file & is_set, "left_anti").drop(_FILE, _ROW)


def _hides_metadata(names: Any) -> bool:
    return any(name.lower() == _METADATA for name in getattr(names, "names", names))


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds superseded rows in workers. Picklable."""

    store: StoreSpec
    superseded: Superseded
    schema: pa.Schema

    def batches(self, slices: Sequence[FileSlice]) -> Batches:
        """Yield one row for each slice with superseded rows. Memory: as `Superseded.words`."""
        store = open_store(self.store)
        for found in slices:
            words = self.superseded.words(store, found)
            if len(words) and found.base_file is not None:
                offsets = pa.array(np.array([0, len(words)], np.int32))
                array = pa.ListArray.from_arrays(offsets, pa.array(words), type=self.schema.field(_WORDS).type)
                yield pa.RecordBatch.from_arrays([pa.array([found.base_file.name]), array], schema=self.schema)
