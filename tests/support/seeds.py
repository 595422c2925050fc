"""Seeds of random tests: fixed ones in a normal run, and ones drawn from a single printed number in a fuzz run.

A normal run gives the same verdict every time. `make fuzz` sets HOODIE_TEST_PROFILE=fuzz: HOODIE_FUZZ_SEED repeats a
run, and HOODIE_FUZZ_FACTOR says how many times more examples it tries.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any, TypeVar

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

Test = TypeVar("Test", bound=Callable[..., Any])

PROFILE = os.environ.get("HOODIE_TEST_PROFILE", "ci")
IS_FUZZ = PROFILE == "fuzz"
FACTOR = int(os.environ.get("HOODIE_FUZZ_FACTOR", "10")) if IS_FUZZ else 1
if IS_FUZZ:
    # Kept in the environment, so that every process of a run (`-n 2`) has the same.
    os.environ.setdefault("HOODIE_FUZZ_SEED", str(random.SystemRandom().randrange(10**6)))
FUZZ_SEED = int(os.environ["HOODIE_FUZZ_SEED"]) if IS_FUZZ else None
_EXAMPLES = 100


def examples(count: int) -> int:
    """Number of examples for `hypothesis.settings(max_examples=…)`: `count`, and more in a fuzz run."""
    return count * FACTOR


def seeds(*fixed: int) -> tuple[int, ...]:
    """The fixed seeds; in a fuzz run FACTOR times as many fresh ones."""
    if FUZZ_SEED is None:
        return fixed
    chooser = random.Random(FUZZ_SEED)
    return tuple(chooser.randrange(10**6) for _ in range(len(fixed) * FACTOR))


def seeded(*fixed: int) -> Callable[[Test], Test]:
    """Parametrize a test that draws its data by `seed`, and mark it for the fuzz run."""

    def decorate(test: Test) -> Test:
        marked: Test = pytest.mark.seeded(pytest.mark.parametrize("seed", seeds(*fixed))(test))
        return marked

    return decorate


def load_profile(config: pytest.Config) -> None:
    """Set hypothesis up for the run, before any test module is imported.

    No verdict depends on how fast the machine is: there are no deadlines, and slow examples are no failure. Nor does
    one depend on earlier runs: no examples are stored. A failure prints how to repeat it.
    """
    common = hypothesis.settings(
        deadline=None,
        print_blob=True,
        database=None,
        max_examples=examples(_EXAMPLES),
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.register_profile("ci", common, derandomize=True)
    hypothesis.settings.register_profile("fuzz", common)
    hypothesis.settings.load_profile(PROFILE)
    if IS_FUZZ:
        config.option.hypothesis_seed = str(FUZZ_SEED)
    _forget_local_constants()


def _forget_local_constants() -> None:
    """Keep hypothesis from drawing constants of the modules that happen to be imported.

    Which ones are depends on the tests that ran before in the same process, and with `-n 2` on the machine's speed.
    """
    if hasattr(providers, "_get_local_constants"):
        none = providers._local_constants
        providers._get_local_constants = lambda: none
