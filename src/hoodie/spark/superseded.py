"""Scan base files in Spark without the rows that log files replace or delete.

The superseded rows of each base file are known as a bit for each row. The driver finds them if the logs are small
(decision 0020), and may merge the rows of the logs too, so that a query runs no Python: a scalar subquery gives the
bits to the tasks, and a condition on the position of each row drops the rows. Else Python workers find them; the bits,
one row for each file, are broadcast, and an anti join by file name and position drops the rows. Nothing is shuffled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from hoodie.config.writes import LOCAL_BYTES_MAX
from hoodie.files.slices import BaseFile, FileSlice
from hoodie.read.local_merges import LocalMerge, Superseded, Words, key_of_all, merge_locally, superseded_locally
from hoodie.read.plan import ScanPlan
from hoodie.records.sql.quoting import quoted
from hoodie.spark.merged import SliceReader, by_groups, decisive_bytes
from hoodie.spark.small_tables import frame_of, kept
from hoodie.spark.tasks import Batches
from hoodie.spark.types import arrow_schema_of
from hoodie.storage import StoreSpec, open_store

LOG_BYTES_MAX: Final = 16 * 1024 * 1024
"""Up to this many bytes of log files, their rows are merged in the driver too."""
_FILE, _ROW = "#file", "#row"
"""Columns of the scan; no column of a table can have such a name."""
_NAME, _WORDS, _SIZES = "#name", "#words", "#sizes"
_LONGS = ArrayType(LongType(), False)
_BITS_SCHEMA = StructType([StructField(_NAME, StringType(), False), StructField(_WORDS, _LONGS)])
_SLOTS_SCHEMA = StructType([StructField(_SIZES, _LONGS, False), StructField(_WORDS, ArrayType(_LONGS, True), False)])
_METADATA = "_metadata"
_ROW_INDEX = "_tmp_metadata_row_index"
"""Spark's Parquet scan gives the position of a row in its file to a column with this name. (`_metadata.row_index` has
the same number, in a struct that Spark makes for each row.)"""
_PLAIN_NAME = re.compile(r"[\w.,=-]+", re.ASCII)
"""Spark and this library spell these file names in the same way."""
_OTHER_SIZE = "a base file does not have the bytes that the table states"
_SLOTTED_FILES_MAX = 256
_SLOT_COUNTS = 64


def scannable(plan: ScanPlan, session: Any) -> tuple[FileSlice, ...]:
    """Return the slices with log files whose base files Spark can scan, with their superseded rows left out.

    The name of such a base file is the only one of its kind in the scan.
    """
    if _has(plan.schema.names, _METADATA) and not hasattr(type(session.range(0)), "metadataColumn"):
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


@dataclass(frozen=True, slots=True)
class Superseding:
    """Leaves out the rows of base files that the log files of their slices supersede.

    `merges` has the superseded rows if the driver has found them; else workers find them.
    """

    slices: Mapping[BaseFile, FileSlice]
    merges: Mapping[BaseFile, LocalMerge] | None

    def without(
        self, session: Any, plan: ScanPlan, files: Sequence[BaseFile], scan: Callable[[Any], Any], schema: Any
    ) -> Any:
        """Return the other rows of some of the files. `scan` scans them with a Spark schema; `schema` is theirs."""
        if self.merges is None:
            finder = _Finder(plan.view.store.spec, Superseded.of(plan), arrow_schema_of(_BITS_SCHEMA))
            slices = [self.slices[file] for file in files]
            found = by_groups(session, "superseded_rows", slices, decisive_bytes, finder.batches, _BITS_SCHEMA)
            return _without(scan(schema), found)
        words = {file: self.merges[file].words for file in files}
        slot_count = None if _has(schema.names, _ROW_INDEX) else _slot_count(list(words))
        if slot_count is None:
            names = pa.array([file.name for file in words])
            bits = pa.Table.from_arrays([names, _lists(list(words.values()))], schema=arrow_schema_of(_BITS_SCHEMA))
            return _without(scan(schema), session.createDataFrame(bits, _BITS_SCHEMA))
        key = key_of_all(self.merges[file] for file in files)
        key = None if key is None else ("slots", key)
        size_bytes = sum(found.nbytes for found in words.values())
        slots = kept(session, key, size_bytes, lambda: _subqueries(session, _slots(words, slot_count)))
        positioned = type(schema)([*schema.fields, StructField(_ROW_INDEX, LongType())])
        return _without_slots(scan(positioned), slot_count, slots)


def _without(frame: Any, bits: Any) -> Any:
    """Drop the rows of a scan whose bits are set."""
    metadata = _metadata(frame)
    located = frame.withColumns({_FILE: metadata["file_name"], _ROW: metadata["row_index"]})
    is_set = F.expr(f"`{_FILE}` = `{_NAME}` AND {_bit(quoted(_WORDS), quoted(_ROW))} = 1")
    return located.join(F.broadcast(bits), is_set, "left_anti").drop(_FILE, _ROW)


def _slot_count(files: Sequence[BaseFile]) -> int | None:
    """Return a number by which the sizes of all files have different remainders; None if none was found."""
    sizes = np.array([file.size_bytes for file in files], np.int64)
    if len(sizes) > _SLOTTED_FILES_MAX:
        return None
    least = max(len(sizes), len(sizes) ** 2 // 4)
    counts = range(least, least + _SLOT_COUNTS)
    return next((count for count in counts if len(np.unique(sizes % count)) == len(sizes)), None)


def _slots(words: Mapping[BaseFile, Words], count: int) -> pa.Table:
    """Return the sizes and the words of files in one row: two arrays, in the order of the remainders of the sizes.

    Where there is no file, the size is 0.
    """
    sizes, by_slot = [0] * count, dict[int, Words]()
    for file, found in words.items():
        sizes[file.size_bytes % count] = file.size_bytes
        by_slot[file.size_bytes % count] = found
    schema = arrow_schema_of(_SLOTS_SCHEMA)
    values = (sizes, [by_slot.get(slot) for slot in range(count)])
    columns = [pa.array([value], child.type) for value, child in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _subqueries(session: Any, slots: pa.Table) -> dict[str, Any]:
    """Return scalar subqueries of the columns of one row."""
    row = session.createDataFrame(slots, _SLOTS_SCHEMA)
    return {name: row.select(F.col(quoted(name))).scalar() for name in slots.column_names}


def _without_slots(frame: Any, slot_count: int, slots: Mapping[str, Any]) -> Any:
    """Drop the rows of a scan with positions whose bits are set."""
    located = frame.withColumns({_FILE: _metadata(frame)["file_size"], **slots})
    slot = f"cast(`{_FILE}` % {slot_count} AS int)"
    is_known = f"get(`{_SIZES}`, {slot}) = `{_FILE}` OR cast(raise_error('{_OTHER_SIZE}') AS boolean)"
    bit = _bit(f"get(`{_WORDS}`, {slot})", _ROW_INDEX)
    return located.where(f"({is_known}) AND coalesce({bit}, 0) = 0").drop(_FILE, *slots, _ROW_INDEX)


def _bit(words: str, position: str) -> str:
    """Return the expression of the bit of a position in an array of words; null behind its end."""
    return f"getbit(get({words}, cast(shiftright({position}, 6) AS int)), cast({position} % 64 AS int))"


def _metadata(frame: Any) -> Any:
    return frame.metadataColumn(_METADATA) if _has(frame.columns, _METADATA) else F.col(_METADATA)


def _has(names: Sequence[str], wanted: str) -> bool:
    return any(name.lower() == wanted for name in names)


def _lists(arrays: Sequence[Words | None]) -> pa.ListArray:
    return pa.array(arrays, pa.list_(pa.field("element", pa.int64(), False)))


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds superseded rows in workers. Picklable."""

    store: StoreSpec
    superseded: Superseded
    schema: pa.Schema

    def batches(self, slices: Sequence[FileSlice]) -> Batches:
        """Yield one row for each slice with superseded rows. Memory: as `Superseded.words`."""
        store = open_store(self.store)
        for file_slice in slices:
            words = self.superseded.words(store, file_slice)
            if len(words) and file_slice.base_file is not None:
                yield pa.RecordBatch.from_arrays(
                    [pa.array([file_slice.base_file.name]), _lists([words])], schema=self.schema
                )


