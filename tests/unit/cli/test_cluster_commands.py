"""`hoodie cluster …`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

import hoodie
from tests.support.command_line import Run


def test_plan_list_execute_and_cluster_at_once(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = pa.table({"id": ["a", "b"], "x": [2, 1]})
    table = hoodie.create(path, rows.schema, record_key="id", index="simple")
    for _ in range(10):
        table.bulk_insert(rows)
    code, out, _ = run("cluster", path, "--advice", "--json")
    assert (code, json.loads(out)["file_slices"], json.loads(out)["files_after"]) == (0, 10, 1)
    assert run("cluster", path, "--pending")[1] == "no clustering is pending\n"
    code, out, _ = run("cluster", path, "--plan", "--by", "x", "--by", "id", "--layout", "zorder")
    instant = out.strip()
    assert (code, table.pending_clusterings().instants) == (0, [instant])
    assert run("cluster", path, "--plan")[1] == "nothing to cluster\n"
    (line,) = run("cluster", path, "--pending", "--json")[1].splitlines()
    assert (json.loads(line)["layout"], json.loads(line)["by"]) == ("zorder", ["x", "id"])
    code, out, _ = run("cluster", path, "--run", "--json")
    assert (code, json.loads(out)["instant"], json.loads(out)["counts"]["files_created"]) == (0, instant, 1)
    assert "20 records" in run("cluster", path, "--by", "x")[1]
    assert table.to_arrow().num_rows == 20
    assert run("cluster", path, "--plan", "--run")[0] == 2
    assert run("cluster", path, "--run", "--by", "x")[0] == 2
    code, _, told = run("cluster", path, "--by", "z")
    assert (code, "expected columns of the table, id, x" in told) == (1, True)
