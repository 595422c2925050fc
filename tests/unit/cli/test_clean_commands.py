"""`hoodie clean`, `hoodie expire-partitions` and the services of `hoodie services run`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.support.command_line import Run

ROWS = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"]})
RETAINED = ("--option", "hoodie.clean.commits.retained=2")


@pytest.fixture
def versions(tmp_path: Path) -> str:
    """The path of a table of four commits."""
    table = hoodie.create(tmp_path / "t", ROWS.schema, record_key="id", partition_by="city", spark=False)
    for _ in range(4):
        table.upsert(ROWS)
    return str(tmp_path / "t")


def test_clean(run: Run, versions: str) -> None:
    code, out, _ = run("clean", versions, "--dry-run", *RETAINED)
    assert (code, "2 files deleted" in out, "stay readable" in out, "city=sf/" in out) == (0, True, True, True)
    code, out, _ = run("clean", versions, "--json", *RETAINED)
    assert (code, json.loads(out)["counts"]["files_deleted"]) == (0, 2)
    code, _, error = run("clean", versions, "--option", "hoodie.clean.comits.retained=2")
    assert (code, "did you mean" in error) == (1, True)


def test_expire_partitions(run: Run, versions: str) -> None:
    week = ("--option", "hoodie.partition.ttl.strategy.days.retain=7")
    code, out, _ = run("expire-partitions", versions, "--dry-run", "--json", *week)
    assert (code, json.loads(out)["counts"]) == (0, {"partitions_deleted": 0, "partitions_kept": 2})


def test_services_run(run: Run, versions: str) -> None:
    code, out, _ = run("services", "run", versions, "--clean", "--once", "--json", *RETAINED)
    assert (code, json.loads(out)["operation"]) == (0, "clean")
    code, out, _ = run("services", "run", versions, "--once", "--json")
    assert (code, out) == (0, "")
