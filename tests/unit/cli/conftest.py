"""The fixture of the tests that run commands."""

from __future__ import annotations

import pytest

from hoodie.cli import main
from tests.support.command_line import Run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process: exit code, output, errors."""

    def call(*arguments: object) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main(list(map(str, arguments)))
        captured = capsys.readouterr()
        return exit_.value.code, captured.out, captured.err

    return call
