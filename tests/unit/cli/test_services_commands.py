"""`hoodie compact`, `cluster`, `clean` and their like."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.support.command_line import Run

TRIPS = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"]})
RETAINED = ("--option", "hoodie.clean.commits.retained=2")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A merge-on-read table with a log file in each of its two partitions."""
    table = hoodie.create(
        tmp_path / "t", TRIPS.schema, record_key="id", partition_by="city", index="simple", type="merge_on_read"
    )
    table.upsert(TRIPS)
    table.upsert(TRIPS)
    return tmp_path / "t"


def test_plan_and_run_at_once(run: Run, path: Path) -> None:
    code, out, _ = run("compact", path, "--json")
    assert (code, json.loads(out)["counts"]["log_files"]) == (0, 2)
    code, out, _ = run("compact", path)
    assert (code, "nothing to do" in out) == (0, True)


def test_plan_pending_run(run: Run, path: Path) -> None:
    code, out, _ = run("compact", path, "--pending")
    assert (code, out) == (0, "no compaction is pending\n")
    code, out, _ = run("compact", path, "--plan", "--strategy", "unbounded", "--metadata", "team=riders")
    instant = out.strip()
    assert (code, hoodie.open(path).pending_compactions().instants) == (0, [instant])
    code, out, _ = run("compact", path, "--plan")
    assert (code, out) == (0, "nothing to compact\n")
    code, out, _ = run("compact", path, "--pending", "--json")
    assert (code, json.loads(out)["instant"], json.loads(out)["file_slices"]) == (0, instant, 2)
    code, out, _ = run("compact", path, "--run", "--instant", instant, "--json")
    assert (code, json.loads(out)["instant"], json.loads(out)["counts"]["file_slices"]) == (0, instant, 2)
    code, out, _ = run("compact", path, "--run")
    assert (code, "nothing to do" in out) == (0, True)
    assert hoodie.open(path).count() == 2


def test_what_is_wrong_is_told(run: Run, path: Path) -> None:
    code, _, error = run("compact", path, "--run", "--instant", "123")
    assert (code, "no pending compaction 123" in error) == (1, True)
    code, _, error = run("compact", path, "--plan", "--strategy", "best")
    assert (code, "unknown compaction strategy" in error) == (1, True)
    misspelt = ("--option", "hoodie.compaction.stratgy=day_based")
    for command in (("compact", path, "--plan"), ("compact", path, "--run"), ("services", "run", path, "--compact")):
        code, _, error = run(*command, *misspelt)
        assert (code, "did you mean 'hoodie.compaction.strategy'" in error) == (1, True)


def test_a_plan_is_taken_back(run: Run, path: Path) -> None:
    instant = hoodie.open(path).schedule_compaction()
    code, out, _ = run("rollback", path, instant, "--json")
    assert (code, json.loads(out)["instant"]) == (0, instant)
    assert hoodie.open(path).pending_compactions().instants == []
    code, _, error = run("rollback", path, instant)
    assert (code, "no instant" in error) == (1, True)


def test_one_round_of_services(run: Run, path: Path) -> None:
    code, out, _ = run("services", "run", path, "--compact", "--once", "--json")
    assert (code, out) == (0, "")
    due = ("--option", "hoodie.compact.inline.max.delta.commits=2")
    code, out, _ = run("services", "run", path, "--compact", "--once", "--json", *due)
    assert (code, json.loads(out)["counts"]["log_files"]) == (0, 2)


def test_services_run_until_they_are_told_to_stop(run: Run, path: Path) -> None:
    instant = hoodie.open(path).schedule_compaction()
    handler = signal.getsignal(signal.SIGTERM)

    def stop_when_done() -> None:
        # The command has its handler by then: compaction begins after it.
        while hoodie.open(path).pending_compactions().instants:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    watcher = threading.Thread(target=stop_when_done, daemon=True)
    watcher.start()
    code, out, _ = run("services", "run", path, "--compact", "--interval", "0.05")
    watcher.join()
    assert (code, f"compaction at {instant}" in out) == (0, True)
    assert signal.getsignal(signal.SIGTERM) == handler


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


@pytest.fixture
def versions(tmp_path: Path) -> str:
    """The path of a table of four commits."""
    table = hoodie.create(tmp_path / "t", TRIPS.schema, record_key="id", partition_by="city", spark=False)
    for _ in range(4):
        table.upsert(TRIPS)
    return str(tmp_path / "t")


def test_clean(run: Run, versions: str) -> None:
    code, out, _ = run("clean", versions, "--dry-run", *RETAINED)
    assert (code, "would delete 2 files" in out, "stay readable" in out, "city=sf/" in out) == (0, True, True, True)
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
    assert run("services", "run", versions, "--once") == (0, "nothing was due\n", "")
