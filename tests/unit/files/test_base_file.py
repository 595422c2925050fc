"""Base files: written and read as a stream of row groups; broken ones say so."""

from __future__ import annotations

import gc
import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError, MissingFileError
from hoodie.files.base_file import BaseFileWriter, ParquetOptions, key_bounds, read_base_file
from hoodie.files.encoding_threads import EncodingThreads
from hoodie.files.slices import BaseFile
from hoodie.format.hashes.bloom import (
    FOOTER_KEY,
    MAX_KEY_FOOTER_KEY,
    MIN_KEY_FOOTER_KEY,
    TYPE_FOOTER_KEY,
    BloomFilter,
    BloomFilterType,
    FilterBuilder,
    FilterOptions,
)
from hoodie.storage import MemoryStore

KEY = "_hoodie_record_key"
SCHEMA = pa.schema([(KEY, pa.string()), ("n", pa.int64())])
PATH = "p/f_0-0-0_20261122090000000.parquet"
FILE = BaseFile("p", PATH.rpartition("/")[2], "f", "20261122090000000", 0)
# Ascending in UTF-16 code units, as the JVM sorts; by UTF-8 the last two change places.
BEYOND = ["", "A", "a", "é", "日", "😀", "\ue000", "\uffff"]


def rows(keys: list[str]) -> pa.Table:
    return pa.table([keys, list(range(len(keys)))], schema=SCHEMA)


def write(keys: list[str], options: ParquetOptions | None = None, *, batch: int = 1000) -> MemoryStore:
    store = MemoryStore()
    with BaseFileWriter(store, PATH, SCHEMA, options or ParquetOptions()) as writer:
        for start in range(0, len(keys), batch):
            writer.write(rows(keys[start : start + batch]))
    assert writer.rows == len(keys)
    assert writer.size_bytes == len(store.read(PATH))
    return store


def footer(store: MemoryStore) -> dict[str, str]:
    metadata = pq.ParquetFile(pa.BufferReader(store.read(PATH))).metadata.metadata
    return {key.decode(): value.decode() for key, value in metadata.items()}


@pytest.mark.parametrize("kind", list(BloomFilterType))
def test_the_filter_of_the_keys_is_in_the_footer(kind: BloomFilterType) -> None:
    keys = [f"k{i * 7919 % 1000:03}" for i in range(1000)]
    wanted = FilterOptions(filter_type=kind, entries=300, entries_max=600, false_positive_rate=0.01)
    found = footer(write(keys, ParquetOptions(row_group_bytes=1, bloom=wanted), batch=90))
    builder = FilterBuilder(wanted)
    builder.add(pa.array(keys))
    assert (found[FOOTER_KEY], found.get(TYPE_FOOTER_KEY, "SIMPLE")) == (builder.build().to_base64(), kind.value)


def test_a_file_without_options_of_a_filter_says_maybe_to_every_key() -> None:
    assert footer(write(["a"]))[FOOTER_KEY] == BloomFilter.saturated().to_base64()
    empty = footer(write([], ParquetOptions(bloom=FilterOptions(entries=10))))
    assert not BloomFilter.parse(empty[FOOTER_KEY], empty[TYPE_FOOTER_KEY]).may_contain(pa.array(["a", "b"])).any()


@pytest.mark.parametrize("keys", [["b", "a", "c"], ["é", "z"], BEYOND, BEYOND[::-1], ["x\ue000", "x😀"]])
@pytest.mark.parametrize("batch", [1, 1000])
def test_key_bounds_in_the_footer_are_those_of_the_jvm(keys: list[str], batch: int) -> None:
    def utf16(key: str) -> bytes:
        return key.encode("utf-16-be")

    found = footer(write(keys, ParquetOptions(row_group_bytes=1), batch=batch))
    assert found[MIN_KEY_FOOTER_KEY] == min(keys, key=utf16)
    assert found[MAX_KEY_FOOTER_KEY] == max(keys, key=utf16)
    assert key_bounds(pa.chunked_array([keys])) == (min(keys, key=utf16), max(keys, key=utf16))
    assert key_bounds(pa.chunked_array([[*BEYOND, *keys]])[len(BEYOND) :]) == (
        min(keys, key=utf16),
        max(keys, key=utf16),
    )


