"""Damaged HFiles give `CorruptFileError`, whatever was damaged: never another exception, and never an endless loop.

HFiles whose few bytes announce or expand to many are refused, with little memory.
"""

from __future__ import annotations

import contextlib
import gzip
import struct
import subprocess
import sys
import tracemalloc
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.hfile import Compression, HFileReader, compression, hfile_to_bytes
from hoodie.format.hfile.block import DATA, INDEX, Block, ChecksumType, block_to_bytes, checksums, read_block
from hoodie.format.hfile.compression import gunzip, gzip_bytes, with_comment
from hoodie.format.hfile.index import IndexEntry
from hoodie.format.hfile.trailer import TRAILER_BYTES
from hoodie.format.hfile.wire import Cursor
from tests.support.memory import PEAK_BYTES
from tests.support.seeds import examples

GOLDEN = Path(__file__).parents[3] / "golden" / "hfile"
KEYS = pa.array([f"key-{number:04d}" for number in range(2500)])
VALUES = pa.array([b"v" * (number % 40) for number in range(2500)], pa.binary())


def hfile_of(count: int, codec: Compression = Compression.NONE) -> bytes:
    """A file with that many entries."""
    return hfile_to_bytes(KEYS[:count], VALUES[:count], schema_json='{"type":"record"}', codec=codec)


ONE = hfile_of(1)
DEEP = (GOLDEN / "hudi_1_0_hbase_2_4_13_1KB_GZ_10000_large_keys_deep_index.hfile").read_bytes()
SAMPLES = [
    hfile_of(2500, Compression.GZIP),
    hfile_of(2500),
    ONE,
    (GOLDEN / "hudi-generated.hfile").read_bytes(),
    (GOLDEN / "hudi_0_10_hbase_1_2_3_complex.hfile").read_bytes(),
]
"""Those of `test_codecs.py`, with our entries or others."""


def read_everything(data: bytes, path: str = "damaged.hfile") -> None:
    reader = HFileReader(data, path=path)
    reader.entries()
    reader.get_many(KEYS[::500])
    reader.get_range(b"key-1", b"key-2")
    reader.get_range(b"key-0100", b"key-0200")


