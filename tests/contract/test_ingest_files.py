"""Files as a source, read by Spark: the same rows and bad rows as in process."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import SourceError, UnsupportedError
from hoodie.ingest.source import Decoded, Request
from hoodie.ingest.sources.files import Files
from hoodie.storage import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.connect]

OLD = 1_700_000_000_000
ID = pa.schema([("id", pa.int64())])


def put(folder: Path, path: str, data: bytes | str, number: int = 0) -> None:
    store = LocalStore(folder)
    store.replace(path, data.encode() if isinstance(data, str) else data)
    store.set_modified_ms(path, OLD + number)


def read(spark: SparkSession, source: Files, schema: pa.Schema | None = None) -> tuple[list[Any], Any]:
    """Return the rows as dictionaries, sorted by `id`, and the bad rows."""
    batch = source.plan(Request(spark=spark, schema=schema))
    assert batch is not None
    found = batch.read()
    assert isinstance(found, Decoded)
    rows = found.rows.drop(*found.order).collect()
    return sorted((row.asDict() for row in rows), key=lambda row: row["id"]), found.bad


def positions(bad: Any) -> list[tuple[str, str]]:
    return sorted((row["position"].rpartition("/")[2], row["value"]) for row in bad.rows().collect())


def test_json_lines(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "day=1/a [1].json", '{"id":1}\n{"id":\n{"id":2,"n":"x"}\n')
    put(tmp_path, "b.json.gz", gzip.compress(b'{"id":3}\n{"id":"y"}\n'), 1)
    rows, bad = read(spark, Files(path=str(tmp_path)), ID)
    assert rows == [{"id": 1, "n": None}, {"id": 2, "n": "x"}, {"id": 3, "n": None}]
    assert bad.count() == 2
    assert positions(bad) == [("a%20%5B1%5D.json", '{"id":'), ("b.json.gz", '{"id":"y"}')]
    assert {row["reason"] for row in bad.rows(1).collect()} == {
        "expected a JSON object whose values have the types of the columns"
    }
    assert read(spark, Files(path=str(tmp_path), new_columns=False), ID)[0] == [{"id": 1}, {"id": 2}, {"id": 3}]
    put(tmp_path / "bad", "a.json", "x\ny\n")
    with pytest.raises(SourceError, match=r"a\.json: expected JSON lines, found no line with a JSON object"):
        read(spark, Files(path=str(tmp_path / "bad")))


def test_csv_files_of_different_headers(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "a.csv", 'id,n\n1,"a ""b"", c"\n2\n3,\nx,y\n4,NA\n')
    put(tmp_path, "b.csv", "n,id,m\nz,5,1.5\nz,6,1.5,7\n", 1)
    source = Files(path=str(tmp_path), null_texts=["NA"])
    rows, bad = read(spark, source, ID)
    assert rows == [
        {"id": 1, "n": 'a "b", c', "m": None},
        {"id": 3, "n": None, "m": None},
        {"id": 4, "n": None, "m": None},
        {"id": 5, "n": "z", "m": 1.5},
    ]
    assert bad.count() == 3
    assert positions(bad) == [("a.csv", "2"), ("a.csv", "x,y"), ("b.csv", "z,6,1.5,7")]
    assert read(spark, Files(path=str(tmp_path), new_columns=False), ID)[0] == [{"id": n} for n in (1, 3, 4, 5)]
    with pytest.raises(SourceError, match=r"column 'id' has the type string in .*a\.csv, but int in .*b\.csv"):
        read(spark, source)
    with pytest.raises(UnsupportedError, match="null_texts: Spark accepts one text"):
        read(spark, Files(path=str(tmp_path), null_texts=["NA", "-"]))


def test_parquet_and_orc_files(spark: SparkSession, tmp_path: Path) -> None:
    for number, table in enumerate([{"id": [1], "a": ["x"]}, {"b": [1.5], "id": [2]}]):
        put(tmp_path, f"{number}.parquet", b"", number)
        pq.write_table(pa.table(table), tmp_path / f"{number}.parquet")
        LocalStore(tmp_path).set_modified_ms(f"{number}.parquet", OLD + number)
    rows, bad = read(spark, Files(path=str(tmp_path)))
    assert rows == [{"id": 1, "a": "x", "b": None}, {"id": 2, "a": None, "b": 1.5}]
    assert bad is None
    spark.createDataFrame([(3, "z")], "id BIGINT, a STRING").write.orc(str(tmp_path / "orc"))
    source = Files(path=str(tmp_path / "orc"), pattern="*.orc", lag_seconds=0)
    assert read(spark, source)[0] == [{"id": 3, "a": "z"}]
    pq.write_table(pa.table({"id": ["text"]}), tmp_path / "2.parquet")
    with pytest.raises(
        SourceError, match=r"column 'id' has the type int64 in .*0\.parquet, but string in .*2\.parquet"
    ):
        read(spark, Files(path=str(tmp_path), pattern="*.parquet", lag_seconds=0))


NEVER_LOST = [
    '{"id":1}{"id":2}',
    '{"id":1} {"id":2}',
    '[{"id":1},{"id":2}]',
    '[{"id":1}]',
    '{"id":1}]',
    '{"id":1,"x":1e999}',
    '{"id":9223372036854775808}',
    "null",
    "7",
    '"text"',
]


def test_a_json_line_is_a_row_or_a_bad_row(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([*ID, ("x", pa.float64())])
    good = ['{"id":11,"x":"NaN","e":{"a b":[{"c":1.5}]}}', '{"id":12,"x":"Infinity"}', "  ", '{"id":13,"x":2}', "{}"]
    text = "\n".join([*good, *NEVER_LOST]).encode() + b'\n{"id":14,"s":"\xff\xfe"}\n'
    put(tmp_path, "a.json", text)
    batch = Files(path=str(tmp_path)).plan(Request(spark=spark, schema=schema))
    assert batch is not None
    found = batch.read()
    rows = found.rows.orderBy("_hoodie_place").collect()
    assert [row["id"] for row in rows] == [11, 12, 13, None]
    assert rows[0]["e"]["a b"][0]["c"] == 1.5
    bad = {value for _, value in positions(found.bad)}
    assert bad == {*NEVER_LOST, '{"id":14,"s":"\ufffd\ufffd"}'}
    here = Files(path=str(tmp_path)).plan(Request(schema=schema))
    assert here is not None
    assert here.read().rows.read_all()["id"].to_pylist() == [11, 12, 13, None]


def test_an_empty_text_in_quotes_is_no_null(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, "a.csv", 'id,n,m\n1,"",\n2,NA,x\n')
    n = pa.schema([*ID, ("n", pa.string()), ("m", pa.string())])
    for null_texts, text in (([], "NA"), (["NA"], None)):
        rows, bad = read(spark, Files(path=str(tmp_path), null_texts=null_texts), n)
        assert rows == [{"id": 1, "n": "", "m": None}, {"id": 2, "n": text, "m": "x"}]
        assert bad.count() == 0


@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_the_row_of_the_later_file_counts(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Spark reads the largest files first, and here they are the last ones."""
    texts = ["a", "b" * 40, "a much longer text " * 200, "a longer text " * 100]
    for number, text in enumerate(texts):
        rows = pa.table({"id": pa.array([1, 2 + number], pa.int64()), "v": [text, text]})
        name = f"{9 - number}.{kind}"
        if kind == "parquet":
            put(tmp_path, f"in/{name}", b"")
            pq.write_table(rows, tmp_path / "in" / name)
            LocalStore(tmp_path / "in").set_modified_ms(name, OLD + number // 2 * 1000)
            continue
        lines = [json.dumps(row) if kind == "json" else f"{row['id']},{row['v']}" for row in rows.to_pylist()]
        put(tmp_path / "in", name, "\n".join([*(["id,v"] if kind == "csv" else []), *lines, ""]), number // 2 * 1000)
    source = {"kind": "files", "path": str(tmp_path / "in")}
    result = hoodie.ingest(source, tmp_path / "to", create={"record_key": "id"}, spark=spark)
    assert (result.batches, result.notes) == (1, ())
    found = hoodie.open(tmp_path / "to", spark=False).to_arrow()
    assert found.filter(pc.equal(found["id"], 1))["v"].to_pylist() == [texts[2]]
    assert found.column_names[-2:] == ["id", "v"]


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_times_without_a_zone_stay_so(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    at = "2026-03-08T02:30:00"  # an hour that New York does not have on this day
    put(tmp_path / "in", f"a.{kind}", f'{{"id":1,"at":"{at}"}}\n' if kind == "json" else f"id,at\n1,{at}\n")
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us"))])
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        source = {"kind": "files", "path": str(tmp_path / "in")}
        hoodie.ingest(source, tmp_path / "to", create={"record_key": "id"}, schema=schema, spark=spark)
        hoodie.ingest(source, tmp_path / "to", ignore_checkpoint="again", spark=spark)
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))
    found = hoodie.open(tmp_path / "to", spark=False).to_arrow(["id", "at"])
    assert found == pa.table([pa.array([1]), pa.array([at]).cast(pa.timestamp("us"))], schema=found.schema)
    assert found.schema.field("at").type == pa.timestamp("us")


def test_memory_is_not_read_by_spark(spark: SparkSession) -> None:
    with pytest.raises(UnsupportedError, match="expected files that Spark can read, found memory://"):
        Files(path="memory://some").plan(Request(spark=spark))
