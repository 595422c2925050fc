"""Write tables with every key generator of the JVM reference and record keys, partition paths and folders.

Run with a PySpark 3.5 environment: `python -m tests.golden.keys.make_keys [work folder]`. Writes `values.parquet` (the input rows) and
`keys.json`: per case the key generator's arguments, the rows used, and what came out, or the error.
"""

# ruff: noqa: E501 (tables of cases, one per line)

from __future__ import annotations

import json
import sys
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.jvm_session import SMALL, first_cause, open_session

HERE = Path(__file__).parent
WRITE = "hoodie.datasource.write."
TIME = "hoodie.keygen.timebased."

STRINGS = [
    "plain", "ünïcödé", "日本 😀", "with space", " lead", "trail ", "per%cent", "%2F", "a:b,c", 'q"uote', "a=b", "q?x", "back\\slash",
    "br[ack]et", "{curly}", "hat^", "hash#", "star*", "apos'", "plus+", "til~de", "pipe|", "lt<gt>", "amp&", "semi;", "at@", "dollar$", "bang!",
    "paren()", "dot.", "...", "comma,", "tick`", "-dash", "__x", "\x01\x1f", "\x7f", "\x80\u2028", "tab\tnl", "null", "NULL", "__null__", "default", "true",
]  # fmt: skip
DOUBLES = [0.0, -0.0, 1.0, -1.5, 0.1, 1e7, 9999999.0, 12345678.9, 1e-3, 9.99e-4, 1e-5, 1.0e10, 123456789012345680.0, 1e21, 1e22, 2e-323, 4.9e-324,
           1.7976931348623157e308, float("nan"), float("inf"), float("-inf"), 1 / 3, 100.0, 2.0**63, 2e23, 1e23, 8.41e21, 2.2250738585072014e-308, 1.1e-10]  # fmt: skip
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 1e7, 9999999.0, 12345678.0, 1e-3, 9.99e-4, 1e-5, 1e10, 1.17549435e-38, 1.4e-45, 3.4028235e38, float("nan"), float("inf"),
          float("-inf"), 1 / 3, 100.0, 16777216.0, 3.3e-9, 1.1e10, 2e-44, 8.5e7]  # fmt: skip
