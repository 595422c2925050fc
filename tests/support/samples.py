"""What a run leaves out: tiers, samples of matrices, tests that passed before, and tests for which no time is left.

`make test` sets HOODIE_TEST_TIER=first: it leaves out what `tests/README.md` lists for later lanes (`LATER`, and tests
marked `later`), and runs two cases of a test and one seed of a property. Every other run has the samples of its lane.
The lanes of Spark Connect and Spark 3.5 repeat a part of the contract; the lane of judges runs half of the cases of a
test; of a test marked `matrix(keep=…)` a run has `keep` cases; crash tests try a sample of the storage calls.
`make test-all` runs every case in every lane.

Samples are drawn from HOODIE_TEST_SEED. By default it is the day and the commit, and it is printed.

HOODIE_TEST_PART=0.2 runs the tests of two files in ten. HOODIE_TEST_UNTIL (seconds since the epoch) ends a run in
time: tests that have not begun by then are left out, and the last lines of the run say how many. HOODIE_TEST_PASSED
names a file in which a run notes the tests that pass, and which it leaves out when it comes again.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

TESTS = Path(__file__).parents[1]
LATER = ("crash", "stress", "bench")
"""Folders that `make test` leaves out."""
FIRST = ("crash/test_every_action_that_dies.py", "crash/test_public_methods.py")
"""Files of these folders that it runs."""
_CASES = 2
"""Cases of a test that it runs, drawn by the seed; all of those in `FIRST`, and one of a `seeded` test."""
_WHOLE = ("surface", "matrix")
REPEATED = 0.25
"""Part of the tests of the contract that Spark Connect and Spark 3.5 repeat."""
_SURFACE = 0.5
"""Part of the tests marked `surface` that Connect of Spark 4.0 repeats: its classic session runs all of them."""
IS_WHOLE = os.environ.get("HOODIE_TEST_ALL", "") == "1"
IS_FIRST = os.environ.get("HOODIE_TEST_TIER", "") == "first" and not IS_WHOLE
UNTIL = float(os.environ.get("HOODIE_TEST_UNTIL") or "inf")
PASSED = os.environ.get("HOODIE_TEST_PASSED", "")
NOTES: list[bool] = []
"""Whether this process notes what passed: all reports reach the process that starts the workers of `-n 2`."""
PART = float(os.environ.get("HOODIE_TEST_PART") or "1")
"""Part of its tests that a lane runs, drawn by the seed."""


def _of_today() -> str:
    """The day and the commit, such as `20261128-4ec951ca`; without git the day alone."""
    command = ["git", "-C", str(TESTS), "rev-parse", "--short=8", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "none"
    return f"{datetime.now(UTC):%Y%m%d}-{commit}"


# Kept in the environment, so that every process of a run (`-n 2`) has the same, also at midnight.
SEED = os.environ.get("HOODIE_TEST_SEED") or os.environ.setdefault("HOODIE_TEST_SEED", _of_today())


def describe() -> str:
    """One line for the head of a run: how to repeat its samples."""
    if IS_WHOLE:
        return "samples: none, every case runs"
    return f"samples: HOODIE_TEST_SEED={SEED}{' HOODIE_TEST_TIER=first' if IS_FIRST else ''}"


def first_tier(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items that `make test` runs: no folder of `LATER`, no test marked `later`, two cases of a test."""
    if not IS_FIRST:
        return list(items)
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    kept = []
    for item in items:
        name = item.path.relative_to(TESTS).as_posix()
        if item.get_closest_marker("later") or (name.startswith(LATER) and name not in FIRST):
            continue
        kept.append(item)
        if name not in FIRST:
            tests[item.nodeid.partition("[")[0]].append(item)
    dropped: set[pytest.Item] = set()
    for name, cases in tests.items():
        count = 1 if cases[0].get_closest_marker("seeded") else _CASES
        if len(cases) > count:
            dropped.update(set(cases) - set(draw(cases, count, name)))
    return [item for item in kept if item not in dropped]


def a_part(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The part HOODIE_TEST_PART of the items, drawn by files: what the tests of a file share is made once."""
    files = sorted({item.path for item in items})
    kept = set(draw(files, max(1, round(len(files) * PART)), "a part")) if files and not IS_WHOLE else set(files)
    return [item for item in items if item.path in kept]


def without_passed(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items that no earlier run noted as passed in HOODIE_TEST_PASSED."""
    done = set(Path(PASSED).read_text("utf-8").splitlines()) if PASSED and Path(PASSED).exists() else set()
    return [item for item in items if _noted(item.nodeid) not in done]


def note_passed(nodeid: str) -> None:
    """Note a test that passed, if HOODIE_TEST_PASSED names a file."""
    if PASSED and all(NOTES):
        with Path(PASSED).open("a", encoding="utf-8") as file:
            file.write(f"{_noted(nodeid)}\n")


def _noted(nodeid: str) -> str:
    """The line of a test that passed: the environment, the kind of session, the JVM, and the test."""
    names = (Path(sys.prefix), Path(os.environ.get("HOODIE_JVM_BUNDLE", "no JVM")))
    lane = os.environ.get("HOODIE_TEST_SPARK", "classic")
    return " | ".join((*(name.name for name in names), lane, nodeid.encode("unicode_escape").decode()))


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
        if PASSED:
            Path(f"{PASSED}.left-out").touch()
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


def covering(items: Sequence[T], group: Callable[[T], Hashable], *facts: Callable[[T], Hashable]) -> list[T]:
    """Few of the items in their order: of each group, each value that a fact has in it; the same in every run.

    Of the items that have most of the values still missing, one is drawn: values of different facts meet in
    different groups.
    """
    groups: dict[Hashable, list[T]] = defaultdict(list)
    for item in items:
        groups[group(item)].append(item)
    chosen: list[T] = []
    for number, members in enumerate(groups.values()):
        chooser = random.Random(number)
        mixed = chooser.sample(members, len(members))
        missing = {(fact, fact(item)) for item in members for fact in facts}
        while missing:
            best = max(mixed, key=lambda item: len(missing & {(fact, fact(item)) for fact in facts}))
            chosen.append(best)
            missing -= {(fact, fact(best)) for fact in facts}
    return [item for item in items if any(item is one for one in chosen)]


def draw(items: Sequence[T], keep: int, name: str) -> list[T]:
    """`keep` of the items in their order, drawn for this name, in every run."""
    chooser = random.Random(f"{SEED} {name}")
    return [items[number] for number in sorted(chooser.sample(range(len(items)), min(keep, len(items))))]
