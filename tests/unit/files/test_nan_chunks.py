"""Footers of base files: NaN is the greatest value of column chunks that have it, at every depth."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.files.base_file import BaseFileWriter, ParquetOptions, read_base_file
from hoodie.files.slices import BaseFile
from hoodie.storage import MemoryStore

NAN = math.nan
DOUBLES = pa.list_(pa.field("element", pa.float64()))
SCHEMA = pa.schema(
    [
        ("_hoodie_record_key", pa.string()),
        ("f", pa.float32()),
        ("n", pa.int64()),
        ("d", pa.float64()),
        ("s", pa.struct([("y", pa.int64()), ("x", pa.float64())])),
        ("l", DOUBLES),
        ("m", pa.map_(pa.string(), DOUBLES)),
    ]
)
FLOATS = ("f", "d", "s.x", "l.list.element", "m.key_value.value.list.element")
FILE = BaseFile("p", "f_0-0-0_20261122090000000.parquet", "f", "20261122090000000", 0)


def rows(*values: float | None) -> pa.Table:
    columns: list[Any] = [
        [f"k{number}" for number in range(len(values))],
        pa.array(values, pa.float32()),
        [7] * len(values),
        values,
    ]
    columns += [[{"y": 1, "x": value} for value in values], [[value] for value in values]]
    return pa.table([*columns, pa.array([[("k", [value])] for value in values], SCHEMA.field("m").type)], schema=SCHEMA)


def written(*groups: pa.Table) -> MemoryStore:
    """A base file with one row group for each of the tables."""
    store = MemoryStore()
    with BaseFileWriter(store, FILE.path, SCHEMA, ParquetOptions()) as writer:
        for group in groups:
            writer.write(group)
            writer.flush()
    assert writer.size_bytes == len(store.read(FILE.path))
    return store


def bounds(store: MemoryStore) -> dict[str, list[tuple[str, int] | None]]:
    """Greatest value and number of nulls of each column in each row group; None where there are no bounds."""
    metadata = pq.ParquetFile(pa.BufferReader(store.read(FILE.path))).metadata
    found: dict[str, list[tuple[str, int] | None]] = {}
    for group in range(metadata.num_row_groups):
        for leaf in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(leaf)
            told = chunk.statistics
            one = (str(told.max), told.null_count) if told.has_min_max else None
            found.setdefault(chunk.path_in_schema, []).append(one)
    return found


def test_nan_is_the_greatest_value_of_the_row_groups_that_have_it() -> None:
    groups = [rows(1.0, None, 2.0), rows(-0.0, NAN), rows(NAN), rows(NAN, None, 3.0), rows(5.0)]
    store = written(*groups)
    found = bounds(store)
    for name in FLOATS:
        assert found[name] == [("2.0", 1), ("nan", 0), None, ("nan", 1), ("5.0", 0)], name
    assert found["n"] == [("7", 0)] * 5
    assert found["s.y"] == [("1", 0)] * 5
    read = pa.concat_tables(read_base_file(store, FILE, SCHEMA))
    assert str(read["d"].to_pylist()) == str([value for group in groups for value in group["d"].to_pylist()])


def test_only_the_leaf_that_has_nan() -> None:
    """Row groups are pieces of a longer table, whose other rows do not count."""
    whole = rows(NAN, 1.0, 2.0, NAN)
    for name, leaf in zip(("f", "d", "s", "l", "m"), FLOATS, strict=True):
        place = SCHEMA.names.index(name)
        mixed = rows(1.0, 1.0, 2.0, 3.0).set_column(place, SCHEMA.field(place), whole[name])
        found = bounds(written(mixed.slice(1, 2), mixed.slice(2, 2)))
        assert [other for other in FLOATS if ("nan", 0) in found[other]] == [leaf]
        if name in ("f", "d", "s"):
            assert found[leaf] == [("2.0", 0), ("nan", 0)]


def test_a_file_without_nan_has_one_footer() -> None:
    data = written(rows(1.0), rows(2.0)).read(FILE.path)
    assert data.count(b"PAR1") == 2