def test_a_file_without_rows_is_a_file() -> None:
    store = write([])
    assert sum(table.num_rows for table in read_base_file(store, FILE, SCHEMA)) == 0
    assert MIN_KEY_FOOTER_KEY in footer(store)


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4", "none"])
def test_rows_come_back(codec: str) -> None:
    keys = [f"k{number}" for number in range(2500)]
    store = write(keys, ParquetOptions(codec=codec, row_group_bytes=20_000))
    read = pa.concat_tables(read_base_file(store, FILE, SCHEMA, batch_rows=700))
    assert read[KEY].to_pylist() == keys
    parquet = pq.ParquetFile(pa.BufferReader(store.read(PATH)))
    assert parquet.metadata.num_row_groups > 1
    assert next(read_base_file(store, FILE, SCHEMA, columns=["n"])).column_names == ["n"]


def test_old_files_get_new_columns_and_wider_types() -> None:
    store = write(["a"])
    wider = pa.schema([(KEY, pa.string()), ("n", pa.float64()), ("new", pa.string())])
    (read,) = read_base_file(store, FILE, wider)
    assert read.to_pylist() == [{KEY: "a", "n": 0.0, "new": None}]


# Uncompressed numbers have no redundancy: only the checksum of the page notices that one of them changed.
ONE_TWO, ONE_SEVEN = (b"".join(number.to_bytes(8, "little") for number in pair) for pair in ((1, 2), (1, 7)))
DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    **{
        f"cut at {length}": (lambda data, length=length: data[:length], "expected a whole Parquet file, found")  # type: ignore[misc]
        for length in (0, 1, 4, 11, 200, -1, -8, -20)
    },
    "pages": (lambda data: data[:4] + b"\xff" * 296 + data[300:], "cannot be read"),
    "a changed number": (lambda data: data.replace(ONE_TWO, ONE_SEVEN, 1), "CRC"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files(damage: str) -> None:
    store = write([f"k{number}" for number in range(100)], ParquetOptions(codec="none"))
    change, message = DAMAGES[damage]
    data = store.read(PATH)
    assert change(data) != data
    assert sum(table.num_rows for table in read_base_file(store, FILE, SCHEMA)) == 100
    store.replace(PATH, change(data))
    with pytest.raises(CorruptFileError, match=message) as caught:
        list(read_base_file(store, FILE, SCHEMA))
    assert caught.value.path == store.uri(PATH)


def test_files_of_another_length_and_missing_ones() -> None:
    store = write([f"k{number}" for number in range(100)])
    data = store.read(PATH)
    listed = replace(FILE, size_bytes=len(data))
    assert sum(table.num_rows for table in read_base_file(store, listed, SCHEMA)) == 100
    for other in (write(["k1"]).read(PATH), b"\0" * 8 + data):
        store.replace(PATH, other)
        with pytest.raises(CorruptFileError, match=f"expected {len(data)} bytes as the table's listing states"):
            list(read_base_file(store, listed, SCHEMA))
    with pytest.raises(MissingFileError, match="the instant 20261122090000000; if a cleaner"):
        list(read_base_file(MemoryStore(), FILE, SCHEMA))


def test_a_flipped_bit_in_a_page_gives_no_wrong_rows() -> None:
    store = write([f"k{number * 7919 % 1000}" for number in range(200)], ParquetOptions(codec="none"))
    data = store.read(PATH)
    expected = pa.concat_tables(read_base_file(store, FILE, SCHEMA))
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    noticed = 0
    for place in range(4, end, 13):
        store.replace(PATH, data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        try:
            assert pa.concat_tables(read_base_file(store, FILE, SCHEMA)) == expected
        except CorruptFileError:
            noticed += 1
    assert noticed > (end - 4) // 13 * 0.9


def test_a_writer_left_by_an_error_is_quiet_and_leaves_no_whole_file() -> None:
    store = MemoryStore()
    writer = BaseFileWriter(store, PATH, SCHEMA, ParquetOptions(row_group_bytes=1))
    writer.__enter__()
    writer.write(rows(["a"]))
    writer.__exit__(RuntimeError, None, None)
    del writer
    gc.collect()  # a complaint from here would fail the test
    with pytest.raises(CorruptFileError):
        list(read_base_file(store, FILE, SCHEMA))


SAME = {"_hoodie_file_name": "f.parquet", "city": "é"}
WIDE = pa.schema([(KEY, pa.string()), ("_hoodie_file_name", pa.string()), ("city", pa.string()), ("n", pa.int64())])


@pytest.mark.parametrize("count", [0, 1, 7])
def test_columns_with_one_text_are_written_as_if_the_rows_had_them(count: int) -> None:
    store = MemoryStore()
    options = ParquetOptions(row_group_bytes=1, range_columns=("n",))
    with BaseFileWriter(store, PATH, WIDE, options, SAME) as writer:
        for number in range(count):
            writer.write(rows([f"k{number}"]))
    file = pq.ParquetFile(pa.BufferReader(store.read(PATH)))
    assert file.schema_arrow == WIDE
    assert file.metadata.num_row_groups == count
    assert file.read().to_pylist() == [{KEY: f"k{number}", **SAME, "n": 0} for number in range(count)]
    for group in range(count):
        for place, text in enumerate(SAME.values(), 1):
            chunk = file.metadata.row_group(group).column(place)
            assert (chunk.statistics.min, chunk.statistics.max, chunk.statistics.null_count) == (text, text, 0)
            assert "RLE_DICTIONARY" in chunk.encodings


def test_values_of_the_rows_do_not_count_beside_the_one_text() -> None:
    store = MemoryStore()
    with BaseFileWriter(store, PATH, WIDE, ParquetOptions(), SAME) as writer:
        writer.write(pa.table([["a", "b"], ["old", "old"], ["x", "y"], [1, 2]], schema=WIDE))
    found = pq.read_table(pa.BufferReader(store.read(PATH)))
    assert found.to_pydict() == {
        KEY: ["a", "b"],
        "_hoodie_file_name": ["f.parquet"] * 2,
        "city": ["é"] * 2,
        "n": [1, 2],
    }


def test_row_groups_that_threads_encode_give_the_same_files() -> None:
    options = ParquetOptions(row_group_bytes=4000, bloom=FilterOptions(entries=300))
    tables = [rows([f"k{number}-{start + at:05}" for at in range(97)]) for number, start in ((0, 0), (1, 500))] * 30

    def written(threads: EncodingThreads | None) -> tuple[list[bytes], list[tuple[int, int]]]:
        store, paths = MemoryStore(), [f"p/{name}.parquet" for name in "abc"]
        writers = [BaseFileWriter(store, path, SCHEMA, options, threads=threads) for path in paths]
        for found in tables:
            for writer in writers:
                writer.write(found)
        for writer in writers:
            writer.close()
        return [store.read(path) for path in paths], [(writer.rows, writer.size_bytes) for writer in writers]

    with EncodingThreads(2) as threads:
        assert written(threads) == written(None)


class _FullDisk(io.BytesIO):
    def write(self, data: Any) -> int:
        if self.tell() > 1000:
            raise OSError("the disk is full")
        return super().write(data)


class _SmallStore(MemoryStore):
    def open_output(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_FullDisk(), mode="w")


def write_all(writer: BaseFileWriter) -> None:
    with writer:
        for number in range(20):
            writer.write(rows([f"{number}"]))


def test_an_error_of_a_thread_that_encodes_is_raised_by_a_later_call() -> None:
    with EncodingThreads(1) as threads:
        writer = BaseFileWriter(_SmallStore(), PATH, SCHEMA, ParquetOptions(row_group_bytes=1), threads=threads)
        with pytest.raises(OSError, match="the disk is full"):
            write_all(writer)
    assert 2 < writer.rows < 20
