"""Bloom filters: the reference's bytes, a plain second implementation of the hash, and corrupt bytes."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, InvalidConfigError
from hoodie.format.hashes.bloom import (
    FOOTER_KEY,
    MAX_KEY_FOOTER_KEY,
    MIN_KEY_FOOTER_KEY,
    TYPE_FOOTER_KEY,
    BloomFilter,
    BloomFilterType,
    FilterBuilder,
    FilterOptions,
    first_hashes,
    footer_entries,
)
from hoodie.format.hashes.murmur import chained_hashes

_FILTERS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "golden" / "bloom" / "filters.json").read_text()
)
# The keys that the recipe of filters.json adds: 2000 short ones, then those whose last bytes are negative in Java.
_KEYS = [f"key-{i:06d}" for i in range(2000)] + ["é", "日本", "ab\u00ff", "naïve-клю́ч", "😀x", "😀xy", "😀"]


def _keys_of(golden: dict[str, Any]) -> pa.Array:
    first = golden["first_key"]
    return pa.array(_KEYS[first : first + golden["key_count"]], pa.string())


def _built(
    keys: pa.Array | pa.ChunkedArray, *, pieces: int = 1, loose_bytes_max: int = 64 << 20, **options: Any
) -> BloomFilter:
    """Build a filter from keys that come in pieces."""
    builder = FilterBuilder(FilterOptions(**options), loose_bytes_max=loose_bytes_max)
    size = max(1, -(-len(keys) // pieces))
    for start in range(0, len(keys), size):
        builder.add(keys.slice(start, size))
    return builder.build()


def _plain_murmur(key: bytes, seed: int) -> int:
    """Hash one key word by word, on Python integers."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    value = seed ^ len(key)
    whole = len(key) // 4 * 4
    for start in range(0, whole, 4):
        word = int.from_bytes(key[start : start + 4], "little") * factor & mask
        word = (word ^ word >> 24) * factor & mask
        value = value * factor & mask ^ word
    if whole < len(key):
        # The tail is taken from the end: last byte lowest, each byte signed.
        for place, byte in enumerate(reversed(key[whole:])):
            signed = byte - 256 if byte > 127 else byte
            value ^= signed << 8 * place & mask
        value = (value & mask) * factor & mask
    value ^= value >> 13
    value = value * factor & mask
    return value ^ value >> 15


@pytest.mark.parametrize("pieces", [1, 7])
@pytest.mark.parametrize("name", _FILTERS)
def test_filters_of_the_reference_are_rebuilt_byte_for_byte(name: str, pieces: int) -> None:
    golden = _FILTERS[name]
    built = _built(
        _keys_of(golden),
        pieces=pieces,
        filter_type=BloomFilterType(golden["filter_type"]),
        entries=golden["entries"],
        false_positive_rate=golden["false_positive_rate"],
        entries_max=golden["entries_max"],
    )
    assert built.to_base64() == golden["base64"]


@pytest.mark.parametrize("name", _FILTERS)
def test_filters_of_the_reference_know_their_keys(name: str) -> None:
    golden = _FILTERS[name]
    parsed = BloomFilter.parse(golden["base64"], golden["filter_type"])
    assert parsed.may_contain(_keys_of(golden)).all()
    if golden["key_count"] <= golden["entries"]:  # only then does the rate hold
        absent = pa.array([f"absent-{i}" for i in range(1000)])
        assert parsed.may_contain(absent).sum() <= 10


@pytest.mark.parametrize("table", ["v6_cow", "v9_mor"])
def test_footers_of_the_reference(golden_tables: Path, table: str) -> None:
    files = sorted((golden_tables / table).glob("city=*/*.parquet"))
    assert files
    for file in files:
        footer = pq.read_metadata(file).metadata
        keys = pq.read_table(file, columns=["_hoodie_record_key"])["_hoodie_record_key"]
        stored = footer[FOOTER_KEY.encode()]
        parsed = BloomFilter.parse(stored, footer[TYPE_FOOTER_KEY.encode()].decode(), path=str(file))
        assert parsed.may_contain(keys).all()
        assert not parsed.may_contain(pa.array([f"absent-{i}" for i in range(500)])).any()
        texts = sorted(keys.to_pylist())
        expected = footer_entries(_built(keys), min_key=texts[0], max_key=texts[-1])
        assert {key: footer[key.encode()].decode() for key in expected} == expected


@given(st.lists(st.text(max_size=40) | st.text(alphabet="é日😀a", max_size=9), max_size=30), st.integers(0, 3))
def test_the_vectorised_hash_is_the_plain_one(keys: list[str], skipped: int) -> None:
    array = pa.array(keys, pa.string()).slice(skipped)
    for start, order, hashes in chained_hashes(array, 3):
        assert start == 0
        seeds = [0] * len(array)
        for values in hashes:
            seeds = [_plain_murmur(key.encode(), seed) for key, seed in zip(keys[skipped:], seeds, strict=True)]
            assert [seeds[i] for i in order] == values.tolist()