DECIMALS = ["0.00", "1.10", "-12345.67", "0.01", "-0.05", "12345678.90", "100.00"]
BIG_DECIMALS = ["0E-10", "1E-10", "1234567890.0123456789", "-0.0000001", "5", "100.5"]
DATES = [date(2026, 7, 1), date(1970, 1, 1), date(1969, 12, 31), date(1500, 3, 1), date(9999, 12, 31), date(1, 1, 1)]
TIMES = [datetime(2026, 7, 1, 12, 30, 15, 123456, UTC), datetime(1970, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
         datetime(2026, 3, 29, 0, 30, tzinfo=UTC), datetime(1500, 3, 1, 1, 2, 3, tzinfo=UTC), datetime(2026, 7, 1, 23, 45, 0, 999, UTC)]  # fmt: skip
STAMPS = ["2026-07-01T12:30:15Z", "2026-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "2024-02-29T00:00:01Z"]
OFFSET_STAMPS = ["2026-07-01T12:30:15+0200", "2026-12-31T23:59:59-0800"]


def cycle(values: list[Any], count: int) -> list[Any]:
    """Repeat values up to `count` rows."""
    return [values[i % len(values)] for i in range(count)]


def values_table() -> pa.Table:
    """Return the input rows: one column per type, `pos` numbers the rows."""
    n = len(STRINGS)
    times = cycle(TIMES, n)
    return pa.table(
        {
            "pos": pa.array(range(n), pa.int32()),
            "s": pa.array(STRINGS),
            "i": pa.array(cycle([0, 1, -1, 2**31 - 1, -(2**31)], n), pa.int32()),
            "l": pa.array(cycle([0, 1, -1, 2**63 - 1, -(2**63)], n), pa.int64()),
            "f": pa.array(cycle(FLOATS, n), pa.float32()),
            "d": pa.array(cycle(DOUBLES, n), pa.float64()),
            "b": pa.array(cycle([True, False], n)),
            "dec": pa.array([Decimal(x) for x in cycle(DECIMALS, n)], pa.decimal128(10, 2)),
            "big": pa.array([Decimal(x) for x in cycle(BIG_DECIMALS, n)], pa.decimal128(38, 10)),
            "whole": pa.array([Decimal(x) for x in cycle(["0", "100", "-7"], n)], pa.decimal128(5, 0)),
            "day": pa.array(cycle(DATES, n), pa.date32()),
            "at": pa.array(times, pa.timestamp("us", "UTC")),
            "local": pa.array([t.replace(tzinfo=None) for t in times], pa.timestamp("us")),
            "bin": pa.array(cycle([b"abc", b"\x00\xff", b"", "é".encode()], n), pa.binary()),
            "st": pa.array([{"name": s, "deep": {"n": i}} for i, s in enumerate(STRINGS)]),
            "stamp": pa.array(cycle(STAMPS, n)),
            "offset_stamp": pa.array(cycle(OFFSET_STAMPS, n)),
            "secs": pa.array(cycle([0, 1782909015, 86399, 951782400], n), pa.int64()),
            "millis": pa.array(cycle([0, 1782909015123, 86399999, 951782400000], n), pa.int64()),
            "micros": pa.array(cycle([0, 1782909015123456, 86399999999, 951782400000000], n), pa.int64()),
            "days": pa.array(cycle([0, 20635, 1, 11016], n), pa.int32()),
            "hours": pa.array(cycle([0, 495252, 1, 264384], n), pa.int64()),
            "day_text": pa.array(cycle(["2026-07-01", "1999-12-31"], n)),
            "mixed": pa.array(cycle(["2026-07-01", "2026-12-31T23:59:59Z"], n)),
            "slashes": pa.array(cycle(["a/b", "2026/07/01", "x/y/z"], n)),
            "path": pa.array(cycle(["p1", "p2"], n)),
        }
    )


def case(
    name: str, kind: str, keys: str, partition: str = "", *, op: str = "upsert", rows: str = "true", **extra: Any
) -> dict[str, Any]:
    """Describe one write."""
    return {
        "name": name,
        "kind": kind,
        "keys": keys,
        "partition": partition,
        "op": op,
        "rows": rows,
        "options": extra.pop("options", {}),
        **extra,
    }


SCALARS = ["s", "i", "l", "f", "d", "b", "dec", "big", "whole", "day", "at", "local"]


def key_cases() -> list[dict[str, Any]]:
    """Record keys of each type and generator."""
    out = []
    for op in ("upsert", "bulk_insert"):
        out.append(case(f"complex_all_types_{op}", "COMPLEX", "pos," + ",".join(SCALARS), op=op))
        out.append(case(f"complex_nested_{op}", "COMPLEX", "st.name,st.deep.n", op=op))
        out.append(case(f"simple_string_{op}", "SIMPLE", "s", "path", op=op))
        out.append(case(f"complex_one_field_{op}", "COMPLEX", "s", "path", op=op))
        out.append(case(f"complex_one_field_v8_{op}", "COMPLEX", "s", "path", op=op, version=8))
        out.append(case(f"complex_one_field_v8_new_{op}", "COMPLEX", "s", "path", op=op, version=8,
                        options={"hoodie.write.complex.keygen.new.encoding": "true"}))  # fmt: skip
        out.append(case(f"non_partition_one_{op}", "NON_PARTITION", "s", op=op))
        out.append(case(f"non_partition_two_{op}", "NON_PARTITION", "s,i", op=op))
        if op == "upsert":  # the row writer makes Java object addresses of these
            out.append(case("binary_key", "NON_PARTITION", "pos,bin"))
            out.append(case("list_key", "NON_PARTITION", "pos,lst", select="pos, array(1,2) as lst", rows="pos < 2"))
        for column in ("at", "d", "dec", "big", "day", "local", "f", "b", "whole"):
            out.append(case(f"simple_{column}_{op}", "NON_PARTITION", column, op=op, rows="pos < 6"))
        out.append(case(f"nested_simple_{op}", "SIMPLE", "st.name", "st.deep.n", op=op, rows="pos < 3"))
    return [*out, *missing_key_cases()]


def missing_key_cases() -> list[dict[str, Any]]:
    """Null, empty and missing parts of record keys."""
    out = []
    single = {"null_text": "cast(null as string)", "empty": "''", "null_int": "cast(null as int)"}
    kinds = {"simple": ("SIMPLE", "k", "path"), "complex1": ("COMPLEX", "k", "path"), "nonpart": ("NON_PARTITION", "k", ""), "complex2": ("COMPLEX", "pos,k", "path")}  # fmt: skip
    for name, expression in single.items():
        for op in ("upsert", "bulk_insert"):
            for tag, (kind, keys, partition) in kinds.items():
                select = f"pos, {'path, ' if partition else ''}{expression} as k"
                out.append(case(f"{name}_{tag}_{op}", kind, keys, partition, op=op, select=select, rows="pos = 0"))
            out.append(case(f"{name}_complex2_all_{op}", "COMPLEX", "k,k2", "path", op=op,
                            select=f"pos, path, {expression} as k, {expression} as k2", rows="pos = 0"))  # fmt: skip
            out.append(case(f"{name}_nested_parent_{op}", "COMPLEX", "pos,t.k", "path", op=op,
                            select="pos, path, cast(null as struct<k:string>) as t", rows="pos = 0"))  # fmt: skip
    out.append(case("missing_key", "SIMPLE", "nope", "path", rows="pos = 0"))
    out.append(case("missing_partition", "SIMPLE", "pos", "nope", rows="pos = 0"))
    out.append(case("consistent_timestamp_key", "NON_PARTITION", "at", rows="pos < 6",
                    options={WRITE + "keygenerator.consistent.logical.timestamp.enabled": "true"}))  # fmt: skip
    return out


def partition_cases() -> list[dict[str, Any]]:
    """Partition paths of each type, hive style or not, encoded or not."""
    out = []
    for op in ("upsert", "bulk_insert"):
        for hive in (False, True):
            for encode in (False, True):
                flags = {"hive": hive, "encode": encode}
                # Hadoop takes what is before a colon for a scheme: the reference fails on such folders.
                safe = "true" if encode else "s not like '%:%'"
                tag = f"{'hive' if hive else 'plain'}_{'encoded' if encode else 'raw'}_{op}"
                out.append(case(f"strings_{tag}", "SIMPLE", "pos", "s", op=op, rows=safe, **flags))
                out.append(case(f"slashes_{tag}", "SIMPLE", "pos", "slashes", op=op, rows="pos < 3", **flags))
                empties = "pos, case pos when 0 then null when 1 then '' else 'x' end as p, case pos when 2 then null else 1 end as q"
                for tail, kind, partition in (("", "COMPLEX", "p,q"), ("simple_", "SIMPLE", "p")):
                    out.append(
                        case(
                            f"empties_{tail}{tag}",
                            kind,
                            "pos",
                            partition,
                            op=op,
                            select=empties,
                            rows="pos < 4",
                            **flags,
                        )
                    )
        flags = {"hive": True, "encode": False}
        for column in ("i", "l", "f", "d", "b", "dec", "big", "whole", "day", "at", "local"):
            out.append(case(f"type_{column}_{op}", "SIMPLE", "pos", column, op=op, rows="pos < 6", **flags))
        out.append(case(f"type_at_encoded_{op}", "SIMPLE", "pos", "at", op=op, rows="pos < 3", hive=True, encode=True))
        out.append(case(f"nested_{op}", "COMPLEX", "pos", "st.deep.n,path", op=op, rows="pos < 3", **flags))
        out.append(case(f"non_partition_with_partition_{op}", "NON_PARTITION", "pos", "path", op=op, rows="pos < 3"))
        for tail, column, more in (("", "day_text", {}), ("date_", "day", {}), ("hive_", "day_text", {"hive": True})):
            out.append(case(f"slash_dates_{tail}{op}", "SIMPLE", "pos", column, op=op, rows="pos < 3",
                            options={WRITE + "slash.separated.date.partitioning": "true"}, **more))  # fmt: skip
    for name, value in {"up": "../x", "dotdot": "..", "dot": ".", "abs": "/abs", "trail": "a/", "double": "a//b", "hidden": ".hoodie",
                        "hidden2": ".hoodie/x", "under": "_x", "in": "a/../b", "dots": "...", "colon": "a:b", "colon2": "x/a:b",
                        "hash": "a#b", "query": "a?b", "percent": "a%b", "slash": "%2F", "back": "a\\\\b", "star": "*", "nl": "a\nb"}.items():  # fmt: skip
        for op in ("upsert", "bulk_insert"):
            for encode in (False, True):
                out.append(case(f"bad_{name}_{'encoded' if encode else 'raw'}_{op}", "SIMPLE", "pos", "p", op=op,
                                select=f"pos, '{value}' as p", rows="pos = 0", encode=encode))  # fmt: skip
    return out


def time_case(name: str, column: str, kind: str, out_format: str, op: str, **extra: Any) -> dict[str, Any]:
    """Describe one write with the TIMESTAMP generator."""
    options = {TIME + "timestamp.type": kind, TIME + "output.dateformat": out_format}
    options |= {TIME + k: v for k, v in extra.pop("time", {}).items()}
    rows = extra.pop("rows", "pos < 6")
    return case(f"ts_{name}_{op}", "TIMESTAMP", "pos", column, op=op, rows=rows, options=options, **extra)


def timestamp_cases() -> list[dict[str, Any]]:
    """TIMESTAMP and CUSTOM generators."""
    return [*time_value_cases(), *time_column_cases(), *custom_cases()]


def time_value_cases() -> list[dict[str, Any]]:
    """Numbers and texts, units and zones."""
    out: list[dict[str, Any]] = []

    def add(*arguments: str, **extra: Any) -> None:
        out.append(time_case(*arguments, **extra))

    for op in ("upsert", "bulk_insert"):
        add("unix", "secs", "UNIX_TIMESTAMP", "yyyy/MM/dd", op)
        add("millis", "millis", "EPOCHMILLISECONDS", "yyyy-MM-dd HH:mm:ss.SSS", op)
        add("millis_hive", "millis", "EPOCHMILLISECONDS", "yyyy/MM/dd", op, hive=True)
        add("millis_encoded", "millis", "EPOCHMILLISECONDS", "yyyy/MM/dd HH:mm", op, encode=True)
        add("micros", "micros", "EPOCHMICROSECONDS", "yyyyMMddHH", op)
        add("days", "days", "SCALAR", "yyyy-MM-dd", op, time={"timestamp.scalar.time.unit": "DAYS"})
        add("hours", "hours", "SCALAR", "yyyy-MM-dd-HH", op, time={"timestamp.scalar.time.unit": "HOURS"})
        add("scalar_default", "secs", "SCALAR", "yyyy-MM-dd-HH", op)
        add("text", "stamp", "DATE_STRING", "yyyy-MM-dd", op, time={"input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ"})
        add("text_offset", "offset_stamp", "DATE_STRING", "yyyy-MM-dd HH", op, time={"input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ"})  # fmt: skip
        add("text_offset_zone", "offset_stamp", "DATE_STRING", "yyyy-MM-dd HH", op,
            time={"input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ", "output.timezone": "Asia/Tokyo"})  # fmt: skip
        add("text_day", "day_text", "DATE_STRING", "MM/dd/yyyy", op, time={"input.dateformat": "yyyy-MM-dd"})
        add("text_day_zone", "day_text", "DATE_STRING", "yyyy-MM-dd HH", op,
            time={"input.dateformat": "yyyy-MM-dd", "input.timezone": "America/New_York"})  # fmt: skip
        add("text_list", "mixed", "DATE_STRING", "yyyyMMdd", op, time={"input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd"})  # fmt: skip
        add("text_bad", "day_text", "DATE_STRING", "yyyyMMdd", op, time={"input.dateformat": "dd.MM.yyyy"})
        add("mixed", "mixed", "MIXED", "yyyyMMdd", op, time={"input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd"})
        add("zone", "millis", "EPOCHMILLISECONDS", "yyyy-MM-dd HH", op, time={"timezone": "Asia/Tokyo"})
        add("zone_out", "millis", "EPOCHMILLISECONDS", "yyyy-MM-dd HH", op, time={"output.timezone": "Asia/Kolkata"})
        add("zone_gmt", "millis", "EPOCHMILLISECONDS", "yyyy-MM-dd HH", op, time={"timezone": "GMT+8:00"})
    return out


def time_column_cases() -> list[dict[str, Any]]:
    """Typed columns, pattern letters, nulls."""
    out: list[dict[str, Any]] = []

    def add(*arguments: str, **extra: Any) -> None:
        out.append(time_case(*arguments, **extra))

    for op in ("upsert", "bulk_insert"):
        add("column_at_millis", "at", "EPOCHMILLISECONDS", "yyyy-MM-dd HH:mm", op)
        add("column_at_micros", "at", "EPOCHMICROSECONDS", "yyyy-MM-dd HH:mm", op)
        add("column_at_unix", "at", "UNIX_TIMESTAMP", "yyyy-MM-dd", op)
        add("column_at_text", "at", "DATE_STRING", "yyyy-MM-dd", op, time={"input.dateformat": "yyyy-MM-dd"})
        add("column_local_micros", "local", "EPOCHMICROSECONDS", "yyyy-MM-dd HH", op)
        add("column_day_text", "day", "DATE_STRING", "yyyy/MM/dd", op, time={"input.dateformat": "yyyy-MM-dd"})
        add("column_day_scalar", "day", "SCALAR", "yyyy/MM/dd", op, time={"timestamp.scalar.time.unit": "DAYS"})
        add("column_day_millis", "day", "EPOCHMILLISECONDS", "yyyy/MM/dd", op)
        add("column_double", "d", "UNIX_TIMESTAMP", "yyyy/MM/dd", op, rows="pos in (2, 6)")
        add("column_float", "f", "UNIX_TIMESTAMP", "yyyy/MM/dd", op, rows="pos in (2, 6)")
        add("column_decimal", "dec", "UNIX_TIMESTAMP", "yyyy/MM/dd", op, rows="pos in (1, 5)")
        add("column_bool", "b", "UNIX_TIMESTAMP", "yyyy/MM/dd", op, rows="pos in (1, 5)")
        add("column_text_unix", "day_text", "UNIX_TIMESTAMP", "yyyy/MM/dd", op, rows="pos in (1, 5)")
        add("letters", "millis", "EPOCHMILLISECONDS", "y'y' M-d H:m:s E EEEE MMM MMMM D yy", op)
        add("letters2", "millis", "EPOCHMILLISECONDS", "YYYY a hh K kk", op)
        add("letters3", "millis", "EPOCHMILLISECONDS", "xxxx 'W'ww e", op)
        add("letters4", "millis", "EPOCHMILLISECONDS", "yyyyMMdd Z ZZ z", op)
        add("nulls", "v", "EPOCHMILLISECONDS", "yyyy/MM/dd", op, select="pos, if(pos = 0, null, 86400000L) as v", rows="pos < 2")  # fmt: skip
        add("null_text", "v", "DATE_STRING", "yyyy/MM/dd", op, select="pos, if(pos = 0, null, '2026-07-01') as v", rows="pos < 2",
            time={"input.dateformat": "yyyy-MM-dd"})  # fmt: skip
        add("null_zone", "v", "EPOCHMILLISECONDS", "yyyy/MM/dd HH", op, select="pos, if(pos = 0, null, 86400000L) as v", rows="pos < 2",
            time={"timezone": "America/New_York"})  # fmt: skip
        add("empty_text", "v", "DATE_STRING", "yyyy/MM/dd", op, select="pos, '' as v", rows="pos < 1",
            time={"input.dateformat": "yyyy-MM-dd"})  # fmt: skip
        add("negative", "l", "EPOCHMILLISECONDS", "yyyy-MM-dd HH:mm:ss", op, rows="pos = 2")
        add("two_keys", "millis", "EPOCHMILLISECONDS", "yyyy", op, keys_override="pos,s", rows="pos < 3")
    return out


def custom_cases() -> list[dict[str, Any]]:
    """The CUSTOM generator."""
    out = []
    for op in ("upsert", "bulk_insert"):
        time = {TIME + "timestamp.type": "EPOCHMILLISECONDS", TIME + "output.dateformat": "yyyy/MM/dd"}
        for hive in (False, True):
            for encode in (False, True):
                tag = f"{'hive' if hive else 'plain'}_{'encoded' if encode else 'raw'}_{op}"
                out.append(case(f"custom_{tag}", "CUSTOM", "pos", "slashes:SIMPLE,millis:TIMESTAMP", op=op, rows="pos < 6", options=time,
                                hive=hive, encode=encode))  # fmt: skip
        out.append(case(f"custom_one_{op}", "CUSTOM", "s", "millis:TIMESTAMP", op=op, rows="pos < 3", options=time))
        out.append(case(f"custom_two_keys_{op}", "CUSTOM", "s,i", "path:simple", op=op, rows="pos < 3"))
        out.append(case(f"custom_none_{op}", "CUSTOM", "s", "", op=op, rows="pos < 3"))
        out.append(case(f"custom_no_type_{op}", "CUSTOM", "s", "path", op=op, rows="pos < 3"))
        out.append(case(f"custom_null_{op}", "CUSTOM", "pos", "p:SIMPLE,v:TIMESTAMP", op=op, rows="pos < 2", options=time,
                        select="pos, cast(null as string) as p, cast(null as bigint) as v"))  # fmt: skip
        out.append(case(f"complex_with_three_{op}", "COMPLEX", "s,i", "path,b,day", op=op, rows="pos < 4", hive=True))
    return out


COLUMNS = ["pos", "_hoodie_record_key", "_hoodie_partition_path"]
KINDS = {"SIMPLE": "SimpleKeyGenerator", "COMPLEX": "ComplexKeyGenerator", "NON_PARTITION": "NonpartitionedKeyGenerator",
         "TIMESTAMP": "TimestampBasedKeyGenerator", "CUSTOM": "CustomKeyGenerator", "GLOBAL_DELETE": "GlobalDeleteKeyGenerator"}  # fmt: skip


def run(spark: Any, spec: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write one case and return it with its outcome."""
    frame = spark.sql(f"select {spec.get('select', '*')} from vals where {spec['rows']}").coalesce(1)
    keys = spec.get("keys_override", spec["keys"])
    options = {
        "hoodie.table.name": "t",
        WRITE + "recordkey.field": keys,
        WRITE + "partitionpath.field": spec["partition"],
        WRITE + "keygenerator.class": "org.apache.hudi.keygen." + KINDS[spec["kind"]],
        WRITE + "hive_style_partitioning": str(spec.get("hive", False)).lower(),
        WRITE + "partitionpath.urlencode": str(spec.get("encode", False)).lower(),
        WRITE + "operation": spec["op"],
        "hoodie.combine.before.upsert": "false",
        **spec["options"],
    }
    if "version" in spec:
        options |= {"hoodie.write.table.version": str(spec["version"]), "hoodie.write.auto.upgrade": "false"}
    result = {**spec, "keys": keys}
    if "select" in spec:
        result["input"] = {"types": dict(frame.dtypes), "rows": [row.asDict(recursive=True) for row in frame.collect()]}
    try:
        frame.write.format("hudi").options(**SMALL).options(**options).mode("append").save(str(path))
        found = []
        for file in sorted(path.rglob("*.parquet")):
            table = pq.ParquetFile(file).read(columns=COLUMNS).select(COLUMNS)
            folder = str(file.parent.relative_to(path))
            found += [[*row.values(), "" if folder == "." else folder] for row in table.to_pylist()]
        # No rows: the files lie outside the table's folder.
        result["result"] = sorted(found, key=lambda row: row[0])
        stored = (path / ".hoodie/hoodie.properties").read_text().splitlines()
        result["properties"] = dict(
            line.split("=", 1) for line in stored if "key" in line.split("=")[0] or "partition" in line.split("=")[0]
        )
    except Exception as error:
        result["error"] = first_cause(error)
    return result


def main() -> None:
    """Make all golden data of this folder."""
    work = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    table = values_table()
    pq.write_table(table, HERE / "values.parquet", compression="zstd")
    spark = open_session()
    try:
        spark.read.parquet(str(HERE / "values.parquet")).coalesce(1).createOrReplaceTempView("vals")
        for part in (key_cases, partition_cases, timestamp_cases):
            if only and part.__name__ != only:
                continue
            out = [run(spark, spec, work / part.__name__ / spec["name"] / "table") for spec in part()]
            (HERE / f"{part.__name__}.json").write_text(
                "[\n" + ",\n".join(json.dumps(o, ensure_ascii=False) for o in out) + "\n]\n"
            )
            print(part.__name__, len(out), "done", flush=True)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
