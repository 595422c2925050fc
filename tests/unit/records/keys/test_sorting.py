"""Record keys are hashed evenly, found among known keys, and sorted by their UTF-8 bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.records.keys import sorting
from hoodie.records.keys.sorting import KeyLookup, key_order, spread
from tests.support.seeds import examples

KEYS = ["", "a", "b", "ab", "é", "12345678", "123456789", "x" * 16, "x" * 17, "x" * 40, "日本", "\0", "\0\0"]


def test_equal_keys_are_equal_wherever_they_lie() -> None:
    alone = [int(spread(pa.array([key]))[0]) for key in KEYS]
    together = pa.array(["before", *KEYS, "after"])
    assert spread(together)[1:-1].tolist() == alone
    assert spread(together.slice(1, len(KEYS))).tolist() == alone
    assert spread(together.slice(4, 3)).tolist() == alone[3:6]


def test_short_keys_differ_and_nothing_is_zero() -> None:
    assert len(set(spread(pa.array(KEYS)).tolist())) == len(KEYS)
    for keys in ([], [""], ["", ""]):
        assert spread(pa.array(keys, pa.string())).tolist() == [0] * len(keys)
    assert spread(pa.array(["a", "id-000000000000000000000017"])).dtype == np.uint32


@pytest.mark.parametrize("form", ["{}", "key-{:08d}", "{:032x}", "2024-01-01T00:00:{:05d}"])
@pytest.mark.parametrize("buckets", [2, 7, 16])
def test_keys_are_spread_evenly(form: str, buckets: int) -> None:
    hashes = spread(pa.array([form.format(number) for number in range(20_000)]))
    by_rest = np.bincount(hashes % np.uint32(buckets), minlength=buckets)
    by_range = np.bincount((hashes.astype(np.uint64) * np.uint64(buckets)) >> np.uint64(32), minlength=buckets)
    for counts in (by_rest, by_range):
        assert counts.min() > 0.8 * 20_000 / buckets, counts


# Both pairs have equal Java hashes and lengths, and so equal spread hashes.
ALIKE = st.sampled_from(["", "a", "AaAa", "AaBB", "BBAa", "BBBB", "key-1", "ключ"])


@pytest.mark.parametrize("small", [0, 1000])
@settings(max_examples=examples(60))
@given(known=st.lists(ALIKE, unique=True), batches=st.lists(st.lists(ALIKE), max_size=3))
def test_what_a_dictionary_finds(small: int, known: list[str], batches: list[list[str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "_SMALL", small)
        lookup = KeyLookup(pa.array(known, pa.string()))
    asked = [key for batch in batches for key in batch]
    rows, places = lookup.find(pa.chunked_array(batches, pa.string()))
    assert rows.tolist() == [row for row, key in enumerate(asked) if key in known]
    assert [known[place] for place in places] == [key for key in asked if key in known]
    assert rows.dtype == places.dtype == np.int64


_RANDOM = np.random.default_rng(7)
CASES = {
    "none": [],
    "one": ["a"],
    "equal": ["same", "same", "same"],
    "empty": ["b", "", "a", ""],
    "digests": [f"{number:032x}" for number in _RANDOM.integers(0, 1 << 60, 500).tolist()],
    "shared bytes": [f"customer-{number:010d}" for number in _RANDOM.permutation(500).tolist()],
    "ties after eight bytes": [f"{number % 3}-long-prefix-{number}" for number in _RANDOM.permutation(500).tolist()],
    "lengths": ["a" * number for number in _RANDOM.permutation(40).tolist()],
    "prefix and zero byte": ["a\0", "a", "a\0\0", "a", "a\0b"],
    "beyond ASCII": ["é", "e", "z", "中", "\U0001f600", "\uffff", "éa", "ez", "\U0001f600\U0001f600"],
    "duplicates": [f"k{number}" for number in _RANDOM.integers(0, 50, 300).tolist()],
}


@pytest.mark.parametrize("keys", CASES.values(), ids=CASES.keys())
def test_keys_are_ordered_by_their_bytes(keys: list[str]) -> None:
    array = pa.array(keys, pa.string())
    order = key_order(array)
    assert sorted(order.tolist()) == list(range(len(keys)))
    assert array.take(pa.array(order)).to_pylist() == sorted(keys, key=lambda key: key.encode())


def test_a_slice_of_keys_is_ordered_by_its_own_keys() -> None:
    keys = pa.array(["x9", "x3", "x1", "x2", "y"]).slice(1, 3)
    assert key_order(keys).tolist() == [1, 2, 0]
