"""The hash that spreads keys over tasks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from hoodie.records.keys.key_hash import spread

KEYS = ["", "a", "b", "ab", "é", "12345678", "123456789", "x" * 16, "x" * 17, "x" * 40, "日本", "\0", "\0\0"]


def test_equal_keys_are_equal_wherever_they_lie() -> None:
    alone = [int(spread(pa.array([key]))[0]) for key in KEYS]
    together = pa.array(["before", *KEYS, "after"])
    assert spread(together)[1:-1].tolist() == alone
    assert spread(together.slice(1, len(KEYS))).tolist() == alone
    assert spread(together.slice(4, 3)).tolist() == alone[3:6]


def test_short_keys_differ() -> None:
    assert len(set(spread(pa.array(KEYS)).tolist())) == len(KEYS)


@pytest.mark.parametrize("keys", [[], [""], ["", ""]])
def test_nothing_to_hash(keys: list[str]) -> None:
    assert spread(pa.array(keys, pa.string())).tolist() == [0] * len(keys)


def test_stable_for_ever() -> None:
    """A job that is retried by another version must put its rows in the same place."""
    assert spread(pa.array(["a", "id-000000000000000000000017"])).dtype == np.uint32
    assert spread(pa.array(["a"])).tolist() == spread(pa.array(["b", "a"]))[1:].tolist()


@pytest.mark.parametrize("form", ["{}", "key-{:08d}", "{:032x}", "2024-01-01T00:00:{:05d}"])
@pytest.mark.parametrize("buckets", [2, 7, 16])
def test_keys_are_spread_evenly(form: str, buckets: int) -> None:
    hashes = spread(pa.array([form.format(number) for number in range(20_000)]))
    by_rest = np.bincount(hashes % np.uint32(buckets), minlength=buckets)
    by_range = np.bincount((hashes.astype(np.uint64) * np.uint64(buckets)) >> np.uint64(32), minlength=buckets)
    for counts in (by_rest, by_range):
        assert counts.min() > 0.8 * 20_000 / buckets, counts
