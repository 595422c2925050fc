"""Payload classes in tables of versions 6 and 8: merged rows as the JVM has them, meta fields included."""

from __future__ import annotations

import random
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import HoodieWarning
from tests.interop.judges import Jvm, to_arrow
from tests.support.rows import assert_same_rows
from tests.support.seeds import seeded

SCHEMA = pa.schema([("id", pa.string()), ("ord", pa.int64()), ("a", pa.string()), ("b", pa.string())])
PAYLOAD = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
OPTIONS = {
    "hoodie.datasource.write.payload.class": PAYLOAD,
    "hoodie.compaction.payload.class": PAYLOAD,
    "hoodie.compact.inline": "false",
}
KEYS = [f"k{number:03}" for number in range(100)]


@pytest.mark.parametrize(("version", "table_type"), [(6, "MERGE_ON_READ"), (8, "MERGE_ON_READ"), (8, "COPY_ON_WRITE")])
@seeded(3)
def test_merged_rows_have_the_meta_fields_of_the_later_version(
    jvm: Jvm, tmp_path: Path, version: int, table_type: str, seed: int
) -> None:
    path = tmp_path / "partial"
    rng = random.Random(seed)

    def write(rows: list[tuple[Any, ...]], operation: str = "upsert") -> None:
        data = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
        jvm.write(
            data, path, table_name="partial", key="id", ordering="ord", table_type=table_type, table_version=version,
            operation=operation, options=OPTIONS,
        )  # fmt: skip

    def values() -> tuple[str | None, str | None]:
        return rng.choice([None, "x", "y", "z"]), rng.choice([None, "x", "y", "z"])

    def check() -> pa.Table:
        theirs = jvm.read(path)
        assert_same_rows(hoodie.open(path).to_arrow(), theirs, key="id", meta=True)
        assert_same_rows(to_arrow(hoodie.open(path, spark=jvm.spark).read()), theirs, key="id", meta=True)
        return theirs

    write([(key, 20, *values()) for key in KEYS])
    for step in range(3):
        write([(key, rng.choice([10, 20, 30]), *values()) for key in KEYS if rng.random() < 0.5])
        if step != 1:
            write([(key, rng.choice([0, 25]), None, None) for key in KEYS if rng.random() < 0.2], "delete")
    theirs = check()
    late = [row for row in theirs.to_pylist() if row["ord"] == 20]
    assert len({row["_hoodie_commit_time"] for row in late}) > 1, "no late row merged with an earlier one"
    if table_type == "MERGE_ON_READ":
        jvm.compact(path)
        # In a table of version 6 this procedure of 1.2.0 upgrades the metadata table only, which we then do not read.
        named = "the metadata table has version 9, the data table has version 6"
        with pytest.warns(HoodieWarning, match=named) if version == 6 else nullcontext():
            check()


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ("OverwriteWithLatestAvroPayload", ["b", "b", "b"]),
        ("DefaultHoodieRecordPayload", ["a", "b", "old"]),
        ("AWSDmsAvroPayload", ["a", "b", "a"]),
    ],
)
def test_which_record_of_a_batch_counts(jvm: Jvm, tmp_path: Path, payload: str, expected: list[str]) -> None:
    """Version 8: of the later record, and the one with the greater ordering value."""
    schema = pa.schema([("id", pa.string()), ("ord", pa.int64()), ("a", pa.string()), ("Op", pa.string())])
    options = {**OPTIONS, "hoodie.datasource.write.payload.class": f"org.apache.hudi.common.model.{payload}"}
    options["hoodie.compaction.payload.class"] = options["hoodie.datasource.write.payload.class"]

    def rows(*values: tuple[str, int, str]) -> pa.Table:
        return pa.Table.from_pylist([dict(zip(schema.names, (*row, "U"), strict=True)) for row in values], schema)

    batch = rows(("x", 9, "a"), ("x", 3, "b"), ("y", 3, "a"), ("y", 9, "b"), ("z", 4, "a"), ("z", 3, "b"))
    for is_ours in (False, True):
        path = tmp_path / f"batch{is_ours}"

        def write(data: pa.Table, path: Path = path) -> None:
            jvm.write(data, path, table_name="batch", key="id", ordering="ord", table_version=8, options=options)

        write(rows(("x", 5, "old"), ("y", 5, "old"), ("z", 5, "old")))
        if is_ours:
            hoodie.open(path).upsert(batch)
        else:
            write(batch)
        found = {row["id"]: row["a"] for row in jvm.read(path).to_pylist()}
        assert [found[key] for key in "xyz"] == expected, f"{is_ours=}"
