"""A column of every type, and schemas that grow: written by either side, read and continued by the other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.format.schema.table_schema import without_meta_fields
from tests.interop.judges import Jvm, read_with_hudi_rs
from tests.support.rows import assert_same_rows

GOLDEN = Path(__file__).parents[1] / "golden" / "types"
DECIMALS = [(1, 0), (2, 2), (9, 2), (10, 0), (18, 4), (19, 0), (20, 10), (38, 18), (38, 38)]
POINT = pa.struct([("x", pa.float64()), ("y", pa.float64())])
DEEP = pa.struct([("price", pa.decimal128(10, 2)), ("seen", pa.timestamp("us", "UTC")), ("spots", pa.list_(POINT))])
FLAT = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("flag", pa.bool_()),
        ("count", pa.int32()),
        pa.field("count_not_null", pa.int32(), nullable=False),
        ("big", pa.int64()),
        ("ratio", pa.float32()),
        ("exact", pa.float64()),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        *((f"dec_{p}_{s}", pa.decimal128(p, s)) for p, s in DECIMALS),
    ]
)
NESTED = [
    pa.field("ints", pa.list_(pa.int32())),
    pa.field("matrix", pa.list_(pa.list_(pa.decimal128(8, 3)))),
    pa.field("counts", pa.map_(pa.string(), pa.int64())),
    pa.field("point", POINT),
    pa.field("deep", DEEP),
    pa.field("deeps", pa.list_(DEEP)),
    pa.field("points", pa.map_(pa.string(), POINT)),
    pa.field("point_lists", pa.map_(pa.string(), pa.list_(POINT))),
    pa.field("days", pa.list_(pa.date32())),
    pa.field("times", pa.map_(pa.string(), pa.timestamp("us", "UTC"))),
]
ALL = pa.schema([*FLAT, *NESTED])
MOMENTS = [
    datetime(2026, 7, 1, 12, 30, 15, 123456, UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    datetime(1500, 3, 1, 1, 2, 3, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
]


def _row(key: str, n: int) -> dict[str, Any]:
    """One of four full rows: largest, smallest, zero and odd values."""
    sign = (1, -1, 0, 1)[n]
    point = {"x": 1.5 * sign, "y": -0.0}
    deep = {"price": Decimal("12.34") * sign, "seen": MOMENTS[n], "spots": [point, point]}
    return {
        "id": key,
        "flag": n == 0,
        "count": (2**31 - 1, -(2**31), 0, 7)[n],
        "count_not_null": n,
        "big": (2**63 - 1, -(2**63), 0, 7)[n],
        "ratio": (1.5, float("nan"), -0.0, float("inf"))[n],
        "exact": (float("-inf"), float("nan"), -0.0, 5e-324)[n],
        "text": ("plain", "ünïcödé ✓ 😀", "", "null\x00\n")[n],
        "raw": (b"\x00\xff", b"", b"abc", b"\x80")[n],
        "day": (date(2026, 7, 1), date(1969, 12, 31), date(1500, 3, 1), date(9999, 12, 31))[n],
        "at": MOMENTS[n],
        **{f"dec_{p}_{s}": Decimal((int(sign < 0), (9,) * p if sign else (0,), -s)) for p, s in DECIMALS},
        "ints": [1, n],
        "matrix": [[Decimal("1.125")], []],
        "counts": {"a": n, "b": None}.items(),
        "point": point,
        "deep": deep,
        "deeps": [deep, deep],
        "points": {"p": point, "q": None}.items(),
        "point_lists": {"l": [point], "m": None}.items(),
        "days": [date(1500, 3, 1)],
        "times": {"t": MOMENTS[n]}.items(),
    }


def _nulls(key: str) -> dict[str, Any]:
    return {"id": key, "count_not_null": 1}


def _table(*rows: dict[str, Any]) -> pa.Table:
    listed = [{name: list(v) if isinstance(v, type({}.items())) else v for name, v in row.items()} for row in rows]
    return pa.Table.from_pylist(listed, schema=ALL)


def _assert_all_read(jvm: Jvm, path: Path, expected: pa.Table) -> None:
    columns = expected.column_names
    assert_same_rows(hoodie.open(path).to_arrow(columns), expected, key="id")
    assert_same_rows(jvm.read(path, columns), expected, key="id")
    assert_same_rows(read_with_hudi_rs(path).select(columns), expected, key="id")


def _assert_spark_reads(jvm: Jvm, path: Path, expected: pa.Table) -> None:
    from tests.interop.judges import to_arrow

    assert_same_rows(to_arrow(hoodie.open(path, spark=jvm.spark).read(expected.column_names)), expected, key="id")


def _upsert(jvm: Jvm, rows: pa.Table, path: Path, **options: str) -> None:
    # The Avro writer of the bundle cannot put nulls into its two-level lists; three-level ones are what we write too.
    lists = {"hoodie.parquet.writelegacyformat.enabled": "false", "parquet.avro.write-old-list-structure": "false"}
    jvm.write(rows, path, table_name="types", key="id", options={**lists, **options})


def test_every_type_in_a_table_of_ours(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "types"
    table = hoodie.create(path, ALL, record_key="id")
    first = [_row(f"k{n}", n) for n in range(4)]
    table.upsert(_table(*first, _nulls("null")))
    _assert_all_read(jvm, path, _table(*first, _nulls("null")))
    _assert_spark_reads(jvm, path, _table(*first, _nulls("null")))
    assert _stored_types(jvm, path) == _spark_types(jvm, ALL)

    changed = [_row("k0", 3), _row("new", 1), _nulls("k1")]
    _upsert(jvm, _table(*changed), path)
    after_jvm = _table(changed[0], changed[2], *first[2:], _nulls("null"), changed[1])
    _assert_all_read(jvm, path, after_jvm)

    table.upsert(_table(_row("null", 0), _nulls("k0")))
    _assert_all_read(jvm, path, _table(_nulls("k0"), changed[2], *first[2:], _row("null", 0), changed[1]))


def test_every_type_in_a_table_of_the_jvm(jvm: Jvm, tmp_path: Path) -> None:
    path = tmp_path / "types"
    first = [*(_row(f"k{n}", n) for n in range(4)), _nulls("null")]
    _upsert(jvm, _table(*first), path)
    table = hoodie.open(path)
    assert table.schema.names == ALL.names
    assert table.schema.types == ALL.types
    table.upsert(_table(_row("k0", 2), _nulls("k1"), _row("null", 3), _row("new", 0)))
    expected = _table(_row("k0", 2), _nulls("k1"), *first[2:4], _row("null", 3), _row("new", 0))
    _assert_all_read(jvm, path, expected)
    _upsert(jvm, _table(_row("k1", 1)), path)
    _assert_all_read(jvm, path, _table(_row("k0", 2), _row("k1", 1), *first[2:4], _row("null", 3), _row("new", 0)))


@pytest.mark.parametrize("name", ["all_types", "all_types_row_writer"])
def test_base_files_of_both_writers_of_the_jvm_survive_us(jvm: Jvm, tmp_path: Path, name: str) -> None:
    """All columns of the golden file: also those that the JVM can only insert and read, and hudi-rs cannot at all."""
    rows = pq.read_table(GOLDEN / f"{name}.parquet")
    data = rows.select(without_meta_fields(rows.schema).names)
    path = tmp_path / "types"
    table = hoodie.create(path, data.schema, record_key="id")
    table.bulk_insert(data)
    table.upsert(data.slice(0, 1))
    assert_same_rows(table.to_arrow(), data, key="id")
    assert_same_rows(jvm.read(path, data.column_names), data, key="id")


def test_local_timestamps(jvm: Jvm, tmp_path: Path) -> None:
    """At the top level only: with nested ones the JVM's writer fails on its own files. hudi-rs 0.5 has no such type."""
    path = tmp_path / "types"
    schema = pa.schema([("id", pa.string()), ("local_at", pa.timestamp("us"))])
    moments = [moment.replace(tzinfo=None) for moment in MOMENTS]
    rows = [{"id": f"k{n}", "local_at": moment} for n, moment in enumerate([*moments, None])]
    table = hoodie.create(path, schema, record_key="id")
    table.upsert(pa.Table.from_pylist(rows, schema=schema))
    rows[0]["local_at"], rows[4]["local_at"] = moments[2], moments[1]
    _upsert(jvm, pa.Table.from_pylist([rows[0], rows[4]], schema=schema), path)
    expected = pa.Table.from_pylist(rows, schema=schema)
    assert_same_rows(table.to_arrow(schema.names), expected, key="id")
    assert_same_rows(jvm.read(path, schema.names), expected, key="id")


