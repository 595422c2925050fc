"""Log blocks: the JVM's log files byte for byte, torn blocks, deletes of every ordering type, damaged files."""

from __future__ import annotations

import base64
import json
import mmap
import struct
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, SchemaMismatchError, UnsupportedError
from hoodie.format.log.delete_block import DeleteRecords
from hoodie.format.log.kryo_deletes import parse_kryo_deletes
from hoodie.format.log.log_block import BlockType, HeaderKey, LogBlock, find_log_blocks, parse_log_blocks
from tests.support.counting_source import CountingSource
from tests.support.rollback_block import rollback_block

INSTANT = "20261121123616628"
HEADERS = {HeaderKey.INSTANT_TIME: INSTANT, HeaderKey.SCHEMA: '"string"'}
FIRST = LogBlock(block_type=BlockType.AVRO_DATA, headers=HEADERS, content=b"first content").to_bytes()
SECOND = LogBlock(block_type=BlockType.DELETE, headers=HEADERS, content=b"second").to_bytes()


def test_every_log_file_of_the_golden_tables_is_written_back_byte_for_byte(golden_tables: Path) -> None:
    paths = [path for path in golden_tables.rglob(".*.log.*") if not path.name.endswith(".crc")]
    assert len(paths) > 200
    deletes = 0
    for path in paths:
        data = path.read_bytes()
        blocks = parse_log_blocks(data, path=str(path))
        assert b"".join(block.to_bytes() for block in blocks) == data
        for block in blocks:
            assert block.instant_time is not None
            assert bytes(block.content) == data[block.content_offset : block.content_offset + len(block.content)]
            if block.block_type is BlockType.DELETE:
                records = DeleteRecords.parse(block.content, path=str(path))
                deletes += len(records)
                assert records.to_bytes() == bytes(block.content)
    assert deletes == 90


DATA, DELETE, TORN = BlockType.AVRO_DATA, BlockType.DELETE, BlockType.CORRUPT


@pytest.mark.parametrize(
    ("pieces", "types"),
    [
        ([FIRST, SECOND], [DATA, DELETE]),
        ([FIRST, SECOND[:-5]], [DATA, TORN]),
        ([FIRST[:-5], SECOND], [TORN, DELETE]),
        ([FIRST[:-1] + b"\xff", SECOND], [TORN, DELETE]),
        ([FIRST, b"#HUD"], [DATA, TORN]),
        ([b"no log at all"], [TORN]),
        ([], []),
    ],
)
def test_blocks_follow_each_other_and_a_torn_one_hides_only_itself(pieces: list[bytes], types: list[BlockType]) -> None:
    found = parse_log_blocks(b"".join(pieces), path="log")
    assert [block.block_type for block in found] == types
    assert [block.offset for block in found] == [sum(map(len, pieces[:place])) for place in range(len(pieces))]
    for block, piece in zip(found, pieces, strict=True):
        content = {DATA: b"first content", DELETE: b"second"}.get(block.block_type, piece)
        assert (bytes(block.content), dict(block.headers)) == (content, {} if content == piece else HEADERS)
        assert block.block_type.holds_data == (block.block_type is DATA)
        assert block.block_type is not TORN or block.instant_time is None


def test_the_content_is_a_view() -> None:
    data = bytearray(FIRST)
    block = parse_log_blocks(memoryview(data), path="log")[0]
    data[block.content_offset] = ord("F")
    assert bytes(block.content) == b"First content"


def test_a_rollback_command_is_105_bytes() -> None:
    data = rollback_block(instant_time="20240418173235694", target_instant_time="20240418173234000").to_bytes()
    block = parse_log_blocks(data, path="log")[0]
    assert len(data) == 105
    assert block.is_rollback
    assert block.headers[HeaderKey.TARGET_INSTANT_TIME] == "20240418173234000"
    assert not parse_log_blocks(FIRST, path="log")[0].is_rollback


def with_field(offset: int, value: bytes) -> bytes:
    return FIRST[:offset] + value + FIRST[offset + len(value) :]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (with_field(14, b"\0\0\0\2"), "log format version"),
        (with_field(18, b"\0\0\0\x63"), "unknown block type"),
        (with_field(22, b"\xff\xff\xff\xff"), "headers"),
        (with_field(22, b"\0\0\0\x09"), "header"),
        (with_field(30, b"\x7f\0\0\0"), "does not fit"),
        (with_field(34, b"\xff\xff"), "not UTF-8 text"),
    ],
)
def test_a_whole_block_with_wrong_fields_is_corrupt(data: bytes, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message) as caught:
        parse_log_blocks(data, path="bad.log")
    assert caught.value.path == "bad.log"


