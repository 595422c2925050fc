"""HFiles whose few bytes announce or expand to many: refused, with little memory."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError
from hoodie.format.hfile import HFileReader, hfile_to_bytes
from hoodie.format.hfile.block import DATA, INDEX, Block, block_to_bytes, read_block
from hoodie.format.hfile.compression import Compression
from hoodie.format.hfile.wire import Cursor

SIZE_FIELD = 12


def read(data: bytes, magic: bytes = DATA, **limits: int) -> Block:
    return read_block(memoryview(data), magics=(magic,), codec=Compression.GZIP, start=0, path="bomb.hfile", **limits)


def announcing(payload_bytes: int, payload: bytes, magic: bytes = DATA) -> bytes:
    """A block of `payload` whose header announces another size."""
    data = block_to_bytes(magic, payload, codec=Compression.GZIP)
    return data[:SIZE_FIELD] + struct.pack(">i", payload_bytes) + data[SIZE_FIELD + 4 :]


@pytest.mark.parametrize("payload_bytes", [(128 << 20) + 1, 2**31 - 1, -1, 1_000_000])
def test_a_size_that_the_block_cannot_have(payload_bytes: int) -> None:
    with pytest.raises(CorruptFileError, match="impossible payload size"):
        read(announcing(payload_bytes, b"small"))


def test_a_block_of_an_index_is_smaller() -> None:
    with pytest.raises(CorruptFileError, match="up to 16777216 bytes"):
        read(block_to_bytes(INDEX, bytes((16 << 20) + 1), codec=Compression.GZIP), INDEX)


def test_a_large_block_has_one_entry() -> None:
    # The first block of a file begins at its first byte.
    file = hfile_to_bytes(pa.array(["a", "b"]), pa.array([b"x" * 200_000, b"y"]), schema_json="{}")
    assert b"x" * 200_000 in bytes(read(file, several_entries_bytes_max=100_000).payload)
    with pytest.raises(CorruptFileError, match="expected one entry in a block of 110000 bytes, found several"):
        read(block_to_bytes(DATA, bytes(110_000), codec=Compression.GZIP), several_entries_bytes_max=100_000)


def test_entries_that_are_much_larger_than_their_file() -> None:
    count = 200
    keys = pa.array([f"{number:04}" for number in range(count)])
    data = hfile_to_bytes(keys, pa.array([bytes(50_000)] * count), schema_json="{}")
    assert len(data) < 100_000
    assert len(HFileReader(data, path="large").entries()[0]) == count
    with pytest.raises(CorruptFileError, match="bytes of entries in a file of"):
        HFileReader(data, path="large", entries_bytes_max=1_000_000).entries()


def test_an_index_of_more_blocks_than_fit() -> None:
    data = bytearray(hfile_to_bytes(pa.array(["a"]), pa.array([b"x"]), schema_json="{}"))
    trailer = len(data) - 4096
    # Field 5 of the trailer, the number of entries of the root index, is one byte with the value 1.
    place = data.index(b"\x28\x01", trailer) + 1
    data[place] = 100
    with pytest.raises(CorruptFileError, match="an index of 100 blocks does not fit the file"):
        HFileReader(bytes(data), path="index")


def test_a_message_of_many_fields() -> None:
    cursor = Cursor(memoryview(b"\x08\x01" * 10_001), path="info", origin=0)
    with pytest.raises(CorruptFileError, match="up to 10000 fields"):
        list(cursor.message())


_PROBE = """
import resource, sys
import pyarrow as pa
from hoodie.errors import CorruptFileError
from hoodie.format.hfile import HFileReader
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    HFileReader(open(sys.argv[1], "rb").read(), path="bomb").entries()
except CorruptFileError:
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_bomb_takes_less_than_half_a_gibibyte(tmp_path: Path) -> None:
    """The largest block that is read: 128 MiB of zeros in less than 1 MB; measured in a process of its own."""
    small = hfile_to_bytes(pa.array(["a"]), pa.array([bytes((128 << 20) - 33)], pa.binary()), schema_json="{}")
    file = tmp_path / "bomb.hfile"
    file.write_bytes(small)
    assert len(small) < 1_000_000
    done = subprocess.run([sys.executable, "-c", _PROBE, str(file)], capture_output=True, text=True, check=True)
    scale = 1024 if sys.platform != "darwin" else 1
    assert int(done.stdout) * scale < 512 << 20
