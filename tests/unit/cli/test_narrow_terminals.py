"""Terminals of 40 and 60 columns: what commands print fits, and no value or name is broken."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli import main

ROWS = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"], "fare": [1.5, 2.0], "updated_at": [1, 1], "note": ["", "x"]})

each_width = pytest.mark.parametrize("width", [40, 60])


@pytest.fixture
def table(tmp_path: Path) -> hoodie.Table:
    """A table with two commits."""
    table = hoodie.create(tmp_path / "t", ROWS, record_key="id", partition_by="city", spark=False)
    table.upsert(ROWS)
    table.delete(["a"])
    return table


@pytest.fixture
def printed(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Printed:
    """Run command lines on a terminal of the test's width."""
    monkeypatch.setenv("COLUMNS", str(width))
    return Printed(width, capsys)


class Printed:
    """The output of command lines; each line must fit."""

    def __init__(self, width: int, capsys: pytest.CaptureFixture[str]) -> None:
        self.width, self.capsys = width, capsys

    def __call__(self, *arguments: str) -> str:
        """Return the output of a command line."""
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        assert exit_.value.code == 0
        found = self.capsys.readouterr().out
        too_long = [line for line in found.splitlines() if len(line.rstrip()) > self.width]
        assert not too_long, f"{arguments}: {too_long}"
        return found


@each_width
def test_timeline(printed: Printed, table: hoodie.Table) -> None:
    found = printed("timeline", table.path)
    assert [instant.requested_time in found for instant in table.timeline.instants] == [True, True]
    assert "2 inserted" in found
    assert "1 deleted" in found
    assert "_" not in found, "names of the library's own tables are words"


@each_width
def test_head(printed: Printed, table: hoodie.Table) -> None:
    words = printed("head", table.path).split()
    assert {*ROWS.column_names, "b", "nyc", "2.0"} <= set(words)


@each_width
def test_inspect(printed: Printed, table: hoodie.Table) -> None:
    assert "city=nyc" in printed("inspect", table.path)


@each_width
@pytest.mark.parametrize("command", [(), ("upsert",), ("index", "build")], ids=" ".join)
def test_help(printed: Printed, command: tuple[str, ...]) -> None:
    found = printed(*command, "--help")
    assert f"Usage: hoodie {' '.join(command)}".strip() in " ".join(found.split())
    assert "--help" in found