def test_ancient_blocks_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="version 0"):
        parse_log_blocks(with_field(14, bytes(4)), path="log")


def test_unknown_headers_are_left_out() -> None:
    block = parse_log_blocks(with_field(26, b"\0\0\0\x63"), path="log")[0]
    assert HeaderKey.SCHEMA in block.headers
    assert len(block.headers) == 1


def deletes(ordering: pa.Array) -> DeleteRecords:
    keys = pa.array([f"key-{number}" for number in range(len(ordering))])
    return DeleteRecords(keys, pa.array(["city=sf"] * len(ordering)), ordering)


def round_trip(records: DeleteRecords) -> DeleteRecords:
    return DeleteRecords.parse(records.to_bytes(), path="log")


PLAIN = [
    pa.array([True, False], pa.bool_()),
    pa.array([1, -7], pa.int32()),
    pa.array([2**62, -(2**62)], pa.int64()),
    pa.array([1.5, -0.25], pa.float32()),
    pa.array([1.1, -1e300], pa.float64()),
    pa.array([b"\x00\xff", b""], pa.binary()),
    pa.array(["a", "ю" * 100], pa.string()),
    pa.array([Decimal("123456789.123456789012345"), Decimal(-1)], pa.decimal128(30, 15)),
    pa.array([time(12, 30, 1, 5), time(0)], pa.time64("us")),
    pa.StructArray.from_arrays([pa.array([1, 2], pa.int64()), pa.array(["a", None])], ["f0", "f1"]),
]
# Days and times are numbers, as the JVM has them.
NUMBERS = [
    (pa.array([date(2026, 11, 21), date(1969, 1, 1)], pa.date32()), pa.int32()),
    (pa.array([datetime(2026, 11, 21, 1, tzinfo=UTC), None], pa.timestamp("us", tz="UTC")), pa.int64()),
    (pa.array([datetime(2026, 11, 21, 1), None], pa.timestamp("ms")), pa.int64()),
]


@pytest.mark.parametrize(
    ("ordering", "stored"), [*((ordering, ordering.type) for ordering in PLAIN), *NUMBERS], ids=lambda value: str(value)
)
def test_deletes_of_every_ordering_type(ordering: pa.Array, stored: pa.DataType) -> None:
    records = deletes(ordering)
    expected = ordering if ordering.type == stored else ordering.cast(stored)
    assert round_trip(records) == replace(records, ordering=expected)
    if not pa.types.is_nested(stored):
        with_null = deletes(pa.concat_arrays([expected, pa.nulls(1, stored)]))
        assert round_trip(with_null) == with_null


def test_deletes_without_a_partition() -> None:
    records = DeleteRecords(pa.array(["a", "b"]), pa.array([None, "p"]), pa.nulls(2, pa.int32()))
    assert round_trip(records) == records


def test_deletes_without_ordering_are_the_int_zero_on_disk() -> None:
    records = DeleteRecords.without_ordering(pa.array(["key-000015"]), "record_index")
    assert (
        records.to_bytes().hex() == "000000030000001e0202146b65792d3030303031350218" + b"record_index".hex() + "040000"
    )
    assert round_trip(records).ordering.null_count == 1
    assert deletes(pa.array([0], pa.int32())).to_bytes() == deletes(pa.nulls(1, pa.int32())).to_bytes()


def test_no_deletes_take_nine_bytes() -> None:
    nothing = DeleteRecords.without_ordering(pa.array([], pa.string()), "")
    assert (nothing.to_bytes(), len(round_trip(nothing))) == (bytes.fromhex("000000030000000100"), 0)


@given(st.lists(st.text(max_size=300), max_size=50))
def test_keys_of_deletes_round_trip(keys: list[str]) -> None:
    records = DeleteRecords.without_ordering(pa.array(keys, pa.string()), "p")
    assert round_trip(records).record_keys.to_pylist() == keys


def test_what_a_delete_block_cannot_hold_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="list"):
        deletes(pa.array([[1], [2]])).to_bytes()
    with pytest.raises(CorruptFileError, match="version 4"):
        DeleteRecords.parse(b"\0\0\0\4\0\0\0\0", path="log")
    for content in (b"", b"\0\0\0\3\0\0\0\x09\0", b"\0\0\0\3\0\0\0\1\x02", b"\0\0\0\3\0\0\0\2\0\0"):
        with pytest.raises(CorruptFileError):
            DeleteRecords.parse(content, path="log")


