"""`hoodie demo` on a sample of its flights: the whole story, every check, and what it prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli import main
from hoodie.cli.demo import command
from hoodie.cli.demo.flights import KEY, Flights
from hoodie.cli.demo.story import DemoError, expect_same_rows
from hoodie.table import sessions
from tests.support.samples import sample_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLE = 1000
NOT_INSTALLED = "PySpark is not installed"


@pytest.mark.spark
def test_the_story_holds_on_a_sample(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["demo", "--rows", str(SAMPLE), "--path", str(tmp_path), "--json"])
    captured = capsys.readouterr()
    assert exit_.value.code == 0, captured.err
    told = json.loads(captured.out)
    assert told["engine"] == "in Spark"
    assert len(told["steps"]) == 28 + hasattr(spark, "dataSource")  # the step with a stream
    flights = Flights.load(SAMPLE)
    table = hoodie.open(told["table"])
    assert table.to_arrow(columns=["flight"]).num_rows == SAMPLE - flights.cancelled.num_rows
    assert 0 < flights.cancelled.num_rows < SAMPLE
    # It never takes a folder that holds a table.
    with pytest.raises(SystemExit) as again:
        main(["demo", "--path", str(tmp_path)])
    assert again.value.code == 1


WITHOUT_PYSPARK = """
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyspark":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
from hoodie.cli import main
main(sys.argv[1:])
"""
"""A command line of an environment without the extra `spark`."""


@pytest.mark.later
@pytest.mark.parametrize(
    ("command", "reason"),
    sample_of(
        [
            pytest.param(["-m", "hoodie"], "Spark does not start", id="without a JDK"),
            pytest.param(["-c", WITHOUT_PYSPARK], NOT_INSTALLED, id="without the extra"),
        ],
        1,
        "stories without Spark",
    ),
)
def test_without_spark_the_same_story_runs_in_process(command: list[str], reason: str, tmp_path: Path) -> None:
    without_java = os.environ | {"JAVA_HOME": str(tmp_path / "no-jdk")}
    arguments = [sys.executable, *command, "demo", "--rows", str(SAMPLE), "--path", str(tmp_path / "demo"), "--json"]
    done = subprocess.run(arguments, env=without_java, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["engine"] == "in process"
    assert len(told["steps"]) == 28
    assert "all steps run in this process" in told["steps"][1]["outcome"]
    assert f"The demo ran in process. {reason}" in done.stderr
    assert done.stderr.count("pip install") == 1
    assert "With Spark, the same calls take and return DataFrames" in done.stderr
    assert hoodie.open(told["table"]).count() == SAMPLE - Flights.load(SAMPLE).cancelled.num_rows


@pytest.mark.parametrize(
    ("missing", "reason", "found"),
    [
        ("pyspark", NOT_INSTALLED, "not installed"),
        ("py4j", "PySpark does not load, because the module py4j is not installed", "it does not load"),
    ],
)
def test_a_missing_module_is_named_without_a_log_of_java(
    missing: str, reason: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load() -> Any:
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(sessions, "_loaders", [load])
    monkeypatch.setattr(command, "active_session", lambda: None)
    with ExitStack() as opened:
        engine, outcome = command._start(tmp_path / "spark.log", opened)
    assert (engine.name, engine.reason) == ("in process", reason)
    assert outcome == f"{found}; all steps run in this process"
    assert not (tmp_path / "spark.log").exists()


def test_the_flights_are_what_the_story_says() -> None:
    flights = Flights.load()
    assert flights.rows.num_rows == 336_776
    assert flights.cancelled.num_rows == 8_255
    assert flights.rows.group_by(list(KEY)).aggregate([]).num_rows == 336_776
    assert flights.months == list(range(1, 13))
    assert flights.schedules()["dep_time"].null_count == 336_776


def test_a_judge_that_disagrees_is_noticed() -> None:
    rows = Flights.load(600).flown
    expect_same_rows("a table and itself", rows.slice(0), rows)
    delay = rows.schema.get_field_index("dep_delay")
    wrong = rows.set_column(
        delay, "dep_delay", pa.chunked_array([[*rows["dep_delay"].to_pylist()[:-1], 12_345]], pa.int32())
    )
    with pytest.raises(DemoError, match="12345"):
        expect_same_rows("the judge", wrong, rows)
    with pytest.raises(DemoError, match="rows of the judge"):
        expect_same_rows("the judge", rows.slice(1), rows)
