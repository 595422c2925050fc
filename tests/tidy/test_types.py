"""What a type checker knows of a user's program: the types of reads, with and without PySpark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

PROGRAM = """
import hoodie
import pyarrow as pa
from pyspark.sql import DataFrame

t = hoodie.open("trips")
frame = t.read(columns=["id"], where="fare > 1", as_of="2026-11-21")
rows = pa.table({"id": ["a"]})
reveal_type(frame)
reveal_type(t.filter_exists(frame))
reveal_type(t.filter_exists(rows))
reveal_type(t.record_locations(frame))
reveal_type(t.record_locations(["a"]))
reveal_type(t.upsert(rows))
reveal_type(t.count())
t.read(colums=["id"])
"""
FRAME, ROWS = "pyspark.sql.dataframe.DataFrame", "Any"  # pyarrow has no types of its own
RESULTS = ["hoodie.write.result.WriteResult", "int"]
CONFIG = "[mypy]\nfollow_imports = silent\n[mypy-pyarrow.*]\nignore_missing_imports = True\n"
WITHOUT_PYSPARK = "[mypy-pyspark.*]\nignore_missing_imports = True\nfollow_imports = skip\n"


@pytest.mark.timeout(600)  # mypy parses PySpark anew
@pytest.mark.parametrize(
    ("config", "expected"),
    [(CONFIG, [FRAME, FRAME, ROWS, FRAME, ROWS, *RESULTS]), (CONFIG + WITHOUT_PYSPARK, ["Any"] * 5 + RESULTS)],
    ids=["with PySpark", "without PySpark"],
)
def test_reads_are_typed(config: str, expected: list[str], tmp_path: Path) -> None:
    program, file = tmp_path / "program.py", tmp_path / "mypy.ini"
    program.write_text(PROGRAM, encoding="utf-8")
    file.write_text(config, encoding="utf-8")
    assert (ROOT / "src" / "hoodie" / "py.typed").exists()
    command = [sys.executable, "-m", "mypy", "--config-file", str(file), "--cache-dir", str(tmp_path), str(program)]
    done = subprocess.run(
        command, env={"MYPYPATH": str(ROOT / "src")}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    types = [line.split('"')[1] for line in done.stdout.splitlines() if "Revealed type" in line]
    assert types == expected, done.stdout + done.stderr
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, done.stdout
    assert 'Unexpected keyword argument "colums" for "read"' in errors[0]
