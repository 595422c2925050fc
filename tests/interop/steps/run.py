"""Run the steps of pages, and write what each left as JSON.

Usage: python -m tests.interop.steps.run OUT.json [--bundle JAR] PAGE …

With a bundle JVM Hudi answers `format("hudi")` and SQL. Without one hoodie does: the pages run with its data source,
then again in a registered session; the names of the second outcomes end with `NATIVE`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import hoodie
from tests.interop.judges import JVM_CONFS
from tests.interop.steps.script import Page, Script, contents
from tests.support.sessions import open_classic_session

NATIVE: Final = "-native"


def main() -> None:
    """Run the pages of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("pages", nargs="+")
    parser.add_argument("--bundle", type=Path)
    given = parser.parse_args()
    jars = {} if given.bundle is None else {**JVM_CONFS, "spark.jars": str(given.bundle.resolve())}
    with tempfile.TemporaryDirectory() as scratch:
        session = open_classic_session(Path(scratch, "warehouse"), jars)
        run_sql = partial(hoodie.sql, session) if given.bundle is None else session.sql
        found = {name: run_page(page_of(name), session, Path(scratch, name), run_sql) for name in given.pages}
        if given.bundle is None:
            hoodie.register(session)
            for name in given.pages:
                found[name + NATIVE] = run_page(page_of(name), session, Path(scratch, name + NATIVE), run_sql)
        session.stop()
    given.out.write_text(json.dumps(found, indent=1, ensure_ascii=False))


def page_of(name: str) -> Page:
    """Return the page of a module."""
    page = importlib.import_module(f"tests.interop.steps.{name}").PAGE
    assert isinstance(page, Page)
    assert all(step.call is not None for step in page.steps), "a step without statements has no function"
    return page


def run_page(page: Page, session: Any, folder: Path, run_sql: Callable[[str], Any]) -> list[dict[str, Any]]:
    """Run the steps of a page; a step that fails is recorded, and the next one runs. Its views are gone after it."""
    script = Script(session, folder, run_sql)
    outcomes = [{"step": step.name, **_outcome(step.call, script)} for step in page.steps]
    for found in session.catalog.listTables():
        if found.isTemporary:
            session.catalog.dropTempView(found.name)
    return outcomes


def _outcome(call: Any, script: Script) -> dict[str, Any]:
    found: dict[str, Any] = {}
    try:
        frame = call(script)
        if frame is not None:
            found["result"] = contents(frame)
    except Exception as error:
        found["error"] = str(error)[:1500]
        found["trace"] = traceback.format_exc()[-3000:]
    try:
        found["table"] = script.state()
    except Exception as error:
        found["table"] = {"error": str(error)[:1500]}
    return found


if __name__ == "__main__":
    main()
