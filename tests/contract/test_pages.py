"""The code blocks of the pages run as they stand: Python in one program for each page, `hoodie` by its command line.

The blocks of a first page, the README or one of docs/start and docs/ingest, run one after the other in an empty
folder.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.cli import main
from tests.support.pages import ROOT, Page, pages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TRIPS = pa.table({"id": ["t1", "t2"], "city": ["sf", "nyc"], "fare": [12.5, 8.0], "updated_at": [1, 1]})


def _is_first(page: Page) -> bool:
    return page.name == "README.md" or page.name.startswith(("docs/start/", "docs/ingest/"))


def _needs_spark(page: Page) -> bool:
    return "pyspark" in "".join(page.blocks("python"))


FIRST = [page for page in pages() if _is_first(page)]
README = next(page for page in FIRST if page.name == "README.md")
OTHERS = [page for page in pages() if not _is_first(page)]


def test_only_first_pages_need_spark() -> None:
    assert [page.name for page in OTHERS if _needs_spark(page)] == []


def _run(programs: Iterable[tuple[str, str]], name: str) -> dict[str, Any]:
    """Run the blocks, Python in one program; return its names."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for language, code in programs:
        if language == "python":
            exec(compile(code, name, "exec"), names)
        else:
            _run_shell(code)
    return names


def _run_shell(block: str) -> None:
    """Run the commands of `hoodie`, and check that the targets of `make` exist."""
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


@pytest.mark.parametrize("page", [page for page in FIRST if not _needs_spark(page)], ids=lambda page: page.name)
def test_first_pages_run_in_an_empty_folder(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _run(page.programs(), page.name)


@pytest.mark.spark
@pytest.mark.connect
@pytest.mark.parametrize(
    "page", [page for page in FIRST if _needs_spark(page) and page != README], ids=lambda page: page.name
)
def test_first_pages_for_spark_run_in_an_empty_folder(
    page: Page, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        _run(page.programs(), page.name)
    finally:
        hoodie.unregister(spark)


@pytest.mark.parametrize("page", [page for page in OTHERS if page.blocks("python")], ids=lambda page: page.name)
def test_python_blocks_run(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _run([("python", code) for code in page.blocks("python")], page.name)


@pytest.mark.parametrize(
    "block", [pytest.param(block, id=page.name) for page in OTHERS for block in page.blocks("shell")]
)
def test_shell_blocks_run(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have files of trips."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(TRIPS, "trips.parquet")
    pa_csv.write_csv(TRIPS.slice(1), "more.csv")
    _run_shell(block)


@pytest.mark.spark
@pytest.mark.connect
def test_the_readme_does_what_it_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for code in README.blocks("python"):
        assert len([line for line in code.splitlines() if line.strip()]) <= 12, "a first example is short"
    try:
        names = _run(README.programs(), README.name)
    finally:
        hoodie.unregister(spark)
    said = capsys.readouterr().out
    assert "0 inserted, 1 updated, 0 deleted" in said
    assert "1 inserted, 1 updated, 0 deleted" in said
    table = hoodie.open(tmp_path / "trips")
    rows = {row["id"]: row["fare"] for row in table.to_arrow(columns=["id", "fare"]).to_pylist()}
    assert rows == {"t2": 33.0, "t3": pytest.approx(8.8), "t4": 5.0}
    assert table.count(as_of=names["first"].instant) == 3
    assert table.history()["operation"].to_pylist() == ["upsert", "delete", "upsert", "upsert", "insert"]
    assert hoodie.open(tmp_path / "copy").count() == 3
