"""Write tables of every Spark type with the JVM reference and record the schemas it stored.

Run with a PySpark 3.5 environment: `python -m tests.golden.types.make_types [work folder [part ...]]`; writes `types.json`, `all_types.parquet` (a base
file of the Avro writer) and `all_types_row_writer.parquet` beside itself.
"""

# ruff: noqa: E501 (tables of cases, one per line)

from __future__ import annotations

import io
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
from pyspark.sql import types as T

from hoodie.format.avro.schema import META_FIELDS
from tests.golden.jvm_session import SMALL, first_cause, open_session

HERE = Path(__file__).parent

DECIMALS = [(1, 0), (2, 2), (9, 2), (10, 0), (18, 4), (19, 0), (20, 10), (38, 18), (38, 38)]
FLAT = [
    T.StructField("id", T.StringType(), False),
    T.StructField("flag", T.BooleanType()),
    T.StructField("tiny", T.ByteType()),
    T.StructField("small", T.ShortType()),
    T.StructField("count", T.IntegerType()),
    T.StructField("count_not_null", T.IntegerType(), False),
    T.StructField("big", T.LongType()),
    T.StructField("ratio", T.FloatType()),
    T.StructField("exact", T.DoubleType()),
    T.StructField("text", T.StringType()),
    T.StructField("raw", T.BinaryType()),
    T.StructField("day", T.DateType()),
    T.StructField("at", T.TimestampType()),
    T.StructField("local_at", T.TimestampNTZType()),
    *(T.StructField(f"dec_{p}_{s}", T.DecimalType(p, s)) for p, s in DECIMALS),
    T.StructField("dec_not_null", T.DecimalType(10, 2), False),
]
POINT = T.StructType([T.StructField("x", T.DoubleType()), T.StructField("y", T.DoubleType(), False)])
DEEP = T.StructType(
    [
        T.StructField("price", T.DecimalType(10, 2)),
        T.StructField("at", T.TimestampType()),
        T.StructField(
            "inner", T.StructType([T.StructField("price", T.DecimalType(12, 2)), T.StructField("point", POINT)])
        ),
        T.StructField("points", T.ArrayType(POINT)),
    ]
)
NESTED = [
    T.StructField("ints", T.ArrayType(T.IntegerType())),
    T.StructField("ints_not_null", T.ArrayType(T.IntegerType(), False), False),
    T.StructField("matrix", T.ArrayType(T.ArrayType(T.DecimalType(8, 3)))),
    T.StructField("counts", T.MapType(T.StringType(), T.LongType())),
    T.StructField("counts_not_null", T.MapType(T.StringType(), T.LongType(), False)),
    T.StructField("point", POINT),
    T.StructField("point_not_null", POINT, False),
    T.StructField("deep", DEEP),
    T.StructField("list_of_structs", T.ArrayType(DEEP)),
    T.StructField("map_of_structs", T.MapType(T.StringType(), POINT)),
    T.StructField("map_of_lists", T.MapType(T.StringType(), T.ArrayType(POINT))),
    T.StructField("days", T.ArrayType(T.DateType())),
    T.StructField("times", T.MapType(T.StringType(), T.TimestampType())),
    T.StructField("local_times", T.ArrayType(T.TimestampNTZType())),
    T.StructField("array", T.ArrayType(POINT)),
    T.StructField("value", POINT),
]


def rows(*, null_items: bool) -> list[tuple[Any, ...]]:
    """Return rows with ordinary, extreme and null values in every column; nulls inside lists only with `null_items`."""
    from datetime import UTC, date, datetime
    from decimal import Decimal

    moments = [
        datetime(2026, 7, 1, 12, 30, 15, 123456),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime(1500, 3, 1, 1, 2, 3),
    ]
    days = [date(2026, 7, 1), date(1969, 12, 31), date(1500, 3, 1)]
    texts = ["plain", "ünïcödé ✓ 😀", ""]
    out: list[tuple[Any, ...]] = []
    for n in range(3):
        sign = (1, -1, 0)[n]
        point = (1.5 * sign, -0.0)
        at = moments[n].replace(tzinfo=UTC)
        deep = (Decimal("12.34") * sign, at, (Decimal("0.01"), point), [point, point])
        out.append(
            (
                f"k{n}", n == 0, (127, -128, 0)[n], (32767, -32768, 0)[n], (2**31 - 1, -(2**31), 0)[n], n,
                (2**63 - 1, -(2**63), 0)[n], (1.5, float("nan"), -0.0)[n], (float("inf"), float("nan"), -0.0)[n],
                texts[n], (b"\x00\xff", b"", b"abc")[n], days[n], at, moments[n],
                *(Decimal((0 if sign >= 0 else 1, (9,) * p if sign else (0,), -s)) for p, s in DECIMALS),
                Decimal("1.25"),
                [1, None, 3] if null_items else [1, 3], [n], [[Decimal("1.125"), None], None, []] if null_items else [[Decimal("1.125")], []], {"a": 1, "b": None}, {"a": 1}, point, point, deep,
                [deep, None] if null_items else [deep], {"p": point, "q": None}, {"l": [point], "m": None}, [days[n]], {"t": at}, [moments[n]], [point], point,
            )
        )  # fmt: skip
    nulls: list[Any] = [None] * len(out[0])
    not_null = {i: f for i, f in enumerate([*FLAT, *NESTED]) if not f.nullable}
    for i in not_null:
        nulls[i] = out[0][i]
    nulls[0] = "null"
    out.append(tuple(nulls))
    return out


