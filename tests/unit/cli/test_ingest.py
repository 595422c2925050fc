"""`hoodie ingest`: job files, their status, and job files made of properties."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

import hoodie
from hoodie.cli.ingest import StateFile
from tests.support.command_line import Run

JOB = """
[[flow]]
name = "silver"
source = { kind = "hudi", path = "raw" }
transform = [ { kind = "sql", query = "SELECT * FROM source WHERE fare > 1" } ]
table = { path = "silver", create = { record_key = "id" } }

[[flow]]
name = "gold"
source = { kind = "hudi", path = "silver" }
table = { path = "gold", create = { record_key = "id" } }
"""
FUNCTION = """
import pyarrow as pa

def two(request):
    at = int(request.after or 0)
    return None if at == 4 else (pa.table({"id": [str(at), str(at + 1)]}), str(at + 2))

def refuse(request):
    raise ValueError("no rows today")
"""
FUNCTIONS = """
[[flow]]
name = "good"
source = { kind = "function", call = "functions_of_%s:two" }
table = { path = "good", create = { record_key = "id" } }

[[flow]]
name = "bad"
source = { kind = "function", call = "functions_of_%s:refuse" }
table = { path = "bad", create = { record_key = "id" } }
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job of two flows, A → B → C, whose first table has three rows."""
    rows = {"id": ["a", "b", "c"], "fare": [1.0, 2.0, 3.0]}
    hoodie.create(tmp_path / "raw", rows, record_key="id", spark=False).upsert(rows)
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path / "job.toml"


@pytest.fixture
def functions(tmp_path: Path) -> Path:
    """A job of a flow with two batches, and a flow that fails."""
    name = f"{abs(hash(tmp_path))}"
    (tmp_path / f"functions_of_{name}.py").write_text(FUNCTION)
    (tmp_path / "job.toml").write_text(FUNCTIONS % (name, name))
    return tmp_path / "job.toml"


def count(job: Path, table: str) -> int:
    return int(hoodie.open(job.parent / table, spark=False).count())


def events(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_job_runs_until_nothing_is_new(run: Run, job: Path) -> None:
    lines = run.text("ingest", job).splitlines()
    assert lines[0].startswith("silver: upsert at ")
    assert ": 2 inserted, 0 updated, 0 deleted in " in lines[0]
    assert lines[1].startswith("gold: upsert at ")
    assert lines[2].startswith("silver: 1 batch, 2 inserted, 0 updated, 0 deleted in ")
    assert (count(job, "silver"), count(job, "gold")) == (2, 2)
    found = run.rows("ingest", "run", job, "--once")
    assert [(one["event"], one["flow"], one["batches"]) for one in found] == [
        ("result", "silver", 0),
        ("result", "gold", 0),
    ]


def test_json_lines_have_batches_and_results(run: Run, job: Path) -> None:
    found = run.rows("ingest", job)
    assert [(one["event"], one["flow"]) for one in found] == [
        ("batch", "silver"),
        ("batch", "gold"),
        ("result", "silver"),
        ("result", "gold"),
    ]
    assert found[0]["write"]["inserted"] == 2
    assert (found[2]["inserted"], found[2]["error"], found[2]["lag_rows"]) == (2, None, 0)


def test_one_flow_and_a_dry_run(run: Run, job: Path) -> None:
    text = run.text("ingest", job, "--dry-run")
    assert "silver (dry run): would read " in text
    assert ": 2 rows, 2 of them with new keys" in text
    assert f"gold (dry run): waits for {job.parent / 'silver'}" in text
    assert not (job.parent / "silver").exists()
    assert [one["flow"] for one in run.rows("ingest", job, "--only", "silver")] == ["silver", "silver"]
    assert not (job.parent / "gold").exists()
    found = run.rows("ingest", job, "--dry-run")
    assert [(one["event"], one["flow"], one["rows"]) for one in found] == [
        ("preview", "silver", 0),
        ("preview", "gold", 2),
    ]
    assert "no flow 'silvr' in the job; did you mean 'silver'?" in run.error("ingest", job, "--only", "silvr")


def test_the_most_batches(run: Run, functions: Path) -> None:
    (_, result) = run.rows("ingest", functions, "--only", "good", "--max-batches", "1")
    assert (result["batches"], result["place"]) == (1, "2")


def test_a_flow_that_fails_and_the_status(run: Run, functions: Path) -> None:
    state = functions.with_name("job.state.json")
    done = run("ingest", functions, "--json")
    assert done.code == 1
    assert "hoodie: bad: no rows today" in done.err
    found = {(one["event"], one["flow"]): one for one in events(done.out)}
    assert found["result", "good"]["inserted"] == 4
    assert found["result", "bad"]["error"] == found["error", "bad"]["error"] == "no rows today"
    assert json.loads(state.read_text())["flows"].keys() == {"bad"}

    done = run("ingest", "status", functions, "--json")
    good, bad = events(done.out)
    assert (done.code, good["place"], good["is_current"], good["last_error"]) == (1, "4", True, None)
    assert good["instant"] == found["result", "good"]["instants"][-1]
    assert (bad["last_error"], bad["place"]) == ("no rows today", None)
    text = run("ingest", "status", functions).out
    assert "good: up to date" in text
    assert "no rows today" in text

    (module,) = functions.parent.glob("functions_of_*.py")
    assert run("ingest", "status", functions, "--only", "good").code == 0
    functions.write_text(functions.read_text().replace(":refuse", ":two"))
    assert run("ingest", functions).code == 0
    assert json.loads(state.read_text()) == {"flows": {}}
    assert module.exists()


def test_errors_of_other_flows_stay(tmp_path: Path, functions: Path, run: Run) -> None:
    state = functions.with_name("job.state.json")
    state.write_text('{"flows": {"other": {"last_error": "x", "last_error_at": "y"}}}')
    run("ingest", functions)
    found = StateFile.of_job(functions)
    assert (found.last_error("other"), found.last_error("bad")[0]) == (("x", "y"), "no rows today")
    for damaged in ("{", "[]", '{"flows": []}', '{"flows": {"other": 1}}', "null"):
        state.write_text(damaged)
        assert StateFile.of_job(functions).last_error("other") == (None, None)
    assert run("ingest", "status", functions, "--only", "good").code == 0


def test_sigterm_ends_a_continuous_job(run: Run, job: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    scraped: list[str] = []

    def stop() -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not (job.parent / "gold" / ".hoodie").exists():
            time.sleep(0.1)
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            scraped.append(answer.read().decode())
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=stop)
    thread.start()
    done = run("ingest", job, "--continuous", "--metrics-port", port, "--json")
    thread.join()
    assert done.code == 0, done
    assert f"metrics: http://127.0.0.1:{port}/metrics" in done.err
    assert 'hoodie_ingest_rows_written_total{flow="silver"} 2.0' in scraped[0]
    assert [one["error"] for one in events(done.out) if one["event"] == "result"] == [None, None]
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(("closed", "options"), [("stdout", ("--json",)), ("stderr", ())])
def test_a_job_goes_on_if_nobody_reads_its_lines(functions: Path, closed: str, options: tuple[str, ...]) -> None:
    text = functions.read_text()
    good = text[: text.rindex("[[flow]]")]
    last = good.replace('"good"', '"last"')
    functions.write_text(f"{text}{last}")
    reader, writer = os.pipe()
    os.close(reader)
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, closed: writer}
    command = [sys.executable, "-m", "hoodie", "ingest", str(functions), *options]
    done = subprocess.run(command, **streams, timeout=120, check=False)
    os.close(writer)
    assert done.returncode == 1  # a flow failed
    assert (count(functions, "good"), count(functions, "last")) == (4, 4)
    assert b"Traceback" not in (done.stderr or b"")
    assert not done.stdout or done.stdout.count(b"last") >= 3, done.stdout


@pytest.mark.parametrize("services", ["off", "beside"])
def test_services(run: Run, job: Path, services: str) -> None:
    kept = 'properties = { "hoodie.clean.commits.retained" = 1 }\noperation = "insert_overwrite_table"\n'
    job.write_text(f'services = "{services}"\n[defaults]\n{kept}{JOB}')
    raw = hoodie.open(job.parent / "raw", spark=False)
    found = []
    for number in range(4):
        raw.upsert({"id": [f"k{number}"], "fare": [9.0]})
        found += run.rows("ingest", job, "--only", "silver")
    done = {one["operation"] for one in found if one["event"] == "service"}
    assert done == ({"clean"} if services == "beside" else set())
    assert all(one["write"]["services"] == [] for one in found if one["event"] == "batch")


def test_what_is_wrong_is_one_line(run: Run, job: Path) -> None:
    job.write_text("[[flow]\n")
    assert f"hoodie: {job}: expected a TOML file: " in run.error("ingest", job)
    assert "No such file" in run.error("ingest", job.with_name("none.toml"))
    job.write_text(JOB.replace("kind =", "knd ="))
    assert "flow 'silver', source, kind: unknown" in run.error("ingest", job)
    job.write_text("services_interval = 0\nservices = 'beside'\n" + JOB)
    assert "services_interval=0" in run.error("ingest", job)
    job.write_text("metrics_port = 70000\n" + JOB)
    assert "metrics_port=70000" in run.error("ingest", job)


def test_notes_on_options_without_effect(run: Run, job: Path) -> None:
    job.write_text(f'[defaults]\nproperties = {{ "hoodie.upsert.shuffle.parallelism" = 2 }}\n{JOB}')
    assert "note: flow 'silver': without effect here" in run("ingest", job, "--dry-run").err


def test_a_job_file_made_of_properties(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "streamer.properties"
    file.write_text("hoodie.streamer.source.dfs.root=/landing\nhoodie.datasource.write.recordkey.field=id\n")
    options = ("--target-base-path", "/lake/trips", "--op=INSERT", "--continuous", "--hoodie-conf", "a=b=c")
    text = run.text("ingest", "--from-properties", file, *options)
    document = tomllib.loads(text)
    (flow,) = document["flow"]
    assert (document["continuous"], flow["operation"], flow["table"]["path"]) == (True, "insert", "/lake/trips")
    assert (
        text
        == run.text("ingest", *options, "--from-properties", file)
        == run.text("ingest", "from-properties", file, *options)
    )
    assert (
        "expected an option of HoodieStreamer, found 'b'"
        in run("ingest", "--from-properties", file, "--a", "a", "b").err
    )


def test_help_shows_the_commands(run: Run) -> None:
    text = run.text("ingest", "--help")
    assert all(name in text for name in ("run", "status", "from-properties"))
    assert run("ingest").code == 2
