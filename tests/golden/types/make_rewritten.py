"""Let the JVM read and update tables whose base files pyarrow rewrote: three-level lists, no `parquet.avro.schema`.

Run with a PySpark 3.5 environment: `python -m tests.golden.types.make_rewritten [work folder [variant ...]]`; writes `rewritten.json`: per
variant whether the reference reads the rewritten file, whether its next upsert merges it, and the rows that changed by it.
"""

# ruff: noqa: E501 (tables of cases, one per line)

from __future__ import annotations

import io
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as T

from tests.golden.jvm_session import first_cause, open_session
from tests.golden.types.make_types import FLAT, META, NESTED, base_file, rows, write

HERE = Path(__file__).parent
MILLIS = {
    "at": ("timestamp-millis", pa.timestamp("ms", "UTC")),
    "local_at": ("local-timestamp-millis", pa.timestamp("ms")),
}


def rewrite(
    path: Path,
    change: Callable[[pa.Table], pa.Table] = lambda table: table,
    *,
    footers: bool = True,
    avro_schema: bool = False,
) -> None:
    """Write the newest base file again with pyarrow, with Hudi's own footers or none, with the Avro schema or not."""
    file = base_file(path)
    old = pq.ParquetFile(file)
    table = change(old.read())
    found = old.metadata.metadata or {}
    kept = {k: v for k, v in found.items() if footers and (avro_schema or k != b"parquet.avro.schema")}
    kept.pop(b"writer.model.name", None)
    table = table.replace_schema_metadata(kept)
    file.unlink()
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    pq.write_table(table, file, store_schema=False, compression="zstd")