def commit_schema(path: Path) -> str:
    """Return extraMetadata.schema of the newest completed commit, as stored."""
    done = sorted(p for p in (path / ".hoodie/timeline").glob("*_*") if p.suffix in (".commit", ".deltacommit"))
    (record,) = fastavro.reader(io.BytesIO(done[-1].read_bytes()))
    return str(record["extraMetadata"]["schema"])  # type: ignore[index,call-overload]


def write(frame: Any, path: Path, name: str, **options: str) -> None:
    """Write one commit of a copy-on-write table."""
    (
        frame.write.format("hudi")
        .options(**SMALL)
        .options(**{"hoodie.table.name": name, "hoodie.datasource.write.recordkey.field": "id", **options})
        .mode("append")
        .save(str(path))
    )


def base_file(path: Path) -> Path:
    """Return the newest base file below `path`."""
    return max((p for p in path.rglob("*.parquet")), key=lambda p: p.stat().st_mtime_ns)


def describe(path: Path) -> dict[str, Any]:
    """Describe a Parquet file's physical layout."""
    file = pq.ParquetFile(path)
    columns = [file.schema.column(i) for i in range(len(file.schema))]
    return {
        "columns": {
            c.path: [c.physical_type, str(c.logical_type), c.length, c.max_definition_level, c.max_repetition_level]
            for c in columns
        },
        "footer_keys": sorted(k.decode() for k in file.metadata.metadata or {}),
        "avro_schema": json.loads((file.metadata.metadata or {}).get(b"parquet.avro.schema", b"null")),
    }


def all_types(spark: Any, work: Path) -> dict[str, Any]:
    """Write the table of all types with both writers."""
    schema = T.StructType([*FLAT, *NESTED])
    result: dict[str, Any] = {"spark_schema": json.loads(schema.json())}
    try:
        write(spark.createDataFrame(rows(null_items=True), schema).coalesce(1), work / "null_items", "all_types")
    except Exception as error:
        result["null_items_with_avro_writer"] = first_cause(error)
    for file_name, options in {
        "all_types": {"hoodie.datasource.write.operation": "upsert"},
        "all_types_row_writer": {"hoodie.datasource.write.operation": "bulk_insert"},
    }.items():
        path = work / file_name
        # The Avro writer's two-level lists cannot hold null items: the reference fails on them.
        frame = spark.createDataFrame(rows(null_items=file_name != "all_types"), schema).coalesce(1)
        if file_name != "all_types":
            # The row writer of 1.2.0 knows neither bytes nor shorts ("Unsupported type: ByteType").
            frame = frame.drop("tiny", "small")
        write(frame, path, "all_types", **options)
        shutil.copy(base_file(path), HERE / f"{file_name}.parquet")
        result[file_name] = {"schema": commit_schema(path), **describe(base_file(path))}
    return result


def names(spark: Any, work: Path) -> dict[str, Any]:
    """Record the schema for table names and column names with special characters."""
    out: dict[str, Any] = {}
    frame = spark.createDataFrame(
        [("a", (1.0, 2.0))], T.StructType([T.StructField("id", T.StringType(), False), T.StructField("p", POINT)])
    )
    for i, name in enumerate(["plain", "my-table", "v1.trips", "1st", "täble", "a b", "__x", "-x", "x.y-z"]):
        try:
            write(frame, work / f"name{i}", name)
            out[name] = commit_schema(work / f"name{i}")
        except Exception as error:
            out[name] = {"error": first_cause(error)}
    columns: dict[str, Any] = {}
    for i, column in enumerate(["a-b", "a.b", "ü", "a b", "1a", "A", "_x", "a$b"]):
        try:
            write(frame.withColumnRenamed("p", column), work / f"column{i}", "t")
            columns[column] = commit_schema(work / f"column{i}")
        except Exception as error:
            columns[column] = {"error": first_cause(error)}
    return {"tables": out, "columns": columns}


