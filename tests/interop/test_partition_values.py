"""Partition columns: null values under every key generator, and the values under the timestamp key generator."""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import UnsupportedError
from tests.interop.judges import Jvm, read_with_hudi_rs, to_arrow
from tests.support.rows import assert_same_rows

KEYGEN = "hoodie.datasource.write.keygenerator.class"
PACKAGE = "org.apache.hudi.keygen."
TIME = "hoodie.keygen.timebased."
NULLS = pa.table(
    {
        "id": ["1", "2", "3", "4"],
        "second": ["x", None, "", "x"],
        "place": ["a", "b", None, None],
        "zone": pa.array([1, None, 3, None], pa.int32()),
        "n": pa.array([1, 2, 3, 4], pa.int32()),
    }
)


COPY, MERGE = "COPY_ON_WRITE", "MERGE_ON_READ"


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(
    ("version", "generator", "partition", "kinds"),
    [
        (9, "ComplexKeyGenerator", ("place",), [("upsert", COPY), ("bulk_insert", COPY)]),
        (9, "ComplexKeyGenerator", ("place", "zone"), [("upsert", MERGE)]),
        (9, "CustomKeyGenerator", ("place:SIMPLE", "zone:SIMPLE"), [("upsert", COPY)]),
        (8, "ComplexKeyGenerator", ("place", "zone"), [("upsert", MERGE)]),
        (6, "ComplexKeyGenerator", ("place", "zone"), [("insert", COPY), ("upsert", MERGE)]),
    ],
)
def test_null_partition_values_and_key_parts_read_as_null(
    jvm: Jvm, tmp_path: Path, version: int, generator: str, partition: tuple[str, ...], kinds: list[tuple[str, str]]
) -> None:
    for operation, table_type in kinds:
        path = tmp_path / f"{operation}{table_type}"
        for rows in (NULLS, NULLS.slice(1)) if table_type == MERGE else (NULLS,):
            jvm.write(
                rows, path, table_name="nulls", key=("id", "second"), partition=partition, operation=operation,
                table_type=table_type, table_version=version, options={KEYGEN: PACKAGE + generator},
            )  # fmt: skip
        table = hoodie.open(path, spark=False)
        theirs = jvm.read(path)
        assert_same_rows(table.to_arrow(), theirs, key="id", meta=True)
        assert_same_rows(to_arrow(hoodie.open(path, spark=jvm.spark).read()), theirs, key="id", meta=True)
        assert_same_rows(table.to_arrow(NULLS.column_names), NULLS, key="id")
        assert theirs.sort_by("id")["_hoodie_record_key"].to_pylist() == [
            "id:1,second:x", "id:2,second:__null__", "id:3,second:__empty__", "id:4,second:x",
        ]  # fmt: skip
        for where, found in (("place IS NULL", ["3", "4"]), ("zone IS NULL", ["2", "4"]), ("place = 'b'", ["2"])):
            assert sorted(table.to_arrow("id", where=where)["id"].to_pylist()) == found


