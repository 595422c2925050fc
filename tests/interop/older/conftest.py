"""The older release that a module asks for. A process has one JAR, and so one release."""

from __future__ import annotations

import pytest

from tests.interop.judges import Jvm


@pytest.fixture
def older(request: pytest.FixtureRequest, jvm: Jvm) -> Jvm:
    """The JVM of one of the module's `RELEASES`. Another bundle fails the lane."""
    wanted = request.module.RELEASES
    if jvm.release not in wanted:
        expected = " or ".join(wanted)
        pytest.fail(f"HOODIE_JVM_BUNDLE is Hudi {jvm.release}, {expected} expected: run `make interop`", pytrace=False)
    return jvm
