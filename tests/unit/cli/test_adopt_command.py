"""`hoodie adopt`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from tests.support.command_line import Run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a Parquet file of one row in each of two partitions."""
    for city, key in (("sf", "a"), ("nyc", "b")):
        (tmp_path / "raw" / f"city={city}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [key], "at": [1]}), tmp_path / "raw" / f"city={city}" / "x.parquet")
    return tmp_path / "raw"


def test_a_folder(run: Run, tmp_path: Path, folder: Path) -> None:
    out = run.text("adopt", folder, "--key", "id")
    assert "2 files, 2 rows" in out
    assert "dry run: nothing was written" in out
    done = run.json("adopt", folder, "-t", tmp_path / "t", "-k", "id", "-o", "at", "--execute")
    assert done["write"]["inserted"] == 2
    config = hoodie.open(tmp_path / "t", spark=False).view().config
    assert (config.partition_fields, config.ordering_fields) == (("city",), ("at",))


def test_what_is_refused_fails(run: Run, tmp_path: Path, folder: Path) -> None:
    (folder / "notes.txt").write_text("no rows")
    done = run("adopt", folder, "--key", "id", "--no-partitions", "--json")
    assert (done.code, len(json.loads(done.out)["refused"])) == (1, 1)
    assert "cannot be adopted" in done.err
    assert "notes.txt" in run.error("adopt", folder, "--key", "id", "--target", tmp_path / "t", "--execute")
    assert run("adopt", folder, "--key", "id", "-p", "city", "--no-partitions").code == 2
    assert run("adopt", folder, folder).code == 2


def test_files(run: Run, folder: Path) -> None:
    files = sorted(folder.rglob("*.parquet"))
    assert run.json("adopt", "--files", *files, "--key", "id")["partitions"] == {"city=nyc": 1, "city=sf": 1}


def test_files_that_stay(run: Run, tmp_path: Path, folder: Path) -> None:
    out = run.text("adopt", folder, "-t", tmp_path / "t", "-k", "id", "--mode", "metadata_only", "--execute")
    assert "bootstrap at 00000000000001: 2 inserted" in out
    assert hoodie.open(tmp_path / "t", spark=False).count() == 2


def test_modes_of_partitions(run: Run, folder: Path) -> None:
    modes = ("--mode", "metadata_only", "--mode", "city=sf:rewrite")
    assert run.json("adopt", folder, "-k", "id", *modes)["mode"] == {"*": "metadata_only", "city=sf": "rewrite"}
    assert run("adopt", folder, "-k", "id", "--mode", "city=la:rewrite").code == 1


def test_duplicates_are_merged_in_a_table_of_an_older_version(run: Run, tmp_path: Path, folder: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "at": [2]}), folder / "city=sf" / "y.parquet")
    asked = ("adopt", folder, "-t", tmp_path / "t", "-k", "id", "-o", "at", "--table-version", "8", "--execute")
    assert run(*asked).code == 1
    assert run.json(*asked, "--duplicates", "merge")["write"]["duplicates"] == 1
    found = hoodie.open(tmp_path / "t", spark=False)
    assert (found.view().config.version.value, sorted(found.to_arrow()["at"].to_pylist())) == (8, [1, 2])
