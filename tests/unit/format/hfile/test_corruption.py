"""Damaged HFiles give `CorruptFileError`, whatever was damaged: never another exception, and never an endless loop."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.hfile import Compression, HFileReader, hfile_to_bytes
from hoodie.format.hfile.block import INDEX, ChecksumType, block_to_bytes, checksums
from hoodie.format.hfile.compression import gunzip
from hoodie.format.hfile.index import IndexEntry
from hoodie.format.hfile.trailer import TRAILER_BYTES
from tests.support.seeds import examples

GOLDEN = Path(__file__).parents[3] / "golden" / "hfile"
KEYS = pa.array([f"key-{number:04d}" for number in range(2500)])
VALUES = pa.array([b"v" * (number % 40) for number in range(2500)], pa.binary())
FILES = {
    "gzip": hfile_to_bytes(KEYS, VALUES, schema_json='{"type":"record"}'),
    "none": hfile_to_bytes(KEYS, VALUES, schema_json='{"type":"record"}', codec=Compression.NONE),
    "one": hfile_to_bytes(KEYS[:1], VALUES[:1], schema_json="{}", codec=Compression.NONE),
    "hudi": (GOLDEN / "hudi-generated.hfile").read_bytes(),
    "hbase": (GOLDEN / "hudi_0_10_hbase_1_2_3_complex.hfile").read_bytes(),
    "deep": (GOLDEN / "hudi_1_0_hbase_2_4_13_1KB_GZ_10000_large_keys_deep_index.hfile").read_bytes(),
}


def read_everything(data: bytes) -> None:
    reader = HFileReader(data, path="damaged.hfile")
    reader.entries()
    reader.get_many(KEYS[::500])
    reader.get_range(b"key-1", b"key-2")
    reader.get_range(b"key-0100", b"key-0200")


def expect_no_other_error(data: bytes) -> None:
    try:
        read_everything(data)
    except CorruptFileError as error:
        if error.path != "damaged.hfile" or (error.offset is None and len(data) >= TRAILER_BYTES):
            raise AssertionError("an error without its place") from error


@pytest.mark.parametrize("name", ["gzip", "none", "one", "hudi", "hbase"])
@given(data=st.data())
@settings(max_examples=examples(60))
def test_flipped_bits(name: str, data: st.DataObject) -> None:
    damaged = bytearray(FILES[name])
    for _ in range(data.draw(st.integers(1, 4))):
        # Most of the structure is at the end: index, file info, trailer.
        position = data.draw(
            st.one_of(st.integers(0, len(damaged) - 1), st.integers(len(damaged) - 8, len(damaged) - 1))
        )
        damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    expect_no_other_error(bytes(damaged))


@given(data=st.data())
@settings(max_examples=examples(5))
def test_flipped_bits_in_the_levels_of_an_index(data: st.DataObject) -> None:
    damaged = bytearray(FILES["deep"])
    start = data.draw(st.sampled_from([0, len(damaged) - 60_000, len(damaged) - 8000]))
    damaged[data.draw(st.integers(start, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    expect_no_other_error(bytes(damaged))


@pytest.mark.parametrize("name", list(FILES))
@given(data=st.data())
@settings(max_examples=examples(15))
def test_truncation(name: str, data: st.DataObject) -> None:
    whole = FILES[name]
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptFileError):
        read_everything(whole[:cut])


@given(st.binary(max_size=200))
def test_noise(noise: bytes) -> None:
    with pytest.raises(CorruptFileError):
        read_everything(noise)
    expect_no_other_error(FILES["none"][: -len(noise) or None] + noise)


def test_noise_in_front_of_a_trailer() -> None:
    trailer = FILES["none"][-4096:]
    with pytest.raises(CorruptFileError, match=r"after the start of the trailer|block header|magic"):
        read_everything(bytes(5000) + trailer)


@pytest.mark.parametrize(
    ("position", "replacement", "message"),
    [
        (0, b"DATABLK?", "magic"),
        (8, b"\x7f\xff\xff\xff", "contradict"),
        (12, b"\x7f\xff\xff\xff", "impossible payload size"),
        (29, b"\x00\x00\x00\x00", "contradict"),
        (16, b"\x00\x00\x00\x00\x00\x00\x00\x01", "contradict"),
        (24, b"\x03", "checksums have an unknown form"),
        (24, b"\x01", "checksum of the block is wrong"),
        (24, b"\x02", "checksum of the block is wrong"),
        (25, b"\x00\x00\x00\x00", "contradict"),
        (25, b"\x00\x00\x00\x01", "checksums have an unknown form"),
        (33, b"\x7f\xff\xff\xff", "do not end where the block does"),
        (33, b"\x00\x00\x00\x00", "do not end where the block does"),
        (41, b"\x7f\xff", "fixed bytes of an entry"),
    ],
)
def test_the_message_says_what_is_wrong(position: int, replacement: bytes, message: str) -> None:
    damaged = bytearray(FILES["one"])
    damaged[position : position + len(replacement)] = replacement
    with pytest.raises(CorruptFileError, match=message) as caught:
        read_everything(bytes(damaged))
    assert (caught.value.path, caught.value.offset) == ("damaged.hfile", 0)


def test_a_gzip_member_with_a_wrong_checksum_is_refused() -> None:
    data = bytearray(FILES["gzip"])
    stored = int.from_bytes(data[29:33], "big")
    data[stored - 8] ^= 1
    with pytest.raises(CorruptFileError, match="decompress"):
        read_everything(bytes(data))


def content_of(data: bytes) -> tuple[list[bytes], list[bytes], dict[str, bytes]]:
    reader = HFileReader(data, path="damaged.hfile")
    keys, values = reader.entries()
    return keys.to_pylist(), values.to_pylist(), dict(reader.file_info)


SMALL_KEYS = pa.array([f"key-{number:02d}" for number in range(4)])
SMALL_VALUES = pa.array([b"value-%d" % number for number in range(4)])
SMALL = {
    "gzip": hfile_to_bytes(SMALL_KEYS, SMALL_VALUES, schema_json='{"a":1}'),
    "crc32c": (GOLDEN / "hbase-generated.hfile").read_bytes(),
    "none": hfile_to_bytes(SMALL_KEYS, SMALL_VALUES, schema_json='{"a":1}', codec=Compression.NONE),
}


@pytest.mark.parametrize("name", list(SMALL))
def test_every_bit(name: str) -> None:
    data = SMALL[name]
    expected = content_of(data)
    changed: set[int] = set()
    # Most of a trailer is zeros, all of them alike.
    structure = len(data) - TRAILER_BYTES + 120
    for position in [*range(structure), *range(structure, len(data) - 8, 37), *range(len(data) - 8, len(data))]:
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            try:
                found = content_of(bytes(damaged))
            except CorruptFileError as error:
                if error.path != "damaged.hfile" or error.offset is None:
                    raise AssertionError("an error without its place") from error
                continue
            if found != expected:
                changed.add(position)
    # Without codec and checksums only bytes of values, of the file info, and of rows that stay in order.
    allowed: set[int] = set()
    if name == "none":
        allowed |= {data.index(b"value-%d" % number) + place for number in range(4) for place in range(7)}
        allowed |= {data.index(b"key-%02d" % number) + 5 for number in range(4)}
        allowed |= set(range(data.index(b"FILEINF2"), len(data) - TRAILER_BYTES))
    assert changed <= allowed


@pytest.mark.parametrize("name", list(SMALL))
def test_every_truncation(name: str) -> None:
    data = SMALL[name]
    for length in [*range(600), *range(600, len(data), 61), *range(len(data) - 40, len(data))]:
        with pytest.raises(CorruptFileError):
            content_of(data[:length])


@pytest.mark.parametrize("kind", list(ChecksumType))
def test_checksums_are_verified(kind: ChecksumType) -> None:
    data = bytearray(SMALL["none"])
    end = int.from_bytes(data[29:33], "big")
    data[24] = kind
    data[end : end + 4] = checksums(bytes(data[:end]), kind, 16384)
    assert content_of(bytes(data))[0] == SMALL_KEYS.cast(pa.binary()).to_pylist()
    data[end - 3] ^= 1  # the last digit of a value
    if kind is ChecksumType.NONE:
        content_of(bytes(data))
    else:
        with pytest.raises(CorruptFileError, match="checksum of the block is wrong"):
            content_of(bytes(data))


def with_index(entries: list[IndexEntry]) -> bytes:
    """The small file with another root index of the same length."""
    data = SMALL["none"]
    start = data.index(INDEX)
    index = block_to_bytes(INDEX, b"".join(entry.to_bytes() for entry in entries), codec=Compression.NONE)
    assert data[start + len(index) :].startswith(INDEX)
    return data[:start] + index + data[start + len(index) :]


@pytest.mark.parametrize(
    ("offset", "size_bytes", "row", "message"),
    [
        (0, 0, b"key-00", "do not ascend"),
        (0, 1 << 31, b"key-00", "outside the file"),
        (1 << 62, 445, b"key-00", "outside the file"),
        (1, 100, b"key-00", "the last block is not at byte 0"),
        (0, 100, b"key-00", "contradict"),
        (0, -1, b"key-02", "do not fit its key in the index"),
        (0, -1, b"key-+0", "do not fit its key in the index"),
    ],
)
def test_an_index_that_says_something_else(offset: int, size_bytes: int, row: bytes, message: str) -> None:
    true_size = SMALL["none"].index(INDEX)
    suffix = b"\0\x7f" + b"\xff" * 7 + b"\x04"
    entry = IndexEntry(offset, true_size if size_bytes < 0 else size_bytes, b"\0\x06" + row + suffix)
    for call in (content_of, lambda data: HFileReader(data, path="damaged.hfile").get_many(pa.array(["key-05"]))):
        with pytest.raises(CorruptFileError, match=message) as caught:
            call(with_index([entry]))
        assert caught.value.offset is not None


def test_members_that_expand_to_more_than_they_say_are_stopped() -> None:
    bomb = gzip.compress(bytes(20_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(CorruptFileError, match="more than 100 bytes"):
            gunzip(memoryview(bomb), 100, path="bomb", offset=7)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("tail", [b"x", b"\0\0", gzip.compress(b"more")], ids=["text", "zeros", "member"])
def test_what_follows_a_gzip_member_is_told(tail: bytes) -> None:
    with pytest.raises(CorruptFileError, match="does not end at the end of its block"):
        gunzip(memoryview(gzip.compress(b"abc") + tail), 3, path="f", offset=0)
