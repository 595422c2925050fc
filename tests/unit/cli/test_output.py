"""Where the output of a command goes: encodings without some letters, a closed standard output, CSV without a form."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.command_line import Run
from tests.support.tables import new_table

ROWS = pa.table({"id": ["kß", "→"], "list": [[1], [2]]})
SCRIPT = "from hoodie.cli import main; main()"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    new_table(ROWS.schema, ROWS, path=tmp_path / "t")
    return tmp_path / "t"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_letters_that_the_encoding_lacks_are_escaped(path: Path, encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    for more in ((), ("--json",)):
        command = [sys.executable, "-c", SCRIPT, "head", str(path), *more]
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        assert b"u2192" in done.stdout or "→".encode() in done.stdout


def test_a_closed_standard_output_is_refused_before_anything_is_done(path: Path) -> None:
    command = f'"{sys.executable}" -c "{SCRIPT}" delete "{path}" kß >&-'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, "standard output is closed" in done.stderr) == (1, True), done
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("column", ["list", "'a'::BLOB", "INTERVAL 1 DAY", "{'a': 1}"])
def test_csv_names_the_column_that_it_has_no_form_for(path: Path, run: Run, column: str) -> None:
    said = run.error("query", f"SELECT {column} AS odd FROM t", "--table", f"t={path}", "--csv")
    assert "CSV has no form for odd" in said
