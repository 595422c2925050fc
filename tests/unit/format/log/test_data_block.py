"""Data blocks: log files of the reference, our own in every format, damaged ones."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError, InvalidConfigError, SchemaMismatchError, UnsupportedError
from hoodie.format.log.data_block import DataFormat, data_block, log_schema, read_data_block
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, parse_log_blocks
from hoodie.format.schema.table_schema import META_FIELDS, arrow_to_avro

LOGS = Path(__file__).parents[3] / "golden" / "logs"
INSTANT = "20261121123616628"
FORMATS = list(DataFormat)
ROWS = pa.table(
    {
        **{name: pa.array([f"{name}{row}" for row in range(3)]) for name in META_FIELDS},
        "id": pa.array([3, 1, 2]),
        "text": pa.array(["a", None, "ü"]),
        "price": pa.array([Decimal("1.25"), None, Decimal("-3.00")], pa.decimal128(10, 2)),
        "tags": pa.array([["x", "y"], [], None], pa.list_(pa.field("element", pa.string()))),
    }
)
SCHEMA = arrow_to_avro(ROWS.schema, table_name="trips")


def block_of(data_format: DataFormat, rows: pa.Table = ROWS) -> LogBlock:
    return data_block(rows, instant_time=INSTANT, avro_schema=SCHEMA, data_format=data_format)


def stored(block: LogBlock) -> LogBlock:
    (found,) = parse_log_blocks(block.to_bytes(), path="log")
    return found


def golden(name: str) -> LogBlock:
    (block,) = parse_log_blocks((LOGS / name).read_bytes(), path=name)
    return block


@pytest.mark.parametrize("data_format", FORMATS)
def test_what_is_written_is_read_again(data_format: DataFormat) -> None:
    block = stored(block_of(data_format))
    assert block.headers == {HeaderKey.INSTANT_TIME: INSTANT, HeaderKey.SCHEMA: SCHEMA}
    found = read_data_block(block, path="log")
    found.validate(full=True)
    assert found.equals(ROWS)
    assert read_data_block(block, path="log", columns=["price", "other", "id"]).equals(ROWS.select(["id", "price"]))
    nothing = ROWS.slice(0, 0)
    assert read_data_block(stored(block_of(data_format, nothing)), path="log").equals(nothing)
    chunks = pa.concat_tables([ROWS.slice(0, 1), ROWS.slice(1)])
    assert bytes(block_of(data_format, chunks).content) == bytes(block.content)


def test_a_partial_block_says_so() -> None:
    schema = log_schema(arrow_to_avro(ROWS.schema.remove(7), table_name="trips"), table_name="trips", columns=["text"])
    rows = ROWS.select([*META_FIELDS, "text"])
    block = data_block(
        rows,
        instant_time=INSTANT,
        avro_schema=schema,
        data_format=DataFormat.AVRO,
        is_partial=True,
        extra={HeaderKey.BLOCK_IDENTIFIER: "7"},
    )
    assert stored(block).headers[HeaderKey.IS_PARTIAL] == "true"
    assert stored(block).headers[HeaderKey.BLOCK_IDENTIFIER] == "7"
    assert read_data_block(stored(block), path="log").equals(rows)


def test_hfile_blocks_are_sorted_and_have_each_key_once() -> None:
    backwards = ROWS.take(pa.array([2, 0, 1]))
    assert read_data_block(block_of(DataFormat.HFILE, backwards), path="log").equals(ROWS)
    with pytest.raises(InvalidConfigError, match="null or repeated keys"):
        block_of(DataFormat.HFILE, pa.concat_tables([ROWS, ROWS]))


def test_rows_that_do_not_fit_the_schema_are_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="extra"):
        block_of(DataFormat.PARQUET, ROWS.append_column("extra", ROWS["id"]))


# The reference's log files


@pytest.mark.parametrize(("name", "kind"), [("avro", 3), ("hfile", 4), ("parquet", 5)])
def test_every_type_as_the_reference_wrote_it(name: str, kind: int) -> None:
    block = golden(f"data_{name}.log")
    assert block.block_type == kind
    rows = read_data_block(block, path=name)
    rows.validate(full=True)
    # The rows of the recipe: the one that each type of file holds under the key k1.
    by_key = {row["id"]: row for row in rows.to_pylist(maps_as_pydicts="strict")}
    assert sorted(by_key) == ["k0", "k1", "k2", "null"]
    k1 = by_key["k1"]
    assert (k1["_hoodie_record_key"], k1["tiny"], k1["count"], k1["big"]) == ("k1", -128, -(2**31), -(2**63))
    assert (k1["text"], k1["raw"], k1["day"].isoformat()) == ("ünïcödé ✓ 😀", b"", "1969-12-31")
    assert (k1["at"].isoformat(), k1["local_at"].isoformat()) == (
        "1969-12-31T23:59:59.999999+00:00",
        "1969-12-31T23:59:59.999999",
    )
    assert k1["dec_38_38"] == Decimal("-0." + "9" * 38)
    assert k1["map_of_lists"] == {"l": [{"x": -1.5, "y": -0.0}], "m": None}
    assert k1["deep"]["inner"] == {"price": Decimal("0.01"), "point": {"x": -1.5, "y": -0.0}}
    assert by_key["k0"]["matrix"] == (
        [[Decimal("1.125")], []] if name == "parquet" else [[Decimal("1.125"), None], None, []]
    )
    assert [key for key, value in by_key["null"].items() if value is not None][-1] == "point_not_null"
    again = data_block(
        rows, instant_time=INSTANT, avro_schema=block.headers[HeaderKey.SCHEMA], data_format=DataFormat.AVRO
    )
    assert str(read_data_block(again, path="log").to_pylist()) == str(rows.to_pylist())
    if name == "avro":
        assert bytes(again.content) == bytes(block.content)


def test_every_data_block_of_the_golden_tables_is_written_back_byte_for_byte(golden_tables: Path) -> None:
    blocks = list(data_blocks(golden_tables))
    assert len(blocks) == 18
    for block in blocks:
        schema = block.headers[HeaderKey.SCHEMA]
        rows = read_data_block(block, path="log")
        again = data_block(rows, instant_time=INSTANT, avro_schema=schema, data_format=DataFormat.AVRO)
        assert bytes(again.content) == bytes(block.content)
        bare = json.loads(schema)
        bare["fields"] = bare["fields"][5:]
        assert log_schema(json.dumps(bare), table_name="?") == schema


def data_blocks(tables: Path) -> Iterator[LogBlock]:
    for path in sorted(tables.rglob(".*.log.*")):
        if path.suffix != ".crc" and ".hoodie" not in path.relative_to(tables).parts:
            for block in parse_log_blocks(path.read_bytes(), path=str(path)):
                if block.block_type.holds_data:
                    yield block


def test_change_data() -> None:
    keys = read_data_block(golden("cdc_op_key_only.log"), path="log").to_pylist()
    assert sorted((row["op"], row["record_key"]) for row in keys) == [("i", "k3"), ("u", "k1"), ("u", "k2")]
    before = {row["record_key"]: row for row in read_data_block(golden("cdc_data_before.log"), path="log").to_pylist()}
    assert before["k1"] == {"op": "u", "record_key": "k1", "before": {"id": "k1", "v": 1, "s": "x"}}
    assert before["k3"]["before"] is None
    rows = read_data_block(golden("cdc_data_before_after.log"), path="log").to_pylist()
    (inserted,) = [row for row in rows if row["op"] == "i"]
    assert (inserted["before"], inserted["after"]) == (None, {"id": "k3", "v": 102, "s": "y"})


def test_a_partial_update_has_the_changed_columns() -> None:
    block = golden("partial.log")
    assert block.headers[HeaderKey.IS_PARTIAL] == "true"
    rows = read_data_block(block, path="log").drop_columns(list(META_FIELDS))
    assert rows.to_pylist() == [{"v": 7, "ts": 2}]


def test_log_files_of_hudi_s_own_tests() -> None:
    for name in ("variant_avro.log", "variant_parquet.log"):
        (row,) = read_data_block(golden(name), path=name).to_pylist()
        assert (row["id"], row["name"]) == (1, "row1")
        assert row["v"]["value"].startswith(b"\x02\x02\x01\x00\x01\x00\x03\x04\x0c{")
    (row,) = read_data_block(golden("vector.log"), path="log").to_pylist()
    assert row["name"] == "doc-2"
    assert struct.unpack("<f", row["embedding1"][:4])[0] == pytest.approx(0.1)
    rows = read_data_block(golden("bootstrap.log"), path="log")
    assert rows.num_rows == 7
    assert set(rows["_hoodie_partition_path"].to_pylist()) == {"partition_path=2025-01-02"}


# log_schema


def test_the_header_schema_is_the_table_s_with_meta_fields() -> None:
    bare = arrow_to_avro(ROWS.schema.remove(0), table_name="trips")
    fields = [field["name"] for field in json.loads(log_schema(bare, table_name="trips"))["fields"]]
    assert fields == [*META_FIELDS, "id", "text", "price", "tags"]
    assert log_schema(SCHEMA, table_name="trips") == SCHEMA
    some = json.loads(log_schema(SCHEMA, table_name="trips", columns=["price", "id"]))
    assert [field["name"] for field in some["fields"]] == [*META_FIELDS, "id", "price"]
    with pytest.raises(SchemaMismatchError, match="nope"):
        log_schema(SCHEMA, table_name="trips", columns=["nope"])
    plain = json.loads(log_schema('{"type":"record","name":"a.b","fields":[]}', table_name="t"))
    assert (plain["name"], "namespace" in plain) == ("a.b", False)


# Damage


def with_content(content: bytes, kind: BlockType = BlockType.AVRO_DATA, schema: str | None = SCHEMA) -> LogBlock:
    headers = {} if schema is None else {HeaderKey.SCHEMA: schema}
    return LogBlock(block_type=kind, headers=headers, content=content, content_offset=100)


AVRO = bytes(block_of(DataFormat.AVRO).content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "at least 8 bytes"),
        (AVRO[:4] + b"\xff\xff\xff\xff" + AVRO[8:], "do not fit"),
        (AVRO[:4] + b"\0\xff\0\0" + AVRO[8:], "do not fit"),
        (AVRO[:4] + b"\0\0\0\4" + AVRO[8:], "past the block"),
        (AVRO[:4] + b"\0\0\0\2" + AVRO[8:], "do not end where"),
        (AVRO[:8] + b"\x7f\xff\xff\xff" + AVRO[12:], "past the block|do not end"),
        (AVRO + b"\0", "do not end where"),
    ],
)
def test_damaged_frames_are_named(content: bytes, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message) as caught:
        read_data_block(with_content(content), path="bad.log")
    assert caught.value.path == "bad.log"
    assert caught.value.offset is not None
    assert caught.value.offset >= 100


def test_a_version_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="version 4"):
        read_data_block(with_content(b"\0\0\0\4" + AVRO[4:]), path="log")


@pytest.mark.parametrize(
    "schema", [None, "", "{}", '"string', '{"type":"record"}', '{"type":"record","name":"x","fields":[{}]}']
)
def test_a_schema_that_is_none_is_named(schema: str | None) -> None:
    with pytest.raises((CorruptFileError, UnsupportedError)):
        read_data_block(with_content(AVRO, schema=schema), path="log")


def test_content_of_another_format_is_damage() -> None:
    for kind in (BlockType.PARQUET_DATA, BlockType.HFILE_DATA):
        with pytest.raises(CorruptFileError):
            read_data_block(with_content(AVRO, kind), path="log")
    with pytest.raises(CorruptFileError, match="data block"):
        read_data_block(with_content(AVRO, BlockType.DELETE), path="log")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": ["text"]}), sink)
    with pytest.raises(CorruptFileError):
        read_data_block(with_content(bytes(sink.getvalue()), BlockType.PARQUET_DATA), path="log")


def test_many_rows_in_a_few_bytes_are_refused() -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": pa.nulls(1_000_000, pa.string())}), sink)
    content = bytes(sink.getvalue())
    with pytest.raises(CorruptFileError, match=f"1000000 rows do not fit {len(content)} bytes"):
        read_data_block(with_content(content, BlockType.PARQUET_DATA), path="log")


def test_a_column_whose_name_is_no_text_is_damage() -> None:
    block = block_of(DataFormat.PARQUET)
    damaged = bytearray(block.content)
    # In front of its schema a Parquet file names columns with their pages, where a reader does not look.
    pages, schema, _ = (found.start() for found in re.finditer(b"_hoodie_commit_time", bytes(damaged)))
    assert pages < schema
    damaged[schema] = 0xF4
    with pytest.raises(CorruptFileError, match="not Parquet data"):
        read_data_block(with_content(bytes(damaged), BlockType.PARQUET_DATA), path="log")