@pytest.mark.parametrize("value", ["1.0000000000000001", "1" * 16])
def test_a_decimal_that_a_delete_block_cannot_hold_is_refused(value: str) -> None:
    ordering = pa.array([Decimal(value)], pa.decimal128(38, 16))
    with pytest.raises(SchemaMismatchError, match=r"does not fit decimal128\(30, 15\)"):
        deletes(ordering).to_bytes()


def test_the_block_behind_a_large_torn_one_is_found() -> None:
    for length in range(40):
        source = CountingSource(b"#HUDI#" + b"x" * length + SECOND)
        torn, second = find_log_blocks(source, path="log", search_bytes=7)
        assert (torn.block_type, second.block_type) == (TORN, DELETE)
        assert (torn.offset, second.offset) == (0, 6 + length)


def test_a_mapped_file_is_not_read_before_somebody_asks(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(FIRST + SECOND)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        blocks = parse_log_blocks(memoryview(mapped), path="log")
        assert all(isinstance(block.content, memoryview) and block.content.obj is mapped for block in blocks)
        assert blocks[0].to_bytes() == FIRST
        for block in blocks:
            assert isinstance(block.content, memoryview)
            block.content.release()


def test_lists_of_deletes_in_several_blocks_with_long_numbers_and_nulls() -> None:
    key = "k" * 70
    first = b"\x02\x8c\x01" + key.encode() + b"\0\x06\x80\x80\x04"  # ordering: the long 32768
    second = b"\x02\x02a\x02\x02p\0"
    datum = b"\x01\xa0\x01" + first + b"\x02" + second + b"\0"
    found = DeleteRecords.parse(b"\0\0\0\3" + len(datum).to_bytes(4, "big") + datum, path="log")
    assert found.record_keys.to_pylist() == [key, "a"]
    assert found.partition_paths.to_pylist() == [None, "p"]
    assert found.ordering.to_pylist() == [32768, None]


BAD_LISTS = [
    b"\x02",
    b"\x02\x04\x02a\0\0\0",
    b"\x02\x02\x03a\0\0\0",
    b"\x02\x02\x02a\0\x1a\0",
    b"\x02\x02\x02a\0\x0a\0\0",
    b"\x02\x02\x02\xff\0\0\0",
    b"\x02\x02\x02a\0\x06" + b"\xff" * 11,
    b"\x02\x02\x02a\0\x04\xff\xff\xff\xff\x7f\0",
]


@pytest.mark.parametrize("datum", BAD_LISTS)
def test_damaged_lists_of_deletes_are_named(datum: bytes) -> None:
    with pytest.raises(CorruptFileError, match="log at byte"):
        DeleteRecords.parse(b"\0\0\0\3" + len(datum).to_bytes(4, "big") + datum, path="log", offset=100)


def test_deletes_with_an_ordering_value_and_those_without_go_apart() -> None:
    records = deletes(pa.array([None, 5, None, 0], pa.int64()))
    without, within = records.unmixed()
    assert without.record_keys.to_pylist() == records.record_keys.take([0, 2]).to_pylist()
    assert (within.record_keys.to_pylist(), within.ordering.to_pylist()) == (
        records.record_keys.take([1, 3]).to_pylist(),
        [5, 0],
    )
    assert within.unmixed() == [within]
    assert DeleteRecords.without_ordering(pa.array([], pa.string()), "").unmixed() == []


@pytest.mark.parametrize(
    "noise",
    [b"#HUDI#" * 1000, b"#HUDI#\0\0\0\0\0\0\0\x40" * 1000, b"#HUDI#" + b"#" * 50_000],
    ids=["magics", "lengths", "signs"],
)
def test_torn_blocks_take_one_pass(noise: bytes) -> None:
    source = CountingSource(FIRST + noise + SECOND)
    first, torn, second = find_log_blocks(source, path="log")
    assert (first.block_type, torn.block_type, second.block_type) == (DATA, TORN, DELETE)
    assert (torn.offset, torn.content_bytes) == (len(FIRST), len(noise))
    assert source.bytes_read < 2 * source.size + 40 * noise.count(b"#HUDI#")


def test_a_file_of_magics_is_refused() -> None:
    source = CountingSource(b"#HUDI#" * 50_000)
    with pytest.raises(CorruptFileError, match="at most 10000 torn blocks"):
        list(find_log_blocks(source, path="log"))


def test_too_many_and_too_long_headers_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="up to 1024 headers, found 1025"):
        parse_log_blocks(with_field(22, (1025).to_bytes(4, "big")), path="log")
    source = CountingSource(FIRST)
    with pytest.raises(CorruptFileError, match="headers of up to 60 bytes"):
        list(find_log_blocks(source, path="log", head_bytes=(40, 60)))
    assert source.bytes_read <= 40 + 60 + 14 + 14


