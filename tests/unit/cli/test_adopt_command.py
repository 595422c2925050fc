"""`hoodie adopt`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import hoodie
from tests.support.command_line import Run


def folder_of(tmp_path: Path) -> Path:
    for city, key in (("sf", "a"), ("nyc", "b")):
        (tmp_path / "raw" / f"city={city}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [key], "at": [1]}), tmp_path / "raw" / f"city={city}" / "x.parquet")
    return tmp_path / "raw"


def test_a_folder(run: Run, tmp_path: Path) -> None:
    folder, table = folder_of(tmp_path), tmp_path / "t"
    code, out, _ = run("adopt", str(folder), "--key", "id")
    assert code == 0
    assert "2 files, 2 rows" in out
    assert "dry run: nothing was written" in out
    code, out, _ = run("adopt", str(folder), "-t", str(table), "-k", "id", "-o", "at", "--execute", "--json")
    assert (code, json.loads(out)["write"]["inserted"]) == (0, 2)
    config = hoodie.open(table, spark=False).view().config
    assert (config.partition_fields, config.ordering_fields) == (("city",), ("at",))


def test_what_is_refused_fails(run: Run, tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "notes.txt").write_text("no rows")
    code, out, errors = run("adopt", str(folder), "--key", "id", "--no-partitions", "--json")
    assert (code, len(json.loads(out)["refused"])) == (1, 1)
    assert "cannot be adopted" in errors
    code, _, errors = run("adopt", str(folder), "--key", "id", "--target", str(tmp_path / "t"), "--execute")
    assert (code, "notes.txt" in errors) == (1, True)
    assert run("adopt", str(folder), "--key", "id", "-p", "city", "--no-partitions")[0] == 2
    assert run("adopt", str(folder), str(folder))[0] == 2


def test_files(run: Run, tmp_path: Path) -> None:
    files = [str(path) for path in sorted(folder_of(tmp_path).rglob("*.parquet"))]
    code, out, _ = run("adopt", "--files", *files, "--key", "id", "--json")
    assert (code, json.loads(out)["partitions"]) == (0, {"city=nyc": 1, "city=sf": 1})


def test_files_that_stay(run: Run, tmp_path: Path) -> None:
    folder, table = folder_of(tmp_path), tmp_path / "t"
    code, out, _ = run("adopt", str(folder), "-t", str(table), "-k", "id", "--mode", "metadata_only", "--execute")
    assert (code, "bootstrap at 00000000000001: 2 inserted" in out) == (0, True)
    assert hoodie.open(table, spark=False).count() == 2


def test_modes_of_partitions(run: Run, tmp_path: Path) -> None:
    modes = ("--mode", "metadata_only", "--mode", "city=sf:rewrite")
    code, out, _ = run("adopt", str(folder_of(tmp_path)), "-k", "id", *modes, "--json")
    assert (code, json.loads(out)["mode"]) == (0, {"*": "metadata_only", "city=sf": "rewrite"})
    assert run("adopt", str(tmp_path / "raw"), "-k", "id", "--mode", "city=la:rewrite")[0] == 1


def test_duplicates_are_merged_in_a_table_of_an_older_version(run: Run, tmp_path: Path) -> None:
    folder, table = folder_of(tmp_path), tmp_path / "t"
    pq.write_table(pa.table({"id": ["a"], "at": [2]}), folder / "city=sf" / "y.parquet")
    asked = ("adopt", str(folder), "-t", str(table), "-k", "id", "-o", "at", "--table-version", "8", "--execute")
    assert run(*asked)[0] == 1
    code, out, _ = run(*asked, "--duplicates", "merge", "--json")
    assert (code, json.loads(out)["write"]["duplicates"]) == (0, 1)
    found = hoodie.open(table, spark=False)
    assert (found.view().config.version.value, sorted(found.to_arrow()["at"].to_pylist())) == (8, [1, 2])