@dataclass(frozen=True, slots=True)
class DriverMerges:
    """What the driver has found: the merge of each base file with its logs, and a DataFrame of the rows of logs.

    `has_rows`: the driver has merged the rows of logs; `rows` is None if there are none.
    """

    by_file: Mapping[BaseFile, LocalMerge]
    has_rows: bool
    rows: Any = None


def merged_by_driver(
    session: Any, plan: ScanPlan, slices: Sequence[FileSlice], reader: SliceReader, schema: Any
) -> DriverMerges | None:
    """Merge slices with log files on threads of the driver, now; None if this is the work of Spark's workers.

    The driver merges up to `hoodie.python.local.bytes.max` bytes of logs and keys; if the logs have more than
    `LOG_BYTES_MAX` bytes, it finds only the superseded rows. `schema` is the Spark schema of `reader`.

    Memory: as `merge_locally`; the JVM holds the rows too.
    """
    limit = LOCAL_BYTES_MAX.get(plan.view.config.raw)
    if not slices or sum(map(decisive_bytes, slices)) > limit:
        return None
    if not hasattr(type(session.range(0)), "scalar"):
        return None  # PySpark before 4.0 makes no DataFrames of Arrow tables, and has no scalar subqueries.
    store = plan.view.store
    if sum(log.size_bytes for file_slice in slices for log in file_slice.log_files) <= LOG_BYTES_MAX:
        merges = merge_locally(store, slices, reader.scan, reader.schema)
        if merges is not None:
            rows = _rows(session, merges, schema)
            return DriverMerges(_by_file(slices, merges), has_rows=True, rows=rows)
    scanned = [file_slice for file_slice in slices if file_slice.base_file is not None]
    return DriverMerges(_by_file(scanned, superseded_locally(store, scanned, Superseded.of(plan))), has_rows=False)


def _by_file(slices: Sequence[FileSlice], merges: Sequence[LocalMerge]) -> dict[BaseFile, LocalMerge]:
    found = zip(slices, merges, strict=True)
    return {a_slice.base_file: merge for a_slice, merge in found if a_slice.base_file is not None}


def _rows(session: Any, merges: Sequence[LocalMerge], schema: Any) -> Any:
    tables = [merge.rows for merge in merges if merge.rows is not None and merge.rows.num_rows]
    if not tables:
        return None
    rows = pa.concat_tables(tables)
    key = key_of_all(merges)
    key = None if key is None else ("rows", key, schema.json())
    return kept(session, key, rows.nbytes, lambda: frame_of(session, rows, schema))
