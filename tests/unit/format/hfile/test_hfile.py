"""HFiles: what we write we read, in every shape of entries; files of other writers; look-ups; layout on disk."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import InvalidConfigError
from hoodie.format.hfile import Compression, HFileReader, hfile_to_bytes
from hoodie.format.hfile.wire import Cursor, hadoop_vint_to_bytes
from hoodie.format.varint import varint_to_bytes
from tests.support.seeds import seeded

GOLDEN = Path(__file__).parents[3] / "golden" / "hfile"
CODECS = [Compression.GZIP, Compression.NONE]


def reader_of(name: str) -> HFileReader:
    return HFileReader((GOLDEN / name).read_bytes(), path=name)


def written(rows: dict[bytes, bytes], codec: Compression = Compression.GZIP) -> HFileReader:
    keys = sorted(rows)
    data = hfile_to_bytes(
        pa.array(keys, pa.binary()), pa.array([rows[key] for key in keys], pa.binary()), schema_json="{}", codec=codec
    )
    return HFileReader(data, path="written.hfile")


def rows_in(reader: HFileReader) -> list[tuple[bytes, bytes]]:
    keys, values = reader.entries()
    return list(zip(keys.to_pylist(), values.to_pylist(), strict=True))


@pytest.mark.parametrize("codec", CODECS)
@given(rows=st.dictionaries(st.binary(max_size=40), st.binary(max_size=40), max_size=60))
def test_what_is_written_is_read(codec: Compression, rows: dict[bytes, bytes]) -> None:
    assert rows_in(written(rows, codec)) == sorted(rows.items())


@pytest.mark.parametrize("codec", CODECS)
def test_entries_of_one_length_take_the_fast_path(codec: Compression) -> None:
    rows = {f"key-{number:06d}".encode(): f"{number:08d}".encode() for number in range(9000)}
    reader = written(rows, codec)
    assert reader.block_count > 3
    assert rows_in(reader) == sorted(rows.items())


def test_entries_whose_lengths_only_add_up_alike_are_told_apart() -> None:
    rows = {b"a": b"12345", b"bb": b"1234", b"cc": b"1234", b"ddd": b"123"}
    assert rows_in(written(rows)) == sorted(rows.items())


@pytest.mark.parametrize("codec", CODECS)
def test_an_empty_file_is_a_file(codec: Compression) -> None:
    reader = written({}, codec)
    assert (len(reader), reader.block_count, rows_in(reader)) == (0, 0, [])
    assert reader.get_many(pa.array(["a"])).to_pylist() == [None]
    assert reader.get_range(b"a")[0].to_pylist() == []
    assert "hfile.LASTKEY" not in reader.file_info, "HBase's reader fails on a key of zero bytes"


@seeded(7)
def test_look_ups_find_what_is_there_and_nothing_else(seed: int) -> None:
    chooser = random.Random(seed)
    rows = {f"k{number:05d}".encode(): chooser.randbytes(chooser.randrange(90)) for number in range(0, 8000, 2)}
    reader = written(rows, Compression.NONE)
    assert reader.block_count > 2
    wanted = [f"k{number:05d}" for number in chooser.sample(range(8001), 500)] + ["", "a", "z", "k00000", "k00000"]
    found = reader.get_many(pa.array(wanted)).to_pylist()
    assert found == [rows.get(key.encode()) for key in wanted]
    assert reader.get_many(pa.array([], pa.string())).to_pylist() == []


@pytest.mark.parametrize("codec", CODECS)
def test_batches_are_bounded(codec: Compression) -> None:
    rows = {f"{number:06d}".encode(): bytes(5000) for number in range(6000)}
    batches = list(written(rows, codec).batches())
    assert len(batches) > 3
    assert max(values.nbytes for _, values in batches) < 8 * 1024 * 1024
    assert pa.concat_arrays([keys for keys, _ in batches]).to_pylist() == sorted(rows)


@pytest.mark.parametrize("lengths", [(5,), (1, 2, 3), tuple(range(40)), tuple(range(0, 9000, 600))])
def test_rows_of_any_number_of_lengths(lengths: tuple[int, ...]) -> None:
    rows = {b"%06d" % number + b"r" * lengths[number % len(lengths)]: bytes(number % 7) for number in range(3000)}
    reader = written(rows)
    assert rows_in(reader) == sorted(rows.items())
    keys, values = reader.entries()
    assert reader.get_many(keys[::3]).equals(values.take(pa.array(range(0, 3000, 3))))


def test_values_that_look_like_the_end_of_a_row() -> None:
    fixed = b"\0\x7f" + b"\xff" * 7 + b"\x04"
    patterns = [fixed, fixed * 3, b"\xff" * 40, fixed[1:], fixed[:-1], b"\xff" * 4, b"\xff" * 5 + b"\x04\xff\xff"]
    rows = {b"key-%04d" % number: patterns[number % len(patterns)] for number in range(4000)}
    rows |= {b"key-%04d" % number + fixed: b"" for number in range(0, 4000, 9)}
    reader = written(rows, Compression.NONE)
    assert rows_in(reader) == sorted(rows.items())
    assert reader.get_many(pa.array(sorted(rows), pa.binary())).to_pylist() == [rows[key] for key in sorted(rows)]


@given(
    present=st.sets(st.text("ab\0é\U0001f600", max_size=24), max_size=60),
    absent=st.lists(st.text("ab\0é\U0001f600", max_size=24), max_size=30),
    shared=st.sampled_from(["", "a", "shared prefix that is longer than one word "]),
)
def test_look_ups_of_keys_that_share_words(present: set[str], absent: list[str], shared: str) -> None:
    rows = {(shared + key).encode(): key.encode() for key in present}
    wanted = [*present, *absent, *present]
    found = written(rows).get_many(pa.array([shared + key for key in wanted], pa.string()))
    assert found.to_pylist() == [rows.get((shared + key).encode()) for key in wanted]


def test_look_ups_among_rows_whose_words_are_all_alike() -> None:
    # Only the first and the last row keep the many in between from sharing their long beginning.
    rows = {b"a": b"first", b"z": b"last"} | {b"m" * 50 + b"%05d" % number: b"%d" % number for number in range(9000)}
    reader = written(rows)
    wanted = [b"m" * 50 + b"%05d" % number for number in range(0, 9999, 7)] + [b"m", b"m" * 50, b"n", b"m" * 51]
    assert reader.get_many(pa.array(wanted)).to_pylist() == [rows.get(key) for key in wanted]


@given(
    rows=st.sets(st.binary(max_size=3), max_size=30),
    start=st.binary(max_size=3),
    stop=st.none() | st.binary(max_size=3),
)
def test_ranges(rows: set[bytes], start: bytes, stop: bytes | None) -> None:
    reader = written({row: row[::-1] for row in rows})
    inside = [row for row in sorted(rows) if start <= row and (stop is None or row < stop)]
    keys, values = reader.get_range(start, stop)
    assert (keys.to_pylist(), values.to_pylist()) == (inside, [row[::-1] for row in inside])


def test_ranges_over_blocks() -> None:
    rows = {b"%07d" % number: bytes(100) for number in range(3000)}
    reader = written(rows)
    for start, stop in [(0, 3000), (5, 6), (600, 2400), (2999, 3000), (7, 7), (9, 3)]:
        expected = [b"%07d" % number for number in range(start, stop)]
        assert reader.get_range(b"%07d" % start, b"%07d" % stop)[0].to_pylist() == expected
    assert len(reader.get_range()[0]) == 3000
    assert reader.get_range(b"\xff\xff")[0].to_pylist() == []


def test_a_memoryview_is_read_in_place() -> None:
    data = hfile_to_bytes(pa.array(["a"]), pa.array([b"1"]), schema_json="{}")
    reader = HFileReader(memoryview(b"xx" + data + b"yyy")[2:-3], path="log")
    assert rows_in(reader) == [(b"a", b"1")]


def test_file_info_holds_the_schema_and_what_is_added() -> None:
    columns = pa.array(["a", "b"]), pa.array([b"1", b"2"])
    data = hfile_to_bytes(*columns, schema_json='{"x":1}', file_info={"more": b"m"})
    assert data == hfile_to_bytes(*columns, schema_json='{"x":1}', file_info={"more": b"m"})
    info = HFileReader(data, path="f").file_info
    assert (info["schema"], info["more"], info["hfile.LASTKEY"]) == (b'{"x":1}', b"m", b"\x00\x01b")
    assert (info["KEY_VALUE_VERSION"], info["MAX_MEMSTORE_TS_KEY"]) == (b"\0\0\0\1", bytes(8))


def test_data_blocks_stay_at_64_kib() -> None:
    # Larger blocks lose entries in the JVM's readers up to 1.2.0.
    rows = {f"{number:06d}".encode(): bytes(number % 3000) for number in range(400)} | {b"huge": bytes(200_000)}
    reader = written(rows, Compression.NONE)
    columns = [(keys.to_pylist(), values.to_pylist()) for keys, values in reader.batches()]
    sizes = [sum(21 + len(key) + len(value) for key, value in zip(*found, strict=True)) for found in columns]
    assert all(size <= 65536 for size in sizes[:-1])
    assert sizes[-1] > 200_000
    assert rows_in(reader) == sorted(rows.items())


@seeded(3)
def test_gzip_blocks_avoid_lengths_that_hudi_rs_cuts(seed: int) -> None:
    chooser = random.Random(seed)
    for size in range(16200, 16400, 3):
        data = hfile_to_bytes(pa.array(["k"]), pa.array([chooser.randbytes(size)]), schema_json="{}")
        stored = int.from_bytes(data[29:33], "big")
        chunks = -(-stored // 16384)
        assert stored + 4 * chunks <= 16384 * chunks
        assert int.from_bytes(data[8:12], "big") == stored - 33 + 4 * chunks
        assert len(gzip.decompress(data[33:stored])) == 21 + 1 + size


def test_keys_stand_in_byte_order_and_have_two_bytes_of_length() -> None:
    # In UTF-16 units U+1F600 sorts before U+FFFF, in UTF-8 bytes behind it.
    rows = {"\uffff".encode(): b"1", "\U0001f600".encode(): b"2"}
    assert [value for _, value in rows_in(written(rows))] == [b"1", b"2"]
    assert rows_in(written({b"k" * 32767: b"v"})) == [(b"k" * 32767, b"v")]
    reader = written({b"a": b"1", b"c": b""})
    assert [reader.get(key) for key in (b"a", b"b", b"c", b"")] == [b"1", None, b"", None]


@pytest.mark.parametrize(
    ("keys", "values", "message"),
    [
        (["b", "a"], [b"", b""], "ascend strictly"),
        (["a", "a"], [b"", b""], "ascend strictly"),
        (["\U0001f600", "\uffff"], [b"", b""], "ascend strictly"),
        (["k" * 32768], [b""], "32767"),
        (["a"], [None], "nulls"),
    ],
    ids=str,
)
def test_what_no_file_can_hold_is_refused(keys: list[str], values: list[bytes], message: str) -> None:
    with pytest.raises(InvalidConfigError, match=message):
        hfile_to_bytes(pa.array(keys), pa.array(values, pa.binary()), schema_json="{}")


def test_both_writers_of_the_reference_say_the_same() -> None:
    expected = [(f"row{number}".encode(), f"value{number}".encode()) for number in range(1, 6)]
    assert rows_in(reader_of("hudi-generated.hfile")) == expected
    assert rows_in(reader_of("hbase-generated.hfile")) == expected


GOLDEN_FILES = {
    "hbase-generated": (1, 5),
    "hudi-generated": (1, 5),
    "hudi_0_10_hbase_1_2_3_bootstrap_index_partitions": (1, 4),
    "hudi_0_10_hbase_1_2_3_complex": (1, 50),
    "hudi_0_10_hbase_1_2_3_simple": (1, 50),
    "hudi_0_11_hbase_2_4_9_bootstrap_index_partitions": (1, 4),
    "hudi_0_11_hbase_2_4_9_complex": (1, 50),
    "hudi_0_11_hbase_2_4_9_simple": (1, 50),
    "hudi_0_9_hbase_1_2_3_bootstrap_index_partitions": (1, 4),
    "hudi_0_9_hbase_1_2_3_complex": (1, 50),
    "hudi_0_9_hbase_1_2_3_simple": (1, 50),
    "hudi_1_0_hbase_2_4_13_16KB_GZ_20000_fake_first_key": (86, 20000),
    "hudi_1_0_hbase_2_4_13_1KB_GZ_10000_large_keys_deep_index": (1429, 10000),
    "hudi_1_0_hbase_2_4_13_1KB_GZ_20000_large_keys": (2858, 20000),
    "hudi_1_0_hbase_2_4_13_1KB_GZ_50000_large_keys_deep_index": (7143, 50000),
    "hudi_1_0_hbase_2_4_9_16KB_GZ_20000": (72, 20000),
    "hudi_1_0_hbase_2_4_9_16KB_GZ_200_20_non_unique": (16, 4200),
    "hudi_1_0_hbase_2_4_9_16KB_NONE_5000": (18, 5000),
    "hudi_1_0_hbase_2_4_9_512KB_GZ_20000": (3, 20000),
    "hudi_1_0_hbase_2_4_9_64KB_NONE_5000": (5, 5000),
    "hudi_1_0_hbase_2_4_9_no_entry": (0, 0),
}


def test_every_golden_file_is_named() -> None:
    assert {path.stem for path in GOLDEN.glob("*.hfile")} == GOLDEN_FILES.keys()


@pytest.mark.parametrize("name", list(GOLDEN_FILES))
def test_files_of_others(name: str) -> None:
    reader = reader_of(f"{name}.hfile")
    keys, values = reader.entries()
    assert (reader.block_count, len(keys), len(reader)) == (*GOLDEN_FILES[name], len(keys))
    found = reader.get_many(keys[::7])
    if "non_unique" in name:
        # Of a repeated key any value is good.
        pairs = set(zip(keys.to_pylist(), values.to_pylist(), strict=True))
        assert set(zip(keys[::7].to_pylist(), found.to_pylist(), strict=True)) <= pairs
    else:
        assert found.equals(values.take(pa.array(range(0, len(keys), 7), pa.int64())))
    absent = pa.array([key + b"x" for key in keys[::99].to_pylist()], pa.binary())
    assert reader.get_many(absent).null_count == len(absent)
    if len(keys):
        start, stop = keys[len(keys) // 3].as_py(), keys[len(keys) // 2].as_py()
        inside = [key for key in keys.to_pylist() if start <= key < stop]
        assert reader.get_range(start, stop)[0].to_pylist() == inside


@pytest.mark.parametrize("name", [name for name, (_, count) in GOLDEN_FILES.items() if count >= 5000])
def test_keys_and_values_of_others(name: str) -> None:
    keys, values = reader_of(f"{name}.hfile").entries()
    stem = "hudi-key-" + "a" * 100 + "-" if "large_keys" in name else "hudi-key-"
    suffix = "-abcdefghij" if "fake_first_key" in name else ""
    numbers = range(len(keys))
    assert keys.to_pylist() == [f"{stem}{number:09d}{suffix}".encode() for number in numbers]
    assert values.to_pylist() == [f"hudi-value-{number:09d}".encode() for number in numbers]


def test_repeated_keys_give_one_of_their_values() -> None:
    reader = reader_of("hudi_1_0_hbase_2_4_9_16KB_GZ_200_20_non_unique.hfile")
    keys, _ = reader.entries()
    assert (len(keys), len(set(keys.to_pylist()))) == (4200, 200)
    assert reader.get_range(b"hudi-key-000000007", b"hudi-key-000000008")[0].to_pylist() == [b"hudi-key-000000007"] * 21
    assert reader.get_many(keys).null_count == 0


@given(st.integers(0, 2**31 - 1))
def test_variable_length_integers_round_trip(value: int) -> None:
    for encoded in (hadoop_vint_to_bytes(value), varint_to_bytes(value)):
        cursor = Cursor(memoryview(encoded), path="x", origin=0)
        decoded = cursor.hadoop_vint() if encoded == hadoop_vint_to_bytes(value) else cursor.varint()
        assert (decoded, cursor.exhausted) == (value, True)


def test_hadoop_integers_are_not_protobuf_varints() -> None:
    assert hadoop_vint_to_bytes(127) == b"\x7f"
    assert hadoop_vint_to_bytes(128) == b"\x8f\x80"
    assert hadoop_vint_to_bytes(300) == b"\x8e\x01\x2c"
    assert varint_to_bytes(300) == b"\xac\x02"