def edit_schema(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change the Avro schema that the newest commit stored."""
    done = max((path / ".hoodie/timeline").glob("*_*.commit"))
    reader = fastavro.reader(io.BytesIO(done.read_bytes()))
    (record,) = reader
    schema = json.loads(record["extraMetadata"]["schema"])  # type: ignore[index,call-overload]
    edit(schema)
    record["extraMetadata"]["schema"] = json.dumps(schema)  # type: ignore[index,call-overload]
    out = io.BytesIO()
    fastavro.writer(out, reader.writer_schema, [record])
    done.write_bytes(out.getvalue())
    done.with_name(f".{done.name}.crc").unlink(missing_ok=True)


def to_millis(path: Path) -> None:
    """Make the timestamps of a table milliseconds, in its schema and in its base file."""

    def edit(schema: dict[str, Any]) -> None:
        for field in schema["fields"]:
            if field["name"] in MILLIS:
                field["type"] = ["null", {"type": "long", "logicalType": MILLIS[field["name"]][0]}]

    def change(table: pa.Table) -> pa.Table:
        for name, (_, kind) in MILLIS.items():
            table = table.set_column(table.column_names.index(name), name, table[name].cast(kind, safe=False))
        return table

    edit_schema(path, edit)
    rewrite(path, change)


def with_extra(path: Path, name: str, avro: Any, kind: pa.DataType, values: list[Any]) -> None:
    """Add a column of a type that no data frame has."""
    edit_schema(path, lambda schema: schema["fields"].append({"name": name, "type": ["null", avro], "default": None}))
    rewrite(path, lambda table: table.append_column(name, pa.array(values[: len(table)], kind)))


def null_items(table: pa.Table) -> pa.Table:
    """Put a null into a list: two-level lists of the reference cannot hold it, three-level lists can."""
    position = table.column_names.index("ints")
    return table.set_column(
        position, "ints", pa.array([[1, None], None, [None], []][: len(table)], pa.list_(pa.int32()))
    )


def untouched(path: Path) -> None:
    """Leave the file of the reference as it is: tells its own limits from ours."""
    assert base_file(path)


def snapshot(spark: Any, path: Path) -> list[str]:
    """Read all rows as JSON."""
    return list(spark.read.format("hudi").load(str(path)).drop(*META).orderBy("id").toJSON().collect())


def variant(spark: Any, path: Path, frame: Any, prepare: Callable[[Path], None]) -> dict[str, Any]:
    """Write, rewrite, read, update one row, read again."""
    out: dict[str, Any] = {}
    write(frame, path, "rewritten")
    try:
        before = snapshot(spark, path)
        prepare(path)
        read = snapshot(spark, path)
        out["read_changes"] = [pair for pair in zip(before, read, strict=True) if pair[0] != pair[1]]
    except Exception as error:
        out["read_error"] = first_cause(error)
        return out
    for operation in ("upsert", "insert"):
        try:
            write(frame.where("id = 'k0'"), path, "rewritten", **{"hoodie.datasource.write.operation": operation})
            after = snapshot(spark, path)
            out[f"{operation}_changes"] = [pair for pair in zip(read, after, strict=False) if pair[0] != pair[1]]
        except Exception as error:
            out[f"{operation}_error"] = first_cause(error)
            return out
    file = pq.ParquetFile(base_file(path))
    out["list_layout_after"] = [
        c for c in (file.schema.column(i).path for i in range(len(file.schema))) if c.startswith("ints")
    ]
    out["footers_after"] = sorted(k.decode() for k in file.metadata.metadata or {})
    return out


def main() -> None:
    """Run all variants."""
    work = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    spark = open_session()
    everything = spark.createDataFrame(rows(null_items=False), T.StructType([*FLAT, *NESTED])).coalesce(1)
    few = everything.select("id", "flag", "at", "local_at", "ints")
    flat = everything.select("id", "flag", "at")
    nested = everything.select("id", "point", "deep")
    clock = {"type": "long", "logicalType": "time-micros"}
    clock_millis = {"type": "int", "logicalType": "time-millis"}
    plans: dict[str, tuple[Any, Callable[[Path], None]]] = {
        "all_types": (everything, rewrite),
        "avro_schema": (everything, lambda path: rewrite(path, avro_schema=True)),
        "all_types_untouched": (everything, untouched),
        "unique_names_untouched": (everything.drop("deep", "list_of_structs"), untouched),
        "local_time_untouched": (few, untouched),
        "local_time": (few, rewrite),
        "unique_names": (everything.drop("deep", "list_of_structs"), rewrite),
        "same_names": (nested, rewrite),
        "same_names_avro_schema": (nested, lambda path: rewrite(path, avro_schema=True)),
        "no_footers": (everything, lambda path: rewrite(path, footers=False)),
        "null_items": (few, lambda path: rewrite(path, null_items)),
        "millis": (few, to_millis),
        "time_micros": (flat, lambda path: with_extra(path, "t", clock, pa.time64("us"), [1, 2, 3, 4])),
        "time_millis": (flat, lambda path: with_extra(path, "t", clock_millis, pa.time32("ms"), [1, 2, 3, 4])),
        "fixed": (
            flat,
            lambda path: with_extra(path, "t", {"type": "fixed", "name": "f4", "size": 4}, pa.binary(4), [b"abcd"] * 4),
        ),
        "uuid": (
            flat,
            lambda path: with_extra(path, "t", {"type": "string", "logicalType": "uuid"}, pa.string(), ["u"] * 4),
        ),
        "enum": (
            flat,
            lambda path: with_extra(
                path, "t", {"type": "enum", "name": "e", "symbols": ["A", "B"]}, pa.string(), ["A"] * 4
            ),
        ),
    }
    result = {}
    try:
        for name, (frame, prepare) in plans.items():
            if len(sys.argv) > 2 and name not in sys.argv[2:]:
                continue
            result[name] = variant(spark, work / name, frame, prepare)
            print(name, json.dumps(result[name])[:1500], flush=True)
    finally:
        spark.stop()
    target = HERE / "rewritten.json"
    result = (json.loads(target.read_text()) if target.exists() else {}) | result
    target.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
