"""Scripts for JVM Hudi leave the same tables with JVM Hudi and its JAR, and with hoodie and `format("hudi")`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.interop.judges import Jvm
from tests.interop.steps.differences import DIFFERENCES, comparable
from tests.interop.steps.run import NATIVE, page_of, run_page

PAGES = (
    "quick_start",
    "writing",
    "reading",
    "sql_ddl",
    "sql_dml",
    "compaction",
    "procedures",
    "procedure_services",
    "streaming",
    "concurrency",
    "clustering",
    "cleaning",
    "indexes",
)


@pytest.fixture(scope="module")
def own(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What the steps of this run's pages left with hoodie on the newest Spark, without a JAR."""
    python = os.environ.get("HOODIE_NEWEST_PYTHON", "")
    if not Path(python).exists():
        pytest.fail(f"HOODIE_NEWEST_PYTHON is '{python}', no Python with PySpark 4: run `make interop`", pytrace=False)
    out = tmp_path_factory.mktemp("steps") / "own.json"
    command = [python, "-m", "tests.interop.steps.run", str(out), *_pages_of(request.session)]
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_"))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=2400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, list[dict[str, Any]]] = json.loads(out.read_text())
    return found


def _pages_of(run: pytest.Session) -> list[str]:
    """Return the pages that the run's sample keeps."""
    here = [item for item in run.items if isinstance(item, pytest.Function) and item.module.__name__ == __name__]
    return [str(item.callspec.params["name"]) for item in here]


@pytest.mark.timeout(2700)  # the first test waits until the steps have run with hoodie
@pytest.mark.matrix(keep=5)
@pytest.mark.parametrize("name", PAGES)
def test_each_step_leaves_the_same_table(
    name: str, own: dict[str, list[dict[str, Any]]], jvm: Jvm, tmp_path: Path
) -> None:
    judged = run_page(page_of(name), jvm.spark, tmp_path, jvm.spark.sql)
    differences = DIFFERENCES[name]
    assert differences.keys() <= {outcome["step"] for outcome in judged}
    wrong, met = [], set()
    for way in (name, name + NATIVE):
        for theirs, ours in zip(judged, own[way], strict=True):
            if comparable(theirs) == comparable(ours):
                continue
            met.add(theirs["step"])
            if theirs["step"] not in differences:
                wrong.append(f"{way}, {theirs['step']}:\n  JVM    {comparable(theirs)}\n  hoodie {comparable(ours)}")
                wrong.append(f"  {theirs.get('error', '')[:500]}\n  {ours.get('error', '')[-500:]}")
    assert not wrong, "\n".join(wrong)
    assert not differences.keys() - met, "these steps do not differ any more"
