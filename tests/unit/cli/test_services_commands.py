"""`hoodie compact`, `cluster`, `clean` and their like."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.support.command_line import Run
from tests.support.tables import new_table

TRIPS = pa.table({"id": ["a", "b"], "city": ["sf", "nyc"]})
RETAINED = ("--option", "hoodie.clean.commits.retained=2")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A merge-on-read table with a log file in each of its two partitions."""
    kind = {"partition_by": "city", "index": "simple", "type": "merge_on_read"}
    new_table(TRIPS.schema, TRIPS, TRIPS, path=tmp_path / "t", **kind)
    return tmp_path / "t"


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """A table of four commits."""
    new_table(TRIPS.schema, *[TRIPS] * 4, path=tmp_path / "t", partition_by="city")
    return tmp_path / "t"


def test_plan_and_run_at_once(run: Run, path: Path) -> None:
    assert run.json("compact", path)["counts"]["log_files"] == 2
    assert "nothing to do" in run.text("compact", path)


def test_plan_pending_run(run: Run, path: Path) -> None:
    assert run.text("compact", path, "--pending") == "no compaction is pending\n"
    instant = run.text("compact", path, "--plan", "--strategy", "unbounded", "--metadata", "team=riders").strip()
    assert hoodie.open(path).pending_compactions().instants == [instant]
    assert run.text("compact", path, "--plan") == "nothing to compact\n"
    pending = run.json("compact", path, "--pending")
    assert (pending["instant"], pending["file_slices"]) == (instant, 2)
    done = run.json("compact", path, "--run", "--instant", instant)
    assert (done["instant"], done["counts"]["file_slices"]) == (instant, 2)
    assert "nothing to do" in run.text("compact", path, "--run")
    assert hoodie.open(path).count() == 2


def test_options_of_a_new_plan_are_refused_where_a_plan_waits(run: Run, path: Path) -> None:
    for given in (("--strategy", "day_based"), ("--metadata", "team=riders")):
        for mode in (("--run",), ("--pending",), ("--instant", "1")):
            done = run("compact", path, *mode, *given)
            assert (done.code, "are for a new plan" in " ".join(done.err.split())) == (2, True)
    instant = hoodie.open(path).schedule_compaction()
    told = run.error("compact", path, "--strategy", "day_based")
    assert f"and {instant} waits to be executed first" in " ".join(told.split())
    assert hoodie.open(path).pending_compactions().instants == [instant]
    assert run.json("compact", path)["instant"] == instant
    hoodie.open(path, spark=False).upsert(TRIPS)
    assert run.json("compact", path, "--strategy", "day_based")["counts"]["log_files"] == 2


def test_what_is_wrong_is_told(run: Run, path: Path) -> None:
    assert "no pending compaction 123" in run.error("compact", path, "--run", "--instant", "123")
    assert "unknown compaction strategy" in run.error("compact", path, "--plan", "--strategy", "best")
    misspelt = ("--option", "hoodie.compaction.stratgy=day_based")
    for command in (("compact", path, "--plan"), ("compact", path, "--run"), ("services", "run", path, "--compact")):
        assert "did you mean 'hoodie.compaction.strategy'" in run.error(*command, *misspelt)
    assert "did you mean" in run.error("clean", path, "--option", "hoodie.clean.comits.retained=2")


def test_a_plan_is_taken_back(run: Run, path: Path) -> None:
    instant = hoodie.open(path).schedule_compaction()
    assert f"rollback at {instant}: 1 instant, " in run.text("rollback", path, instant)
    assert hoodie.open(path).pending_compactions().instants == []
    assert "no instant" in run.error("rollback", path, instant)


def test_one_round_of_services(run: Run, path: Path) -> None:
    once = ("services", "run", path, "--compact", "--once")
    assert run.rows(*once) == []
    assert run.json(*once, "--option", "hoodie.compact.inline.max.delta.commits=2")["counts"]["log_files"] == 2


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
    assert f"compaction at {instant}" in run.text("services", "run", path, "--compact", "--interval", "0.05")
    watcher.join()
    assert signal.getsignal(signal.SIGTERM) == handler


def test_plan_list_execute_and_cluster_at_once(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t"
    rows = {"id": ["a", "b"], "x": [2, 1]}
    table = hoodie.create(path, rows, record_key="id", index="simple", spark=False)
    for _ in range(10):
        table.bulk_insert(rows)
    advice = run.json("cluster", path, "--advice")
    assert (advice["file_slices"], advice["files_after"]) == (10, 1)
    assert run.text("cluster", path, "--pending") == "no clustering is pending\n"
    instant = run.text("cluster", path, "--plan", "--by", "x", "--by", "id", "--layout", "zorder").strip()
    assert table.pending_clusterings().instants == [instant]
    assert run.text("cluster", path, "--plan") == "nothing to cluster\n"
    pending = run.json("cluster", path, "--pending")
    assert (pending["layout"], pending["by"]) == ("zorder", ["x", "id"])
    done = run.json("cluster", path, "--run")
    assert (done["instant"], done["counts"]["files_created"]) == (instant, 1)
    assert "20 records" in run.text("cluster", path, "--by", "x")
    assert table.count() == 20
    assert run("cluster", path, "--plan", "--run").code == 2
    assert run("cluster", path, "--run", "--by", "x").code == 2
    assert "expected columns of the table, id, x" in run.error("cluster", path, "--by", "z")


def test_clean(run: Run, versions: Path) -> None:
    out = run.text("clean", versions, "--dry-run", *RETAINED)
    assert [words for words in ("would delete 2 files", "stay readable", "city=sf/") if words not in out] == []
    assert run.json("clean", versions, *RETAINED)["counts"]["files_deleted"] == 2


def test_expire_partitions(run: Run, versions: Path) -> None:
    week = ("--option", "hoodie.partition.ttl.strategy.days.retain=7")
    counts = run.json("expire-partitions", versions, "--dry-run", *week)["counts"]
    assert counts == {"partitions_deleted": 0, "partitions_kept": 2}


def test_services_run(run: Run, versions: Path) -> None:
    assert run.json("services", "run", versions, "--clean", "--once", *RETAINED)["operation"] == "clean"
    assert run.rows("services", "run", versions, "--once") == []
    assert run("services", "run", versions, "--once") == (0, "nothing was due\n", "")
