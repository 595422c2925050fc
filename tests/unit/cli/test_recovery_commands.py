"""`hoodie savepoint …`, `hoodie restore` and `hoodie rollback`: what they print, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

import hoodie
from tests.support.command_line import Run

TRIPS = pa.table({"id": ["a", "b"], "fare": [1, 2]})


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
