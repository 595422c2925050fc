"""Variable-length integers: one by one and by columns, the same bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.format.varint import (
    signed_of_zigzag,
    varint_at,
    varint_to_bytes,
    varints_of_words,
    zigzag_at,
    zigzag_cells,
    zigzag_to_bytes,
)

LONGS = st.integers(-(2**63), 2**63 - 1)


@given(st.integers(0, 2**64 - 1))
def test_unsigned_numbers_round_trip(value: int) -> None:
    encoded = varint_to_bytes(value)
    assert varint_at(b"\xff" + encoded + b"\xff", 1) == (value, 1 + len(encoded))


@given(LONGS)
def test_signed_numbers_round_trip(value: int) -> None:
    encoded = zigzag_to_bytes(value)
    assert zigzag_at(encoded, 0) == (value, len(encoded))


@given(st.lists(st.tuples(LONGS, st.booleans()), max_size=20))
def test_columns_are_encoded_as_single_numbers_are(numbers: list[tuple[int, bool]]) -> None:
    values = np.array([value for value, _ in numbers], np.int64)
    present = np.array([is_present for _, is_present in numbers], np.bool_)
    cells, is_used = zigzag_cells(values, present)
    assert is_used is not None
    expected = b"".join(zigzag_to_bytes(value) for value, is_present in numbers if is_present)
    assert cells[np.broadcast_to(is_used, cells.shape)].tobytes() == expected


@given(st.lists(st.integers(-(2**55), 2**55 - 1), max_size=20))
def test_columns_are_decoded_as_single_numbers_are(numbers: list[int]) -> None:
    encoded = [zigzag_to_bytes(value) for value in numbers]
    words = np.array([int.from_bytes(piece.ljust(8, b"\xff")[:8], "little") for piece in encoded], np.uint64)
    found, lengths, is_long = varints_of_words(words)
    assert signed_of_zigzag(found).tolist() == numbers
    assert lengths.tolist() == [len(piece) for piece in encoded]
    assert not is_long.any()


def test_numbers_that_do_not_end() -> None:
    with pytest.raises(ValueError, match="ends inside"):
        varint_at(b"\x80\x80", 0)
    with pytest.raises(ValueError, match="more than 10 bytes"):
        varint_at(b"\x80" * 11, 0)
    with pytest.raises(ValueError, match="more than 5 bytes"):
        varint_at(b"\x80" * 11, 0, bytes_max=5)


def test_the_ninth_byte_of_kryo_has_eight_bits() -> None:
    assert varint_at(b"\xff" * 9, 0, bytes_max=9) == (2**64 - 1, 9)
