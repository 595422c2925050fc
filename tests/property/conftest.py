"""What the tests of random operations on tables have in common: a seed decides all that happens."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hoodie.engine import LocalEngine

THREADS = 2


@pytest.fixture(autouse=True)
def nothing_is_left_to_chance(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw file ids from a seed, plan for two threads on every machine, and run the tasks one after the other."""
    chooser = random.Random(request.node.name)
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=chooser.getrandbits(128), version=4))
    run: Callable[..., list[Any]] = LocalEngine.run

    def run_in_order(engine: LocalEngine, function: Callable[..., Any], tasks: Sequence[Any], *sizes: Any) -> list[Any]:
        return run(replace(engine, threads=1), function, tasks, *sizes)

    monkeypatch.setattr(LocalEngine, "run", run_in_order)
    monkeypatch.setattr(LocalEngine.__init__, "__defaults__", (THREADS, 0))
    assert LocalEngine().threads == THREADS
