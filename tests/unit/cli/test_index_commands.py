"""`hoodie index …`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.cli import main
from hoodie.index.record.entries import EntryWriter
from hoodie.index.record.state import record_index

TRIPS = pa.table({"id": ["a", "b", "c"], "city": ["sf", "nyc", "sf"]})
Run = Callable[..., tuple[object, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process: exit code, output, errors."""

    def call(*arguments: object) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as exit_:
            main(["index", *map(str, arguments)])
        captured = capsys.readouterr()
        return exit_.value.code, captured.out, captured.err

    return call


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table without a record index."""
    hoodie.create(tmp_path / "t", TRIPS.schema, record_key="id", partition_by="city", index="simple").upsert(TRIPS)
    return tmp_path / "t"


def test_build_verify_compare_drop(run: Run, path: Path, tmp_path: Path) -> None:
    code, _, error = run("verify", path)
    assert code == 1
    assert "has no record index" in error
    code, out, _ = run("build", path, "--buckets", 2)
    assert code == 0
    assert "3 entries, 2 buckets" in out
    code, out, _ = run("verify", path, "--json")
    assert (code, json.loads(out)["ok"], json.loads(out)["checked"]["keys"]) == (0, True, 3)
    pq.write_table(TRIPS.select(["id"]), tmp_path / "keys.parquet")
    code, out, _ = run("compare", path, tmp_path / "keys.parquet")
    assert (code, "OK" in out) == (0, True)
    code, out, _ = run("rebuild", path)
    assert code == 0
    assert "rebuild metadata table: 2 partitions" in out
    code, out, _ = run("drop", path, "--json")
    assert (code, json.loads(out)["operation"]) == (0, "drop record index")
    assert record_index(hoodie.open(path).view()) is None


def test_a_difference_is_an_exit_code(run: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("build", path)
    since = hoodie.open(path).timeline.instants[-1].requested_time
    with monkeypatch.context() as patch:
        patch.setattr(EntryWriter, "put", lambda *_: None)
        hoodie.open(path).upsert(pa.table({"id": ["x"], "city": ["la"]}))
    for command in (("verify", path), ("compare", path, "--since", since)):
        code, out, _ = run(*command)
        assert code == 1
        assert "keys without an entry: x" in out
    code, out, _ = run("verify", path, "--json")
    assert code == 1
    assert json.loads(out)["findings"][0]["key"] == "x"


def test_wrong_usage(run: Run, path: Path) -> None:
    assert run("compare", path)[0] == 2
    assert run("build", path, "--buckets", 0)[0] == 2


def test_switch(run: Run, path: Path) -> None:
    code, out, _ = run("switch", path, "global_simple", "--dry-run", "--json")
    found = json.loads(out)
    assert (code, found["dry_run"], found["operation"]) == (0, True, "switch index")
    before = hoodie.open(path).view().config.raw
    code, out, _ = run("switch", path, "record")
    assert code == 0
    assert "the index is 'record' now" in out
    assert record_index(hoodie.open(path).view()) is not None
    code, _, error = run("switch", path, "simple", "--buckets", 4)
    assert (code, "are arguments of index='bucket'" in error) == (1, True)
    assert before != hoodie.open(path).view().config.raw
