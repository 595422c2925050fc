"""Golden key cases: what the JVM reference made of rows, and our key generator for the same arguments."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hoodie.format.table.versions import TableVersion
from hoodie.records.keys.key_generator import KeyGenerator
from tests.support.key_generators import key_generator_for

GOLDEN: Final = Path(__file__).parents[3] / "golden" / "keys"
_TIME_PREFIX: Final = "hoodie.keygen.timebased."
_TYPES: Final = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "struct<k:string>": pa.struct([pa.field("k", pa.string())]),
    "array<int>": pa.list_(pa.int32()),
}


@cache
def cases(part: str) -> dict[str, dict[str, Any]]:
    """Return the cases of one recorded part by name."""
    return {case["name"]: case for case in json.loads((GOLDEN / f"{part}.json").read_text(encoding="utf-8"))}


@cache
def values() -> pa.RecordBatch:
    """Return the rows that most cases were written from."""
    return pq.read_table(GOLDEN / "values.parquet").combine_chunks().to_batches()[0]


def generator(case: dict[str, Any]) -> KeyGenerator:
    """Build the key generator of a case."""
    fields = [part.partition(":") for part in case["partition"].split(",") if part]
    return key_generator_for(
        kind=case["kind"],
        record_key_fields=case["keys"].split(","),
        partition_fields=[name for name, _, _ in fields],
        partition_field_types=[kind for _, _, kind in fields if kind],
        hive_style=case.get("hive", False),
        url_encode=case.get("encode", False),
        slash_separated_dates="slash.separated" in json.dumps(case["options"]),
        table_version=TableVersion.of(case.get("version", 9)),
        timestamp_options={
            key.removeprefix(_TIME_PREFIX): value
            for key, value in case["options"].items()
            if key.startswith(_TIME_PREFIX)
        },
    )


def rows(case: dict[str, Any]) -> pa.RecordBatch:
    """Return the rows a case was written from, in the order of `pos`."""
    if "input" in case:
        types = case["input"]["types"]
        schema = pa.schema([pa.field(name, _TYPES[kind]) for name, kind in types.items()])
        return pa.RecordBatch.from_pylist(case["input"]["rows"], schema=schema)
    batch = values()
    if "result" in case:
        written = pa.array([row[0] for row in case["result"]], pa.int32())
        return batch.filter(pc.is_in(batch.column("pos"), written))
    limit = re.fullmatch(r"pos < (\d+)", case["rows"])
    return batch.slice(0, int(limit.group(1))) if limit else batch
