"""Where seek and scan cross, told from figures; and the keys that are looked up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.crossing import crossing, render
from bench.keys import narrow_rows, uuid_keys


def _points(*points: tuple[float, float, float]) -> list[dict[str, Any]]:
    return [{"share": share, "seek": [seek], "scan": [scan]} for share, seek, scan in points]


def test_the_crossing_is_where_the_lines_of_the_picture_meet() -> None:
    assert crossing(_points((0.01, 1.0, 4.0), (0.1, 2.0, 4.0), (1.0, 8.0, 4.0))) == pytest.approx(0.1 * 10**0.5)


def test_one_noisy_point_does_not_move_the_crossing() -> None:
    steady = [(0.01, 1.0, 8.0), (0.1, 2.0, 8.0), (0.3, 9.0, 8.0), (0.5, 16.0, 8.0), (0.7, 20.0, 8.0), (1.0, 24.0, 8.0)]
    noisy = [*steady[:4], (0.7, 7.0, 8.0), steady[5]]
    assert crossing(_points(*noisy)) == crossing(_points(*steady))


def test_one_way_may_always_be_quicker() -> None:
    assert crossing(_points((0.01, 1.0, 4.0), (1.0, 2.0, 4.0))) is None
    assert crossing(_points((0.01, 5.0, 4.0), (1.0, 6.0, 4.0))) == 0.01


def test_the_table_has_both_ways_of_each_bucket() -> None:
    points = _points((0.01, 0.001, 0.004), (1.0, 0.008, 0.004))
    bucket = {"entries": 1_000, "blocks": 2, "points": points, "crossing": None}
    machine = {"cores": 2, "memory_gib": 23.5, "when": "2026-11-21T17:11:03+00:00"}
    text = render({"machine": machine, "repeats": 3, "scan_share": 0.3, "buckets": [bucket]})
    assert "| 1% | 1.0 | 4.0 |" in text
    assert "a seek is quicker at every share (`auto` scans from 30%)" in text
    assert "0.25x the time of a scan for the fewest keys, 2.00x for all of them" in text


def test_keys_are_of_their_numbers_and_all_different() -> None:
    keys = uuid_keys(np.arange(10_000))
    keys.validate(full=True)
    assert len(keys.unique()) == 10_000
    assert uuid_keys(np.array([77])).to_pylist() == [keys[77].as_py()]
    assert [len(part) for part in keys[0].as_py().split("-")] == [8, 4, 4, 4, 12]
    assert narrow_rows(np.array([77]), ts=5).to_pylist() == [{"key": keys[77].as_py(), "ts": 5, "city": "city-7"}]
