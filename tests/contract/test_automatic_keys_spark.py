"""Automatic keys while Spark repeats tasks: each row once, no key twice, and the same keys for the same data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.contract.failing_tasks import CASES, PARTS, ROWS
from tests.support.samples import IS_WHOLE

pytestmark = [pytest.mark.spark, pytest.mark.connect, pytest.mark.timeout(900)]
LANE = os.environ.get("HOODIE_TEST_SPARK", "classic")
RANDOM = "bulk_insert, random, executor killed"
SAME = {
    "insert, worker killed": "insert, quiet",
    "bulk_insert, task fails": "bulk_insert, quiet",
    "insert, sorted, executor killed": "insert, sorted, quiet",
}
REPEATED = LANE == "connect" or version("pyspark").startswith("3.")
"""Whether this is another Spark than that which runs every case: a session with executors takes long to start."""
RUN = [
    name
    for name in CASES
    if (name in ("insert, quiet", "insert, worker killed") if REPEATED else IS_WHOLE or "random" not in name)
]
Written = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """What each case wrote."""
    program = [sys.executable, "-m", "tests.contract.failing_tasks", LANE, str(tmp_path_factory.mktemp("failing"))]
    root = Path(__file__).parents[2]
    done = subprocess.run([*program, *RUN], check=False, capture_output=True, text=True, cwd=root, timeout=840)
    assert done.returncode == 0, done.stderr[-5000:]
    found: Written = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return found


def check_keys(found: dict[str, Any]) -> None:
    """No key is used twice, all are of the commit, and the table is in order."""
    assert len(set(found["keys"])) == len(found["keys"]) == found["inserted"]
    assert {key.split("_")[0] for key in found["keys"]} == {found["instant"]}
    assert found["ok"]


@pytest.mark.parametrize("name", [name for name in RUN if name != RANDOM])
def test_each_row_is_there_once_whatever_happens_to_tasks(written: Written, name: str) -> None:
    found = written[name]
    check_keys(found)
    assert sorted(found["ids"]) == list(range(ROWS))
    # The fault happened: the task ran again.
    attempts = Counter(int(attempt.split("-")[0]) for attempt in found["attempts"] if attempt != "fault")
    assert set(attempts) == set(range(PARTS))
    assert (attempts[2] > 1) == (CASES[name].fault is not None)


@pytest.mark.parametrize("name", [name for name in SAME if name in RUN])
def test_the_same_data_gets_the_same_keys_again(written: Written, name: str) -> None:
    """Apart from the time of the commit."""

    def keys(found: dict[str, Any]) -> dict[int, str]:
        return dict(zip(found["ids"], (key.partition("_")[2] for key in found["keys"]), strict=True))

    assert keys(written[name]) == keys(written[SAME[name]])


@pytest.mark.skipif(RANDOM not in RUN, reason="`make test-all` runs this case")
def test_a_plan_that_changes_when_shuffle_files_are_lost_uses_no_key_twice(written: Written) -> None:
    """Spark fails the job if it notices that the repeated part is not the same; then nothing is committed."""
    found = written[RANDOM]
    if "error" in found:
        assert found["error"].startswith("JobFailedError: Spark did not complete a job of this call: Job aborted")
        assert "indeterminate" in found["error"]
        assert (found["rows"], found["ok"]) == (0, True)
    else:
        check_keys(found)
