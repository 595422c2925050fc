"""`hoodie verify`, `repair`, `rollback`, `restore` and `savepoint`."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.support.command_line import Run
from tests.support.tables import new_table

ROWS = pa.table({"id": ["a", "b"], "x": [1, 2]})
FOUND = 3
"""Exit code of a check that found errors."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table of one commit."""
    new_table(ROWS.schema, ROWS, path=tmp_path / "t")
    return tmp_path / "t"


def test_a_sound_table(path: Path, run: Run) -> None:
    assert "OK" in run.text("verify", path)
    report = run.json("verify", path, "--full")
    assert report["checked"] == {"instants": 1, "files": 1, "rows": 2}
    assert set(report) == {"ok", "subject", "checked", "problems", "warnings", "findings", "notes", "seconds"}
    assert "nothing to do" in run.text("repair", path, "--execute")


def test_warnings_do_not_fail(path: Path, run: Run) -> None:
    heartbeat = path / ".hoodie" / ".heartbeat" / "20200101000000000"
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.write_bytes(b"")
    os.utime(heartbeat, (0, 0))
    report = run.json("verify", path)
    assert report["warnings"] == {"leftover-heartbeat": 1}
    (finding,) = report["findings"]
    assert finding["remedy"] == f"hoodie repair {path} --execute"
    assert set(finding) == {"kind", "key", "expected", "found", "severity", "remedy"}


def test_errors_fail_until_the_repair(path: Path, run: Run) -> None:
    marker = path / ".hoodie_partition_metadata"
    marker.unlink()
    done = run("verify", path)
    assert done.code == FOUND
    assert f"error partition-file-missing: 1 -> hoodie repair {path} --execute" in done.out
    out = run.text("repair", path)
    assert out.splitlines()[0] == "repair: would mend 1 finding"
    assert f"note: `hoodie repair {path} --execute` does it" in out
    assert run.json("repair", path)["dry_run"] is True
    assert not marker.exists()
    run.text("repair", path, "--no-dry-run")
    assert marker.exists()
    run.text("verify", path)


def test_a_lost_file_is_given_up(path: Path, run: Run) -> None:
    (lost,) = path.glob("*.parquet")
    lost.unlink()
    done = run("verify", path)
    assert (done.code, f"hoodie repair {path} --accept-loss {lost.name}" in done.out) == (FOUND, True)
    done = run("repair", path, "--execute")
    assert (done.code, "file-missing is not repaired" in done.out) == (FOUND, True)
    assert run("repair", path).code == 0
    for more in (("--full",), ("--min-age", "5")):
        assert "have no effect with accept_loss" in run.error("repair", path, "--accept-loss", lost, *more)
    out = run.text("repair", path, "--accept-loss", lost)
    assert out.splitlines()[0] == "accept loss: would lose 1 file and 2 rows"
    assert f"note: `hoodie repair {path} --accept-loss {lost} --execute` does it" in out
    counts = run.json("repair", path, "--accept-loss", lost.name, "--execute")["counts"]
    assert counts == {"files_lost": 1, "rows_lost": 2}
    run.text("verify", path, "--full")
    assert hoodie.open(path, spark=False).count() == 0


def test_lost_properties_are_rebuilt(path: Path, run: Run) -> None:
    properties = path / ".hoodie" / "hoodie.properties"
    before = properties.read_text().splitlines()[2:]
    properties.unlink()
    assert "note: must be given: the ordering columns" in run.text("repair", path)
    assert "  hoodie.table.recordkey.fields=id" in run.text("repair", path, "--no-ordering").splitlines()
    for code, options in (
        (1, ("--execute",)),
        (1, ("--no-ordering", "--key", "x", "--execute")),
        (2, ("--no-ordering", "--execute", "--accept-loss", "x.parquet")),
        (2, ("--no-ordering", "--execute", "--ordering", "x")),
    ):
        assert run("repair", path, *options).code == code
        assert not properties.exists()
    assert run.json("repair", path, "--no-ordering", "--execute")["missing"] == []
    assert sorted(properties.read_text().splitlines()[2:]) == sorted(before)
    run.text("verify", path, "--full")
    assert run("repair", path, "--key", "id").code == 2


def test_what_is_no_table_is_an_error_of_the_command(tmp_path: Path, run: Run) -> None:
    assert run("verify", tmp_path / "none").code == 1


def test_a_savepoint_from_its_creation_to_its_deletion(run: Run, path: Path) -> None:
    table = hoodie.open(path, spark=False)
    first = table.timeline.instants[0].requested_time
    assert run("savepoint", "list", path) == (0, "no savepoints\n", "")
    assert run.json("savepoint", "create", path, "--user", "ann", "--comment", "for t.clean()")["instant"] == first
    assert run.text("savepoint", "list", path) == f"{first}  1 files in 1 partitions  ann for t.clean()\n"
    second = table.upsert([{"id": "c", "x": 3}]).instant
    table.upsert([{"id": "d", "x": 4}])
    assert "not the newest" in run.error("rollback", path, second)
    assert run.json("rollback", path, second, "--chain", "--dry-run")["counts"]["instants"] == 2
    assert "would roll back 2 instants and 2 inserted rows, delete " in run.text(
        "rollback", path, second, "--chain", "--dry-run"
    )
    assert table.count() == 4
    assert run.json("restore", path, first)["counts"]["instants"] == 2
    assert table.count() == 2
    run.text("savepoint", "delete", path, first)
    assert table.savepoints() == ()
