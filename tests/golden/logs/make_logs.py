"""Let the JVM reference write log files of every kind of block; keep the files and the rows they hold.

Run with a PySpark 3.5 environment: `python -m tests.golden.logs.make_logs <work folder> [part ...]`; writes beside itself.
"""

# ruff: noqa: E501 (SQL)

from __future__ import annotations

import base64
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import types as T

from tests.golden.jvm_session import first_cause, open_session
from tests.golden.types.make_types import FLAT, NESTED, rows
from tests.golden.types.make_types import write as write_commit

HERE = Path(__file__).parent
FORMATS = ("avro", "parquet", "hfile")


def write(frame: Any, path: Path, name: str, **options: str) -> None:
    """Write one commit of a merge-on-read table."""
    kind = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.datasource.write.operation": "upsert"}
    write_commit(frame, path, name, **{**kind, **options})


def newest_log(path: Path) -> Path:
    """Return the newest log file below `path`, metadata aside."""
    logs = [p for p in path.rglob(".*.log.*") if p.suffix != ".crc" and ".hoodie" not in p.relative_to(path).parts]
    return max(logs, key=lambda p: p.stat().st_mtime_ns)


def data_types(spark: Any, work: Path) -> dict[str, Any]:
    """One table for each format of data blocks, with every type; `data_<format>.log` is the log of its upsert."""
    schema = T.StructType([*FLAT, *NESTED])
    out: dict[str, Any] = {}
    for data_format in FORMATS:
        path = work / f"data_{data_format}"
        name = f"data_{data_format}"
        options = {"hoodie.logfile.data.block.format": data_format}
        try:
            write(spark.createDataFrame(rows(null_items=False), schema).coalesce(1), path, name)
            changed = spark.createDataFrame(rows(null_items=data_format != "parquet"), schema).coalesce(1)
            write(changed, path, name, **options)
            shutil.copy(newest_log(path), HERE / f"{name}.log")
            out[data_format] = "written"
            read = spark.read.format("hudi").load(str(path)).orderBy("id")
            (HERE / f"{name}.txt").write_text("\n".join(str(row) for row in read.collect()) + "\n")
        except Exception as error:
            out[data_format] = out.get(data_format, "") + " error: " + first_cause(error)
    return out


def small(spark: Any, work: Path) -> dict[str, Any]:
    """Upsert and delete of a plain table with each format; what a snapshot read says then."""
    out: dict[str, Any] = {}
    for data_format in FORMATS:
        path = work / f"small_{data_format}"
        options = {"hoodie.logfile.data.block.format": data_format, "hoodie.datasource.write.precombine.field": "ts"}
        try:
            frame = "select concat('k', id) as id, cast(id as int) as v, 1L as ts from range(10)"
            write(spark.sql(frame).coalesce(1), path, f"small_{data_format}", **options)
            frame = "select concat('k', id) as id, cast(id + 100 as int) as v, 2L as ts from range(4)"
            write(spark.sql(frame).coalesce(1), path, f"small_{data_format}", **options)
            shutil.copy(newest_log(path), work / f"small_{data_format}.log")
            read = spark.read.format("hudi").load(str(path)).orderBy("id").select("_hoodie_record_key", "id", "v", "ts")
            out[data_format] = [list(row) for row in read.collect()]
            frame = "select concat('k', id) as id, cast(0 as int) as v, 3L as ts from range(2)"
            deleting = {**options, "hoodie.datasource.write.operation": "delete"}
            write(spark.sql(frame).coalesce(1), path, f"small_{data_format}", **deleting)
            read = spark.read.format("hudi").load(str(path)).orderBy("id").select("_hoodie_record_key", "id", "v", "ts")
            out[data_format + " deleted"] = [list(row) for row in read.collect()]
        except Exception as error:
            out[data_format + " error"] = first_cause(error)
    return out


def changes(spark: Any, work: Path) -> dict[str, Any]:
    """Change data capture of a copy-on-write table in each supplemental logging mode: `cdc_<mode>.log`."""
    out: dict[str, Any] = {}
    for mode in ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"):
        path = work / f"cdc_{mode}"
        options = {
            "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
            "hoodie.table.cdc.enabled": "true",
            "hoodie.table.cdc.supplemental.logging.mode": mode,
        }
        try:
            frame = "select concat('k', id) as id, cast(id as int) as v, nullif('x', '') as s from range(3)"
            write(spark.sql(frame).coalesce(1), path, "cdc", **options)
            frame = "select concat('k', id + 1) as id, cast(id + 100 as int) as v, nullif('y', '') as s from range(3)"
            write(spark.sql(frame).coalesce(1), path, "cdc", **options)
            shutil.copy(newest_log(path), HERE / f"cdc_{mode.lower()}.log")
            out[mode] = "written"
        except Exception as error:
            out[mode] = first_cause(error)
    return out


