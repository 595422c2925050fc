"""Samples of matrices: the lanes that repeat the contract on another Spark run some of their cases by a fixed seed.

These lanes are Spark Connect and Spark 3.5. Of a test marked `matrix(keep=…)` they run `keep` cases, and of the tests
without this mark a part. The classic session of the newest Spark runs every case. Matrices outside of tests/contract
are sampled in every lane; in tests/interop, a test without the mark runs half of its cases. Crash tests with many
storage calls try a sample of the calls. HOODIE_TEST_SEED chooses another sample. `make test-all` runs every case in
every lane.

On a slow machine `.ci/run` gives the lanes of `make interop` a time (HOODIE_TEST_UNTIL, seconds since the epoch). Tests
that have not begun by then are left out, and the last lines of the run say how many.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")

SEED = int(os.environ.get("HOODIE_TEST_SEED", "1"))
_WHOLE = ("surface", "matrix")
REPEATED = 0.25
"""Part of the tests of the contract that Spark Connect and Spark 3.5 repeat."""
_SURFACE = 0.5
"""Part of the tests marked `surface` that Connect of Spark 4.0 repeats: its classic session runs all of them."""
IS_WHOLE = os.environ.get("HOODIE_TEST_ALL", "") == "1"
UNTIL = float(os.environ.get("HOODIE_TEST_UNTIL") or "inf")


def describe() -> str:
    """One line for the head of a run: how to repeat its samples."""
    return "samples: none, every case runs" if IS_WHOLE else f"samples: HOODIE_TEST_SEED={SEED}"


def sample_matrices(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items that stay when each test marked `matrix(keep=…)` keeps that many of its cases.

    A test of the lane of judges without this mark keeps half of its cases, rounded up: JVM Hudi takes most of the time.
    """
    matrices: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not IS_WHOLE and (item.get_closest_marker("matrix") or item.get_closest_marker("interop")):
            matrices[item.nodeid.partition("[")[0]].append(item)
    dropped: set[pytest.Item] = set()
    for name, cases in matrices.items():
        mark = cases[0].get_closest_marker("matrix")
        keep: int = mark.kwargs["keep"] if mark else (len(cases) + 1) // 2
        chooser = random.Random(f"{SEED} {name}")
        chosen = chooser.sample(cases, min(keep, len(cases)))
        dropped.update(set(cases) - set(chosen))
    return [item for item in items if item not in dropped]


def sample_lane(items: Sequence[pytest.Item], lane: str) -> list[pytest.Item]:
    """The items that a lane runs which repeats the contract: its samples of the matrices, and `REPEATED` of the rest.

    Tests that are marked `surface` or `connect(only=True)` are about one Spark: all of them run. Each lane has a sample
    of its own.
    """
    kept = sample_matrices(items)
    if IS_WHOLE:
        return kept
    alike = [item for item in kept if not (_is_only_connect(item) or any(map(item.get_closest_marker, _WHOLE)))]
    chosen = draw(alike, round(len(alike) * REPEATED), lane)
    dropped = set(alike) - set(chosen)
    return [item for item in kept if item not in dropped]


def leave_out_for_time() -> None:
    """Leave out the test that begins now if the time of the run is over. Raises: the exception that skips it."""
    if time.time() > UNTIL:
        pytest.skip("left out for time")


def sample_surface(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items that Spark Connect runs on a release whose classic session runs every test marked `surface`."""
    return sample_of(items, round(len(items) * _SURFACE), "connect of spark 4.0")


def _is_only_connect(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("connect")
    return mark is not None and mark.kwargs.get("only", False)


def sample_numbers(numbers: range, keep: int | None) -> Sequence[int]:
    """`keep` of the numbers in their order, the first and the last among them; all of them without `keep`."""
    if IS_WHOLE or keep is None or keep >= len(numbers):
        return numbers
    chooser = random.Random(f"{SEED} {numbers}")
    return [numbers[0], *sorted(chooser.sample(numbers[1:-1], keep - 2)), numbers[-1]]


def sample_of(items: Sequence[T], keep: int, name: str) -> list[T]:
    """`keep` of the items in their order, drawn for this name; all of them in `make test-all`."""
    return list(items) if IS_WHOLE else draw(items, keep, name)


def draw(items: Sequence[T], keep: int, name: str) -> list[T]:
    """`keep` of the items in their order, drawn for this name, in every run."""
    chooser = random.Random(f"{SEED} {name}")
    return [items[number] for number in sorted(chooser.sample(range(len(items)), min(keep, len(items))))]
