"""The code blocks of the pages run as they stand: Python in one program for each page, `hoodie` by its command line.

The Python of the README needs Spark; `test_readme.py` runs it.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from hoodie.cli import main
from tests.support.pages import ROOT, Page, pages

TRIPS = pa.table({"id": ["t1", "t2"], "city": ["sf", "nyc"], "fare": [12.5, 8.0], "updated_at": [1, 1]})


def _needs_spark(page: Page) -> bool:
    return "pyspark" in "".join(page.blocks("python"))


def test_blocks_that_need_spark_have_a_test() -> None:
    assert [page.name for page in pages() if _needs_spark(page)] == ["README.md"], "test_readme.py runs the README only"


@pytest.mark.parametrize(
    "page",
    [page for page in pages() if page.blocks("python") and not _needs_spark(page)],
    ids=lambda page: page.name,
)
def test_python_blocks_run(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in page.blocks("python"):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize(
    "block", [pytest.param(block, id=page.name) for page in pages() for block in page.blocks("shell")]
)
def test_shell_blocks_run(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of `hoodie` run with files of trips; of `make` the targets exist."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(TRIPS, "trips.parquet")
    pa_csv.write_csv(TRIPS.slice(1), "more.csv")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for line in block.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        if program == "make":
            assert set(arguments) <= set(targets)
            continue
        assert program == "hoodie"
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        assert not exit_.value.code, line
