"""The order of record keys is that of their UTF-8 bytes, as the metadata table sorts them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hoodie.records.keys.key_order import key_order

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