def partial(spark: Any, work: Path) -> dict[str, Any]:
    """MERGE INTO that changes one column of a merge-on-read table: `partial.log`."""
    path = work / "partial"
    spark.sql(
        f"create table partial (id string, v int, s string, ts bigint) using hudi location '{path}' "
        "tblproperties (type = 'mor', primaryKey = 'id', preCombineField = 'ts', 'hoodie.metadata.enable' = 'false')"
    )
    try:
        spark.sql("insert into partial values ('k0', 0, 'x', 1), ('k1', 1, 'y', 1)")
        spark.sql("set hoodie.spark.sql.merge.into.partial.updates=true")
        spark.sql(
            "merge into partial t using (select 'k1' as id, 7 as v, 2L as ts) s on t.id = s.id "
            "when matched then update set v = s.v, ts = s.ts"
        )
        shutil.copy(newest_log(path), HERE / "partial.log")
        return {"rows": [list(row) for row in spark.sql("select id, v, s, ts from partial order by id").collect()]}
    except Exception as error:
        return {"error": first_cause(error)}


def kryo(spark: Any, work: Path) -> dict[str, Any]:
    """Payloads of delete blocks of version 1 and 2 with orderings of many types: base64 of what the reference writes."""
    jvm = spark._jvm
    hudi = jvm.org.apache.hudi.common
    key, record = hudi.model.HoodieKey, hudi.model.DeleteRecord
    keys = ["key-1", "", "x", "ü✓😀", "a" * 63, "a" * 64, "b" * 200, "key-1"]
    parts = ["p=1", "p=1", "", "p=ü", "p=1", "x", "p=1", None]
    out: dict[str, Any] = {"keys": keys, "partitions": parts}

    def stored(name: str, things: Any) -> None:
        out[name] = base64.b64encode(bytes(hudi.util.SerializationUtils.serialize(things))).decode()

    version_1 = spark.sparkContext._gateway.new_array(key, len(keys))
    for place, (text, part) in enumerate(zip(keys, parts, strict=True)):
        version_1[place] = key(text, part)
    stored("v1", version_1)
    # py4j sends a Python number as Integer or Double, only larger ones as Long: no short longs, no floats.
    numbers = [2**31, -(2**31) - 1, 2**62, 2**63 - 1, -(2**63), 2**40, -(2**55), 2**56]
    values: dict[str, list[Any]] = {
        "int": [0, 1, -1, 2**31 - 1, -(2**31), 63, 64, 8192],
        "long": numbers,
        "long and none": [0, numbers[0]] * 4,
        "long and int": [1, numbers[0]] * 4,
        "double": [0.0, 1.5, -1.5, 1e300, -0.0, 2.0, 3.0, 4.0],
        "boolean": [True, False] * 4,
        "string": keys,
        "decimal": [
            jvm.java.math.BigDecimal(text)
            for text in ("0", "1.50", "-1.50", "99999999999999999999.5", "-1e-5", "0", "7", "8")
        ],
        "date": [jvm.java.sql.Date.valueOf(f"2026-07-0{day}") for day in range(1, 9)],
        "timestamp": [jvm.java.sql.Timestamp.valueOf(f"2026-07-0{day} 01:02:03.456") for day in range(1, 9)],
        "local_date": [jvm.java.time.LocalDate.parse(f"2026-07-0{day}") for day in range(1, 9)],
    }
    for name, orderings in values.items():
        try:
            array = spark.sparkContext._gateway.new_array(record, len(orderings))
            for place, ordering in enumerate(orderings):
                array[place] = record.create(keys[place], parts[place], ordering)
            stored(f"v2 {name}", array)
        except Exception as error:
            out[f"v2 {name} error"] = first_cause(error)
    return out


PARTS: dict[str, Callable[[Any, Path], dict[str, Any]]] = {
    part.__name__: part for part in (data_types, small, changes, partial, kryo)
}


def main() -> None:
    """Run all parts, or those named."""
    work = Path(sys.argv[1])
    spark = open_session()
    try:
        for part in sys.argv[2:] or list(PARTS):
            found = PARTS[part](spark, work)
            (HERE / f"{part}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