@given(data=st.data())
@settings(max_examples=examples(20))
def test_flipped_bits_in_the_structure_of_a_file_and_in_the_levels_of_an_index(data: st.DataObject) -> None:
    """Most of the structure is at the end: index, file info, trailer."""
    damaged = bytearray(data.draw(st.sampled_from([*SAMPLES, DEEP])))
    start = data.draw(st.sampled_from([0, max(0, len(damaged) - 60_000), len(damaged) - 4000, len(damaged) - 8]))
    damaged[data.draw(st.integers(start, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        read_everything(bytes(damaged))
    except CorruptFileError as error:
        if error.path != "damaged.hfile" or error.offset is None:
            raise AssertionError("an error without its place") from error


def test_noise_in_front_of_a_trailer() -> None:
    with pytest.raises(CorruptFileError, match=r"after the start of the trailer|block header|magic"):
        read_everything(bytes(5000) + SAMPLES[1][-4096:])


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
    damaged = bytearray(ONE)
    damaged[position : position + len(replacement)] = replacement
    with pytest.raises(CorruptFileError, match=message) as caught:
        read_everything(bytes(damaged))
    assert (caught.value.path, caught.value.offset) == ("damaged.hfile", 0)


def corrupt(message: str) -> AbstractContextManager[object]:
    return pytest.raises(CorruptFileError, match=message)


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


@pytest.mark.later
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


@pytest.mark.parametrize("kind", list(ChecksumType))
def test_checksums_are_verified(kind: ChecksumType) -> None:
    data = bytearray(SMALL["none"])
    end = int.from_bytes(data[29:33], "big")
    data[24] = kind
    data[end : end + 4] = checksums(bytes(data[:end]), kind, 16384)
    assert content_of(bytes(data))[0] == SMALL_KEYS.cast(pa.binary()).to_pylist()
    data[end - 3] ^= 1  # the last digit of a value
    with contextlib.nullcontext() if kind is ChecksumType.NONE else corrupt("checksum of the block is wrong"):
        content_of(bytes(data))


# Members of gzip, by ISA-L and by zlib, which a worker of Spark without ISA-L has


PAYLOAD = bytes(range(256)) * 400
WHOLE = gzip.compress(PAYLOAD)
WRONG_MEMBERS = [
    (b"no gzip member", "does not decompress"),
    (WHOLE[:-8] + bytes([WHOLE[-8] ^ 1]) + WHOLE[-7:], "does not decompress|does not end at the end"),
    (WHOLE[:-9], "does not end at the end"),
    *((WHOLE + tail, "does not end at the end of its block") for tail in (b"x", b"\0\0", gzip.compress(b"more"))),
    (gzip.compress(PAYLOAD + b"more"), "found more than"),
    (gzip.compress(PAYLOAD[:-1]), "payload bytes, found"),
    (gzip.compress(bytes(20_000_000)), "found more than"),
]


def test_both_libraries_read_each_other_and_refuse_what_is_no_member(monkeypatch: pytest.MonkeyPatch) -> None:
    def member() -> bytes:
        return with_comment(gzip_bytes(PAYLOAD), 3)

    def unpacked(stored: bytes) -> bytes:
        return bytes(gunzip(memoryview(stored), len(PAYLOAD), path="f", offset=0))

    members, crcs = [member()], [checksums(PAYLOAD, ChecksumType.CRC32, 512)]
    for _ in range(2):
        assert [unpacked(found) for found in (*members, WHOLE)] == [PAYLOAD] * (len(members) + 1)
        assert gzip.decompress(members[-1]) == PAYLOAD
        for wrong, says in WRONG_MEMBERS:
            tracemalloc.start()
            with corrupt(says):
                unpacked(wrong)
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
            tracemalloc.stop()
        for name in ("igzip_lib", "isal_zlib"):
            monkeypatch.setattr(compression, name, None)
        members.append(member())
        crcs.append(checksums(PAYLOAD, ChecksumType.CRC32, 512))
    monkeypatch.undo()
    assert unpacked(members[1]) == PAYLOAD
    assert crcs[0] == crcs[1]


# Sizes


def read(data: bytes, magic: bytes = DATA, **limits: int) -> Block:
    return read_block(memoryview(data), magics=(magic,), codec=Compression.GZIP, start=0, path="bomb.hfile", **limits)


@pytest.mark.parametrize("payload_bytes", [(128 << 20) + 1, 2**31 - 1, -1, 1_000_000])
def test_a_size_that_the_block_cannot_have(payload_bytes: int) -> None:
    data = block_to_bytes(DATA, b"small", codec=Compression.GZIP)
    with corrupt("impossible payload size"):
        read(data[:12] + struct.pack(">i", payload_bytes) + data[16:])


def test_blocks_and_entries_are_not_larger_than_they_may_be() -> None:
    with corrupt("up to 16777216 bytes"):
        read(block_to_bytes(INDEX, bytes((16 << 20) + 1), codec=Compression.GZIP), INDEX)
    # A large block has one entry. The first block of a file begins at its first byte.
    file = hfile_to_bytes(pa.array(["a", "b"]), pa.array([b"x" * 200_000, b"y"]), schema_json="{}")
    assert b"x" * 200_000 in bytes(read(file, several_entries_bytes_max=100_000).payload)
    with corrupt("expected one entry in a block of 110000 bytes, found several"):
        read(block_to_bytes(DATA, bytes(110_000), codec=Compression.GZIP), several_entries_bytes_max=100_000)
    keys = pa.array([f"{number:04}" for number in range(200)])
    data = hfile_to_bytes(keys, pa.array([bytes(50_000)] * 200), schema_json="{}")
    assert len(data) < 100_000
    assert len(HFileReader(data, path="large").entries()[0]) == 200
    with corrupt("bytes of entries in a file of"):
        HFileReader(data, path="large", entries_bytes_max=1_000_000).entries()


def test_counts_of_blocks_and_fields_are_bounded() -> None:
    data = bytearray(ONE)
    # Field 5 of the trailer, the number of entries of the root index, is one byte with the value 1.
    data[data.index(b"\x28\x01", len(data) - TRAILER_BYTES) + 1] = 100
    with corrupt("an index of 100 blocks does not fit the file"):
        HFileReader(bytes(data), path="index")
    with corrupt("up to 10000 fields"):
        list(Cursor(memoryview(b"\x08\x01" * 10_001), path="info", origin=0).message())


_PROBE = f"""{PEAK_BYTES}
import pyarrow as pa
from hoodie.errors import CorruptFileError
from hoodie.format.hfile import HFileReader
before = peak_bytes()
try:
    HFileReader(open(sys.argv[1], "rb").read(), path="bomb").entries()
except CorruptFileError:
    pass
print(peak_bytes() - before)
"""


@pytest.mark.later
def test_a_bomb_takes_less_than_half_a_gibibyte(tmp_path: Path) -> None:
    """The largest block that is read: 128 MiB of zeros in less than 1 MB; measured in a process of its own."""
    small = hfile_to_bytes(pa.array(["a"]), pa.array([bytes((128 << 20) - 33)], pa.binary()), schema_json="{}")
    file = tmp_path / "bomb.hfile"
    file.write_bytes(small)
    assert len(small) < 1_000_000
    done = subprocess.run([sys.executable, "-c", _PROBE, str(file)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 512 << 20
