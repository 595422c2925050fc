"""`hoodie index …`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.index.record.entries import EntryWriter
from hoodie.index.record.state import record_index
from tests.support.command_line import Run
from tests.support.tables import new_table

TRIPS = pa.table({"id": ["a", "b", "c"], "city": ["sf", "nyc", "sf"]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table without a record index."""
    new_table(TRIPS.schema, TRIPS, path=tmp_path / "t", partition_by="city", index="simple")
    return tmp_path / "t"


def test_build_verify_compare_drop(run: Run, path: Path, tmp_path: Path) -> None:
    assert "has no record index" in run.error("index", "verify", path)
    assert "3 entries, 2 buckets" in run.text("index", "build", path, "--buckets", 2)
    found = run.json("index", "verify", path)
    assert (found["ok"], found["checked"]["keys"]) == (True, 3)
    pq.write_table(TRIPS.select(["id"]), tmp_path / "keys.parquet")
    assert "OK" in run.text("index", "compare", path, tmp_path / "keys.parquet")
    assert "rebuild metadata table: 2 partitions" in run.text("index", "rebuild", path)
    assert run.json("index", "drop", path)["operation"] == "drop record index"
    assert record_index(hoodie.open(path).view()) is None


def test_a_difference_is_an_exit_code(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("index", "build", path)
    since = hoodie.open(path).timeline.instants[-1].requested_time
    with monkeypatch.context() as patch:
        patch.setattr(EntryWriter, "put", lambda *_: None)
        hoodie.open(path).upsert({"id": ["x"], "city": ["la"]})
    for command in (("verify", path), ("compare", path, "--since", since)):
        done = run("index", *command)
        assert (done.code, "keys without an entry: x" in done.out) == (1, True)
    done = run("index", "verify", path, "--json")
    assert (done.code, json.loads(done.out)["findings"][0]["key"]) == (1, "x")


def test_wrong_usage(run: Run, path: Path) -> None:
    assert run("index", "compare", path).code == 2
    assert run("index", "build", path, "--buckets", 0).code == 2


def test_switch(run: Run, path: Path) -> None:
    found = run.json("index", "switch", path, "global_simple", "--dry-run")
    assert (found["dry_run"], found["operation"]) == (True, "switch index")
    before = hoodie.open(path).view().config.raw
    assert "the index is 'record' now" in run.text("index", "switch", path, "record")
    assert record_index(hoodie.open(path).view()) is not None
    assert "are arguments of index='bucket'" in run.error("index", "switch", path, "simple", "--buckets", 4)
    assert before != hoodie.open(path).view().config.raw
