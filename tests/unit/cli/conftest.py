"""The fixture of the tests that run commands."""

from __future__ import annotations

import pytest

from tests.support.command_line import Run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run command lines in this process."""
    return Run(capsys)