DAY_MS = 86_400_000
TIMES: dict[str, tuple[pa.DataType, list[Any], dict[str, str]]] = {
    "millis": (pa.int64(), [20454 * DAY_MS + 123, 20486 * DAY_MS, None], {"timestamp.type": "EPOCHMILLISECONDS"}),
    "seconds": (pa.int32(), [20454 * 86_400, 20486 * 86_400, None], {"timestamp.type": "UNIX_TIMESTAMP"}),
    "text": (
        pa.string(),
        ["2026-01-01", "2026-02-02", None],
        {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd"},
    ),
    "days": (
        pa.date32(),
        [date(2026, 1, 1), date(2026, 2, 2), None],
        {"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "days"},
    ),
}


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize(
    ("name", "output"), [("millis", "yyyy/MM/dd"), ("seconds", "yyyyMMdd"), ("text", "yyyy/MM/dd"), ("days", "yyyy-MM")]
)
def test_columns_of_the_timestamp_key_generator_keep_their_stored_type(
    jvm: Jvm, tmp_path: Path, name: str, output: str
) -> None:
    """The JVM gives the text of the same values, and finds none of them by value: it compares the formatted path."""
    kind, values, options = TIMES[name]
    path = tmp_path / "times"
    rows = pa.table({"id": ["a", "b", "c"], "at": pa.array(values, kind), "n": [1, 2, 3]})
    times = {TIME + key: text for key, text in {**options, "output.dateformat": output}.items()}
    jvm.write(
        rows, path, table_name="times", key="id", partition="at",
        options={KEYGEN: PACKAGE + "TimestampBasedKeyGenerator", **times},
    )  # fmt: skip
    table = hoodie.open(path, spark=False)
    ours, theirs = table.to_arrow(rows.column_names), jvm.read(path, rows.column_names)
    assert_same_rows(ours, rows, key="id")
    assert_same_rows(read_with_hudi_rs(path).select(rows.column_names), rows, key="id")
    assert theirs.schema.field("at").type == pa.string()
    as_text = ours.set_column(1, "at", ours["at"].cast(pa.string()))
    assert_same_rows(as_text, theirs, key="id")
    literal = f"'{values[0]}'" if name in ("text", "days") else str(values[0])
    for where, found in ((f"at = {literal}", ["a"]), (f"at > {literal}", ["b"]), ("at IS NULL", ["c"])):
        assert table.to_arrow("id", where=where)["id"].to_pylist() == found
        spark_rows = hoodie.open(path, spark=jvm.spark).read("id", where=where)
        assert to_arrow(spark_rows)["id"].to_pylist() == found
    again = table.upsert(rows.set_column(2, "n", pa.array([4, 5, 6])))
    assert (again.inserted, again.updated) == (0, 3)


@pytest.mark.parametrize("table_type", [COPY, MERGE])
def test_rows_that_a_global_index_leaves_in_their_first_partition(jvm: Jvm, tmp_path: Path, table_type: str) -> None:
    """The JVM shows the folder's value, hudi-rs and we the stored one; the full check notes the rows."""
    path = tmp_path / "trips"
    stays = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
    for ts, places in ((1, ["x", "y"]), (2, ["y", "y"])):
        rows = pa.table({"id": ["a", "b"], "ts": [ts, ts], "place": places})
        jvm.write(
            rows, path, table_name="trips", key="id", partition="place", ordering="ts", table_type=table_type,
            options=stays,
        )  # fmt: skip
    table = hoodie.open(path, spark=False)
    columns = ["id", "ts", "place"]
    assert_same_rows(table.to_arrow(columns), rows, key="id")
    assert_same_rows(read_with_hudi_rs(path).select(columns), rows, key="id")
    assert_same_rows(jvm.read(path, columns), rows.set_column(2, "place", pa.array(["x", "y"])), key="id")
    report = table.verify(full=True)
    assert report.ok
    (note,) = report.notes
    assert note.startswith("1 rows have other values of place than their partition, e.g. the rows with the keys ['a']")


def test_timestamps_of_the_sql_writer_are_refused(jvm: Jvm, tmp_path: Path) -> None:
    """Its paths are texts in its session's zone, without fractions; those of its data source are numbers."""
    path = tmp_path / "times"
    jvm.sql(
        "CREATE TABLE sql_times (id STRING, v INT, ts TIMESTAMP) USING hudi TBLPROPERTIES (primaryKey = 'id') "
        f"PARTITIONED BY (ts) LOCATION '{path}'"
    )
    jvm.sql("INSERT INTO sql_times VALUES ('a', 1, timestamp'2024-05-06 07:08:09.123'), ('b', 2, NULL)")
    jvm.sql("DROP TABLE sql_times")
    table = hoodie.open(path, spark=False)
    rows = table.to_arrow(["id", "v", "ts"])
    for write in (
        partial(table.upsert, rows),
        partial(table.bulk_insert, rows),
        partial(table.delete, rows.select(["id", "ts"])),
        partial(table.filter_exists, rows),
        partial(table.delete_where, "id = 'a'"),
        partial(table.update, {"v": "v + 1"}, where="id = 'a'"),
    ):
        with pytest.raises(UnsupportedError, match="07%3A08%3A09"):
            write()
    assert not table.timeline.pending().instants
    assert table.count("v = 1") == 1
    assert_same_rows(table.to_arrow(["id", "v"]), jvm.read(path).select(["id", "v"]), key="id")
