"""Damaged HFiles give `CorruptFileError`, whatever was damaged: never another exception, and never an endless loop."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.hfile import Compression, HFileReader, hfile_to_bytes

GOLDEN = Path(__file__).parents[2] / "golden" / "hfile"
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
    reader.get_prefix(b"key-1")
    reader.meta_block("bloomFilter")


def expect_no_other_error(data: bytes) -> None:
    try:
        read_everything(data)
    except CorruptFileError as error:
        if error.path != "damaged.hfile":
            raise


@pytest.mark.parametrize("name", ["gzip", "none", "one", "hudi", "hbase"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
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
@settings(max_examples=5, deadline=None)
def test_flipped_bits_in_the_levels_of_an_index(data: st.DataObject) -> None:
    damaged = bytearray(FILES["deep"])
    start = data.draw(st.sampled_from([0, len(damaged) - 60_000, len(damaged) - 8000]))
    damaged[data.draw(st.integers(start, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    expect_no_other_error(bytes(damaged))


@pytest.mark.parametrize("name", list(FILES))
@given(data=st.data())
@settings(max_examples=15, deadline=None)
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
    with pytest.raises(CorruptFileError, match=r"behind the trailer|no room|magic"):
        read_everything(bytes(5000) + trailer)


@pytest.mark.parametrize(
    ("position", "replacement", "message"),
    [
        (0, b"DATABLK?", "magic"),
        (8, b"\x7f\xff\xff\xff", "contradict"),
        (12, b"\x7f\xff\xff\xff", "impossible payload size"),
        (29, b"\x00\x00\x00\x00", "contradict"),
        (33, b"\x7f\xff\xff\xff", "do not end where the block does"),
        (41, b"\x7f\xff", "longer than its key"),
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