# Delete blocks of version 1 and 2: Kryo graphs that the reference made, and damaged ones

LOGS = Path(__file__).parents[3] / "golden" / "logs"
GOLDEN: dict[str, Any] = json.loads((LOGS / "kryo.json").read_text())
BIG = 2**31


def graph(name: str) -> bytes:
    return base64.b64decode(GOLDEN[name])


def parse_kryo(data: bytes, version: int) -> DeleteRecords:
    return DeleteRecords.parse(struct.pack(">ii", version, len(data)) + data, path="log", offset=500)


def test_version_1_has_keys_only() -> None:
    found = parse_kryo(graph("v1"), 1)
    assert found.record_keys.to_pylist() == GOLDEN["keys"]
    assert found.partition_paths.to_pylist() == GOLDEN["partitions"]
    assert found.ordering.null_count == 8


KRYO_ORDERINGS: dict[str, list[Any]] = {
    # The int 0 is what deletes without ordering value have.
    "int": [None, 1, -1, BIG - 1, -BIG, 63, 64, 8192],
    "long": [BIG, -BIG - 1, 2**62, 2**63 - 1, -(2**63), 2**40, -(2**55), 2**56],
    "long and none": [None, BIG] * 4,
    "double": [0.0, 1.5, -1.5, 1e300, -0.0, 2.0, 3.0, 4.0],
    "boolean": [True, False] * 4,
    "string": GOLDEN["keys"],
    "decimal": [Decimal(text) for text in ("0", "1.5", "-1.5", "99999999999999999999.5", "-0.00001", "0", "7", "8")],
    "timestamp": [datetime(2026, 7, day, 1, 2, 3, 456000, tzinfo=UTC) for day in range(1, 9)],
    "local_date": [date(2026, 7, day) for day in range(1, 9)],
}


@pytest.mark.parametrize("name", KRYO_ORDERINGS)
def test_version_2_has_orderings(name: str) -> None:
    found = parse_kryo(graph(f"v2 {name}"), 2)
    assert found.record_keys.to_pylist() == GOLDEN["keys"]
    assert found.partition_paths.to_pylist() == GOLDEN["partitions"]
    assert found.ordering.to_pylist() == KRYO_ORDERINGS[name]


def test_the_block_of_hudi_s_own_tests() -> None:
    found = DeleteRecords.parse((LOGS / "delete_v2_10_records.bin").read_bytes(), path="log")
    assert len(found) == 10
    assert found.record_keys[0].as_py() == "d448e1b8-a0d4-45c0-bf2d-a9e16ff3c8ce"
    assert set(found.partition_paths.to_pylist()) == {"0000/00/00"}
    assert found.ordering.null_count == 10


@pytest.mark.parametrize("name", ["date", "long and int"])
def test_orderings_that_are_not_clear_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"(java\.sql\.Date|several classes).*compact"):
        parse_kryo(graph(f"v2 {name}"), 2)


def test_another_graph_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="DeleteRecord"):
        parse_kryo(graph("v1"), 2)
    with pytest.raises(UnsupportedError, match="HoodieKey"):
        parse_kryo(graph("v2 int"), 1)


def test_bytes_behind_the_graph_are_damage() -> None:
    with pytest.raises(CorruptFileError, match="follow the list") as caught:
        parse_kryo(graph("v1") + b"\0", 1)
    assert caught.value.offset == 508 + len(graph("v1"))


def test_a_decimal_that_no_table_has_is_damage() -> None:
    # 1.50: two bytes of the value 150, and the scale 2.
    place = graph("v2 decimal").index(b"\x03\x00\x96\x04")
    head, tail = graph("v2 decimal")[:place], graph("v2 decimal")[place + 4 :]
    for decimal in (b"\x02\x0f\xfe\xff\xff\xff\x0f", b"\x02\x0f\xff\xff\xff\xff\x0f", b"\xff\xff\xff\x7f" + bytes(70)):
        with pytest.raises(CorruptFileError, match="larger than decimals of tables are"):
            parse_kryo(head + decimal + tail, 2)


def test_more_deletes_than_a_block_has_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="a list of 8 deletes"):
        parse_kryo_deletes(graph("v2 int"), 2, path="log", deletes_max=7)
