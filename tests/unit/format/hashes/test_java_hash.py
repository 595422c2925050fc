"""`String.hashCode` of columns against its definition, and the file group of every key of the JVM's tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hoodie.format.hashes.java_hash import file_group_index, java_hash


def defined(text: str) -> int:
    """Java's definition, unit by unit."""
    units = text.encode("utf-16-le")
    result = 0
    for place in range(0, len(units), 2):
        result = (31 * result + int.from_bytes(units[place : place + 2], "little")) & 0xFFFFFFFF
    return result - (1 << 32) if result >= 1 << 31 else result


TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=20)


@given(TEXTS)
def test_it_is_javas_hash(texts: list[str]) -> None:
    assert java_hash(pa.array(texts, pa.string())).tolist() == [defined(text) for text in texts]


@given(TEXTS, st.integers(0, 5))
def test_slices_hash_alike(texts: list[str], start: int) -> None:
    keys = pa.array(texts, pa.string()).slice(start)
    assert java_hash(keys).tolist() == [defined(text) for text in texts[start:]]


def test_long_columns_are_hashed_in_chunks() -> None:
    texts = [f"key-{number}" * (number % 4) for number in range(50)] + ["😀" * 9]
    assert java_hash(pa.array(texts), chunk_bytes=10).tolist() == [defined(text) for text in texts]


def test_the_smallest_integer_has_a_group_too() -> None:
    smallest = "polygenelubricants"
    assert java_hash(pa.array([smallest])).tolist() == [-(1 << 31)]
    assert file_group_index(pa.array([smallest]), 10).tolist() == [(1 << 31) % 10]


def test_groups_of_the_format_page() -> None:
    assert file_group_index(pa.array(["key-000000", "key-000349", "TXN-001"]), 10).tolist() == [4, 0, 8]


def test_similar_keys_spread_over_the_groups() -> None:
    keys = pa.array([f"trip-{number:08}" for number in range(20_000)])
    counts = np.bincount(file_group_index(keys, 10), minlength=10)
    assert counts.min() > 1_000
    assert counts.max() < 3_000
