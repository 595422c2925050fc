"""Command lines that run in this process: the type of the fixture `run` (tests/unit/cli/conftest.py)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from hoodie.cli import main


class Done(NamedTuple):
    """A command that ran: its exit code, output and errors."""

    code: object
    out: str
    err: str


@dataclass(frozen=True)
class Run:
    """Runs the command line of these arguments."""

    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: object) -> Done:
        with pytest.raises(SystemExit) as exit_:
            main(list(map(str, arguments)))
        return Done(exit_.value.code, *self.capsys.readouterr())

    def text(self, *arguments: object) -> str:
        """The output of a command that succeeds."""
        done = self(*arguments)
        assert done.code == 0, done
        return done.out

    def rows(self, *arguments: object) -> list[Any]:
        """The JSON lines of a command that succeeds."""
        return [json.loads(line) for line in self.text(*arguments, "--json").splitlines()]

    def json(self, *arguments: object) -> Any:
        """The only JSON line of a command that succeeds."""
        (document,) = self.rows(*arguments)
        return document

    def error(self, *arguments: object) -> str:
        """What a command that fails with exit code 1 says."""
        done = self(*arguments)
        assert done.code == 1, done
        return done.err
