"""The older release that a module asks for. A process has one JAR, and so one release."""

from __future__ import annotations

import pytest

from tests.interop.judges import Jvm


@pytest.fixture
def older(request: pytest.FixtureRequest, jvm: Jvm) -> Jvm:
    """The JVM of the module's `RELEASE`. Another bundle fails the lane."""
    wanted = request.module.RELEASE
    if jvm.release != wanted:
        pytest.fail(f"HOODIE_JVM_BUNDLE is Hudi {jvm.release}, {wanted} expected: run `make interop`", pytrace=False)
    return jvm