# `nullif` makes columns nullable, as most columns of data frames are; bare literals are not null.
EVOLUTION = {
    "add_nullable": ("'a' as id, 1 as v", "'b' as id, 2 as v, nullif('x', '') as extra"),
    "add_nullable_in_middle": ("'a' as id, 1 as v, 2 as w", "'b' as id, 2 as v, nullif('x', '') as extra, 3 as w"),
    "add_two_first": ("'a' as id, 1 as v", "nullif('y', '') as y, nullif('x', '') as x, 2 as v, 'b' as id"),
    "add_not_null": ("'a' as id, 1 as v", "'b' as id, 2 as v, 'x' as extra"),
    "missing_nullable_nullif": ("'a' as id, 1 as v, nullif('w', '') as w", "'b' as id, 2 as v"),
    "nullable_long_to_int": ("'a' as id, nullif(5000000000, 0) as v", "'b' as id, nullif(1, 0) as v"),
    "nullable_int_to_long": ("'a' as id, nullif(1, 0) as v", "'b' as id, nullif(5000000000, 0) as v"),
    "float_to_string": ("'a' as id, cast(1.5 as float) as v", "'b' as id, 'x' as v"),
    "long_to_string": ("'a' as id, 1L as v", "'b' as id, 'x' as v"),
    "decimal_to_string": ("'a' as id, cast(1 as decimal(10,2)) as v", "'b' as id, 'x' as v"),
    "boolean_to_int": ("'a' as id, true as v", "'b' as id, 1 as v"),
    "struct_add_nullable": ("'a' as id, named_struct('x', 1) as v", "'b' as id, named_struct('x', 1, 'y', nullif('n', '')) as v"),
    "struct_missing_nullable": ("'a' as id, named_struct('x', 1, 'y', nullif('n', '')) as v", "'b' as id, named_struct('x', 1) as v"),
    "struct_reorder": ("'a' as id, named_struct('x', 1, 'y', 'n') as v", "'b' as id, named_struct('y', 'm', 'x', 2) as v"),
    "list_struct_add_nullable": (
        "'a' as id, array(named_struct('x', 1)) as v", "'b' as id, array(named_struct('x', 1, 'y', nullif(2, 0))) as v"
    ),
    "map_struct_add_nullable": (
        "'a' as id, map('k', named_struct('x', 1)) as v", "'b' as id, map('k', named_struct('x', 1, 'y', nullif(2, 0))) as v"
    ),
    "reorder": ("'a' as id, 1 as v, 'w' as w", "'w2' as w, 'b' as id, 2 as v"),
    "missing_nullable": ("'a' as id, cast(1 as int) as v, if(true, 1, null) as w", "'b' as id, 2 as v"),
    "missing_not_null": ("'a' as id, 1 as v, 2 as w", "'b' as id, 2 as v"),
    "int_to_long": ("'a' as id, 1 as v", "'b' as id, 5000000000 as v"),
    "int_to_float": ("'a' as id, 1 as v", "'b' as id, cast(1.5 as float) as v"),
    "int_to_double": ("'a' as id, 1 as v", "'b' as id, cast(1.5 as double) as v"),
    "int_to_string": ("'a' as id, 1 as v", "'b' as id, 'x' as v"),
    "int_to_decimal": ("'a' as id, 1 as v", "'b' as id, cast(1 as decimal(12,2)) as v"),
    "long_to_int": ("'a' as id, 5000000000 as v", "'b' as id, 1 as v"),
    "long_to_float": ("'a' as id, 5000000000 as v", "'b' as id, cast(1.5 as float) as v"),
    "long_to_double": ("'a' as id, 5000000000 as v", "'b' as id, cast(1.5 as double) as v"),
    "float_to_double": ("'a' as id, cast(1.1 as float) as v", "'b' as id, cast(1.1 as double) as v"),
    "float_to_int": ("'a' as id, cast(1.5 as float) as v", "'b' as id, 1 as v"),
    "double_to_float": ("'a' as id, cast(1.5 as double) as v", "'b' as id, cast(1.5 as float) as v"),
    "double_to_int": ("'a' as id, cast(1.5 as double) as v", "'b' as id, 7 as v"),
    "double_to_long": ("'a' as id, cast(1.5 as double) as v", "'b' as id, 5000000000 as v"),
    "string_to_int": ("'a' as id, 'x' as v", "'b' as id, 1 as v"),
    "string_to_date": ("'a' as id, 'x' as v", "'b' as id, date'2026-01-01' as v"),
    "date_to_string": ("'a' as id, date'2026-01-01' as v", "'b' as id, 'x' as v"),
    "string_to_binary": ("'a' as id, 'x' as v", "'b' as id, cast('y' as binary) as v"),
    "binary_to_string": ("'a' as id, cast('y' as binary) as v", "'b' as id, 'x' as v"),
    "decimal_wider": ("'a' as id, cast(1 as decimal(10,2)) as v", "'b' as id, cast(2 as decimal(12,2)) as v"),
    "decimal_wider_fewer_bytes": ("'a' as id, cast(1 as decimal(10,2)) as v", "'b' as id, cast(2 as decimal(11,2)) as v"),
    "decimal_scale": ("'a' as id, cast(1 as decimal(10,2)) as v", "'b' as id, cast(2 as decimal(10,3)) as v"),
    "decimal_narrower": ("'a' as id, cast(1 as decimal(12,2)) as v", "'b' as id, cast(2 as decimal(10,2)) as v"),
    "date_to_timestamp": ("'a' as id, date'2026-01-01' as v", "'b' as id, timestamp'2026-01-01 00:00:00' as v"),
    "timestamp_to_long": ("'a' as id, timestamp'2026-01-01 00:00:00' as v", "'b' as id, 1L as v"),
    "long_to_timestamp": ("'a' as id, 1L as v", "'b' as id, timestamp'2026-01-01 00:00:00' as v"),
    "timestamp_to_ntz": ("'a' as id, timestamp'2026-01-01 00:00:00' as v", "'b' as id, timestamp_ntz'2026-01-01 00:00:00' as v"),
    "not_null_to_null": ("'a' as id, 1 as v", "'b' as id, cast(null as int) as v"),
    "null_to_not_null": ("'a' as id, cast(null as int) as v", "'b' as id, 1 as v"),
    "case": ("'a' as id, 1 as v", "'b' as id, 1 as V"),
    "struct_add": ("'a' as id, named_struct('x', 1) as v", "'b' as id, named_struct('x', 1, 'y', 'n') as v"),
    "struct_missing": ("'a' as id, named_struct('x', if(true,1,null), 'y', if(true,'n',null)) as v", "'b' as id, named_struct('x', 1) as v"),
    "struct_widen": ("'a' as id, named_struct('x', 1) as v", "'b' as id, named_struct('x', 1L) as v"),
    "struct_to_int": ("'a' as id, named_struct('x', 1) as v", "'b' as id, 1 as v"),
    "list_widen": ("'a' as id, array(1) as v", "'b' as id, array(1L) as v"),
    "list_struct_add": ("'a' as id, array(named_struct('x', 1)) as v", "'b' as id, array(named_struct('x', 1, 'y', 2)) as v"),
    "map_widen": ("'a' as id, map('k', 1) as v", "'b' as id, map('k', 1L) as v"),
}  # fmt: skip


def evolution(spark: Any, work: Path) -> dict[str, Any]:
    """Write two commits per case and record whether the second was accepted, its schema, and the rows after it."""
    out: dict[str, Any] = {}
    for name, (first, second) in EVOLUTION.items():
        path = work / f"evolve_{name}"
        case: dict[str, Any] = {}
        write(spark.sql(f"select {first}"), path, "t")
        case["before"] = commit_schema(path)
        case["incoming_spark"] = json.loads(spark.sql(f"select {second}").schema.json())
        try:
            write(spark.sql(f"select {second}"), path, "t", **{"hoodie.datasource.write.operation": "upsert"})
            case["after"] = commit_schema(path)
            case["rows"] = [
                r for r in spark.read.format("hudi").load(str(path)).drop(*META_FIELDS).orderBy("id").toJSON().collect()
            ]
        except Exception as error:
            case["error"] = first_cause(error)
        out[name] = case
    return out


def main() -> None:
    """Make all golden data of this folder."""
    work = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    only = sys.argv[2:]
    spark = open_session()
    try:
        for part in (all_types, names, evolution):
            if only and part.__name__ not in only:
                continue
            result = part(spark, work)
            (HERE / f"{part.__name__}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
            print(part.__name__, "done", flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