def test_keys_of_several_chunks_and_kinds_of_strings() -> None:
    keys = [f"{i}" * (i % 7 + 1) for i in range(40_000)]
    built = _built(pa.chunked_array([keys[:10], keys[10:]]))
    assert built.to_bytes() == _built(pa.array(keys, pa.large_string())).to_bytes()
    assert built.may_contain(pa.chunked_array([keys])).all()
    assert built.may_contain(pa.array(keys).dictionary_encode().cast(pa.string())).all()


@given(st.lists(st.text(min_size=1, max_size=12), max_size=60), st.integers(1, 20), st.integers(1, 80))
def test_what_was_added_is_found(keys: list[str], entries: int, entries_max: int) -> None:
    for kind in BloomFilterType:
        sizes: dict[str, Any] = {"entries": entries, "entries_max": entries_max, "false_positive_rate": 0.01}
        built = _built(pa.array(keys, pa.string()), filter_type=kind, **sizes)
        parsed = BloomFilter.parse(built.to_base64(), kind)
        assert parsed.to_bytes() == built.to_bytes()
        assert parsed.may_contain(pa.array(keys, pa.string())).tolist() == [True] * len(keys)


@given(
    st.lists(st.text(max_size=12), max_size=60),
    st.lists(st.text(max_size=12), max_size=60),
    st.sampled_from(["SIMPLE", "DYNAMIC_V0"]),
    st.sampled_from([1e-9, 0.3]),
)
def test_keys_that_are_hashed_once_pass_the_first_hashes(
    keys: list[str], others: list[str], kind: str, rate: float
) -> None:
    """A key that is in the filter passes; what passes all hashes passes the first ones; few others pass them."""
    options: dict[str, Any] = {"entries": 20, "entries_max": 80, "false_positive_rate": rate}
    options["filter_type"] = BloomFilterType(kind)
    filters = [_built(pa.array(part, pa.string()), **options) for part in (keys, others)]
    asked = pa.array([*keys, *others, *(f"absent-{n}" for n in range(500))], pa.string())
    hashes = first_hashes(asked)
    for bloom, part in zip(filters, (keys, others), strict=True):
        found = bloom.may_contain_hashed(hashes)
        assert found[np.isin(asked.to_pylist(), part) if part else []].all()
        assert found[bloom.may_contain(asked)].all()
        if kind == "DYNAMIC_V0" and rate < 0.1:
            assert found[-500:].sum() < 250
    assert BloomFilter.saturated().may_contain_hashed(hashes).all()


def test_the_saturated_filter_says_maybe_to_everything() -> None:
    saturated = BloomFilter.saturated()
    assert len(saturated.to_bytes()) == 39
    parsed = BloomFilter.parse(saturated.to_base64(), saturated.filter_type)
    assert parsed.may_contain(pa.array(_KEYS)).all()
    # The bytes that JVM Hudi 1.2.0 accepted (docs/decisions/0001-bloom-footers.md).
    assert parsed.to_base64() == "/////wAAAAEBAAAACAAAAAEAAAABAAAAAf////8AAAABAQAAAAj/"


def test_the_old_layout_with_the_old_hash_says_maybe_to_everything() -> None:
    data = (20).to_bytes(4, "big") + (16).to_bytes(4, "big") + b"\x01\x02"
    parsed = BloomFilter.parse(base64.b64encode(data))
    assert (parsed.hash_count, parsed.bit_count, parsed.hash_type) == (20, 16, 0)
    assert parsed.may_contain(pa.array(["a", "b"])).tolist() == [True, True]


def test_rows_that_do_not_fit_into_memory_with_a_byte_for_each_bit() -> None:
    keys = pa.array([f"{i * 7919 % 5000}" for i in range(5000)])
    options: dict[str, Any] = {"entries": 300, "entries_max": 900, "false_positive_rate": 0.001}
    whole = _built(keys, pieces=9, **options)
    assert _built(keys, pieces=9, loose_bytes_max=1, **options).to_bytes() == whole.to_bytes()


def test_what_is_empty_and_what_is_refused() -> None:
    assert footer_entries(None, min_key="a", max_key="z") == {MIN_KEY_FOOTER_KEY: "a", MAX_KEY_FOOTER_KEY: "z"}
    assert BloomFilter.saturated().may_contain(pa.array([], pa.string())).dtype == np.bool_
    assert len(_built(pa.array([], pa.string())).rows) == 1
    with pytest.raises(InvalidConfigError, match="bits; expected at most 2,147,483,647"):
        FilterOptions(entries=50_000_000)
    with pytest.raises(CorruptFileError, match="CUCKOO"):
        BloomFilter.parse(BloomFilter.saturated().to_base64(), "CUCKOO")