NARROW = pa.schema([("id", pa.string()), ("n", pa.int32()), ("f", pa.float32()), ("p", pa.struct([("x", pa.int32())]))])
WIDE = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int64()),
        ("f", pa.float64()),
        ("p", pa.struct([("x", pa.int64()), ("y", pa.string())])),
        ("added", pa.list_(pa.string())),
    ]
)


def _narrow(*keys: str) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "n": 1, "f": 0.5, "p": {"x": 1}} for key in keys], schema=NARROW)


def _wide(*keys: str, old: tuple[str, ...] = ()) -> pa.Table:
    rows = [{"id": k, "n": 2**40, "f": 0.1, "p": {"x": 2**40, "y": "y"}, "added": ["a"]} for k in keys]
    kept = [{"id": k, "n": 1, "f": 0.5, "p": {"x": 1, "y": None}, "added": None} for k in old]
    return pa.Table.from_pylist([*rows, *kept], schema=WIDE)


@pytest.fixture
def row_by_row(jvm: Jvm) -> Iterator[None]:
    """The JVM reads a nested field that became wider row by row only, and says so in its error."""
    with jvm.configured({"spark.sql.parquet.enableVectorizedReader": "false"}):
        yield


@pytest.mark.matrix(keep=1)
@pytest.mark.usefixtures("row_by_row")
@pytest.mark.parametrize("widened_by", ["us", "the JVM"])
def test_a_schema_that_one_side_widens_is_continued_by_the_other(jvm: Jvm, tmp_path: Path, widened_by: str) -> None:
    """A third partition keeps its narrow file to the end, so that every reader has to widen it."""
    path = tmp_path / "types"
    table = hoodie.create(path, NARROW, record_key="id", properties={"hoodie.parquet.small.file.limit": "0"})
    table.bulk_insert(_narrow("a", "b"))
    table.bulk_insert(_narrow("stays"))
    small = {"hoodie.parquet.small.file.limit": "0"}
    if widened_by == "us":
        table.upsert(_wide("a", "c"))
    else:
        _upsert(jvm, _wide("a", "c"), path, **small)
    assert table.schema.equals(WIDE)
    _assert_all_read(jvm, path, _wide("a", "c", old=("b", "stays")))
    _assert_spark_reads(jvm, path, _wide("a", "c", old=("b", "stays")))
    if widened_by == "us":
        _upsert(jvm, _wide("b", "d"), path, **small)
    else:
        table.upsert(_wide("b", "d"))
    assert table.schema.equals(WIDE)
    _assert_all_read(jvm, path, _wide("a", "b", "c", "d", old=("stays",)))


def _stored_types(jvm: Jvm, path: Path) -> list[tuple[str, str]]:
    frame = jvm.spark.read.format("hudi").load(str(path))
    return [(name, kind) for name, kind in frame.dtypes if not name.startswith("_hoodie_")]


def _spark_types(jvm: Jvm, schema: pa.Schema) -> list[tuple[str, str]]:
    return list(jvm.frame(schema.empty_table()).dtypes)
