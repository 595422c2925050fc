"""The quick start of the README runs as it stands, and does what its comments say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hoodie
from tests.support.pages import pages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _examples() -> tuple[str, str]:
    blocks = next(page for page in pages() if page.name == "README.md").blocks("python")
    assert len(blocks) == 2, "the README has two examples, which this test runs"
    return blocks[0], blocks[1]


@pytest.mark.spark
@pytest.mark.connect
def test_the_quick_start_does_what_it_says(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, queries = _examples()
    assert len([line for line in code.splitlines() if line.strip()]) <= 22, "a quick start is quick"
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "README.md", "exec"), names)
    said = capsys.readouterr().out
    assert "1 inserted, 1 updated, 0 deleted" in said
    table = hoodie.open(tmp_path / "trips")
    rows = {row["id"]: row["fare"] for row in table.to_arrow(columns=["id", "fare"]).to_pylist()}
    assert rows == {"t2": 31.5, "t3": pytest.approx(8.8), "t4": pytest.approx(5.5)}
    assert table.to_arrow(as_of=names["first"].instant).num_rows == 3
    assert table.history()["operation"].to_pylist() == ["delete", "upsert", "upsert", "bulk_insert"]
    assert {row["id"] for row in names["t"].changes(since=names["first"].instant).collect()} == {"t2", "t3", "t4"}
    exec(compile(queries, "README.md", "exec"), names)  # DuckDB finds the handle by its name
    said = capsys.readouterr().out
    assert (said.count("sf"), said.count("nyc")) == (2, 2)
