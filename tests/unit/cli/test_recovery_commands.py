"""`hoodie verify`, `repair`, `rollback`, `restore` and `savepoint`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli import main
from hoodie.cli.recovery import FOUND
from tests.support.command_line import Run

ROWS = pa.table({"id": ["a", "b"], "x": [1, 2]})
TRIPS = pa.table({"id": ["a", "b"], "fare": [1, 2]})


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0), capsys.readouterr().out


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = hoodie.create(tmp_path / "t", ROWS.schema, record_key="id", spark=False)
    table.upsert(ROWS)
    return tmp_path / "t"


def test_a_sound_table(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(capsys, "verify", str(path))
    assert (code, "OK" in out) == (0, True)
    code, out = run(capsys, "verify", str(path), "--full", "--json")
    report = json.loads(out)
    assert code == 0
    assert report["checked"] == {"instants": 1, "files": 1, "rows": 2}
    assert set(report) == {"ok", "subject", "checked", "problems", "warnings", "findings", "notes", "seconds"}
    code, out = run(capsys, "repair", str(path), "--execute")
    assert (code, "nothing to do" in out) == (0, True)


def test_warnings_do_not_fail(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path / ".hoodie" / ".heartbeat").mkdir(exist_ok=True)
    heartbeat = path / ".hoodie" / ".heartbeat" / "20200101000000000"
    heartbeat.write_bytes(b"")
    os.utime(heartbeat, (0, 0))
    code, out = run(capsys, "verify", str(path), "--json")
    report = json.loads(out)
    assert code == 0
    assert report["warnings"] == {"leftover-heartbeat": 1}
    (finding,) = report["findings"]
    assert finding["remedy"] == f"hoodie repair {path} --execute"
    assert set(finding) == {"kind", "key", "expected", "found", "severity", "remedy"}


def test_errors_fail_until_the_repair(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marker = path / ".hoodie_partition_metadata"
    marker.unlink()
    code, out = run(capsys, "verify", str(path))
    assert code == FOUND
    assert f"error partition-file-missing: 1 -> hoodie repair {path} --execute" in out
    code, out = run(capsys, "repair", str(path))
    assert (code, out.splitlines()[0]) == (0, "repair: would mend 1 finding")
    assert f"note: `hoodie repair {path} --execute` does it" in out
    code, out = run(capsys, "repair", str(path), "--json")
    assert code == 0
    assert json.loads(out)["dry_run"] is True
    assert not marker.exists()
    code, _ = run(capsys, "repair", str(path), "--no-dry-run")
    assert code == 0
    assert marker.exists()
    assert run(capsys, "verify", str(path))[0] == 0


def test_a_lost_file_is_given_up(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lost,) = path.glob("*.parquet")
    lost.unlink()
    code, out = run(capsys, "verify", str(path))
    assert code == FOUND
    assert f"hoodie repair {path} --accept-loss FILE" in out
    code, out = run(capsys, "repair", str(path), "--accept-loss", str(lost))
    assert (code, out.splitlines()[0]) == (0, "accept loss: would lose 1 file and 2 rows")
    code, out = run(capsys, "repair", str(path), "--accept-loss", lost.name, "--execute", "--json")
    assert (code, json.loads(out)["counts"]) == (0, {"files_lost": 1, "rows_lost": 2})
    assert run(capsys, "verify", str(path), "--full")[0] == 0
    assert hoodie.open(path, spark=False).count() == 0


def test_lost_properties_are_rebuilt(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    properties = path / ".hoodie" / "hoodie.properties"
    before = properties.read_text().splitlines()[2:]
    properties.unlink()
    code, out = run(capsys, "repair", str(path))
    assert code == 0
    assert "note: must be given: the ordering columns" in out
    code, out = run(capsys, "repair", str(path), "--no-ordering")
    assert (code, "  hoodie.table.recordkey.fields=id" in out.splitlines(), properties.exists()) == (0, True, False)
    assert run(capsys, "repair", str(path), "--execute")[0] == 1
    assert run(capsys, "repair", str(path), "--no-ordering", "--key", "x", "--execute")[0] == 1
    for more in (("--accept-loss", "x.parquet"), ("--ordering", "x")):
        assert run(capsys, "repair", str(path), "--no-ordering", "--execute", *more)[0] == 2
        assert not properties.exists()
    code, out = run(capsys, "repair", str(path), "--no-ordering", "--execute", "--json")
    assert (code, json.loads(out)["missing"]) == (0, [])
    assert sorted(properties.read_text().splitlines()[2:]) == sorted(before)
    assert run(capsys, "verify", str(path), "--full")[0] == 0
    assert run(capsys, "repair", str(path), "--key", "id")[0] == 2


def test_what_is_no_table_is_an_error_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "verify", str(tmp_path / "none"))[0] == 1


def test_a_savepoint_from_its_creation_to_its_deletion(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = hoodie.create(path, TRIPS.schema, record_key="id", index="simple")
    first = table.upsert(TRIPS).instant
    assert run("savepoint", "list", path) == (0, "no savepoints\n", "")
    code, out, _ = run("savepoint", "create", path, "--user", "ann", "--comment", "before", "--json")
    assert (code, json.loads(out)["instant"]) == (0, first)
    code, out, _ = run("savepoint", "list", path)
    assert (code, out) == (0, f"{first}  1 files in 1 partitions  ann before\n")
    second = table.upsert(pa.table({"id": ["c"], "fare": [3]})).instant
    table.upsert(pa.table({"id": ["d"], "fare": [4]}))
    code, _, err = run("rollback", path, second)
    assert code == 1
    assert "not the newest" in err
    code, out, _ = run("rollback", path, second, "--chain", "--dry-run", "--json")
    assert (code, json.loads(out)["counts"]["instants"]) == (0, 2)
    assert table.to_arrow().num_rows == 4
    code, out, _ = run("restore", path, first, "--json")
    assert (code, json.loads(out)["counts"]["instants"]) == (0, 2)
    assert table.to_arrow().num_rows == 2
    assert run("savepoint", "delete", path, first)[0] == 0
    assert table.savepoints() == ()
