"""SQL procedures that run table services, and list what they did: cleans, clusterings, archiving, compactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.interop.steps.script import Page, Script
from tests.interop.steps.sql_page import sql_steps, without_values

PAGE = Page("SQL procedures: table services", sql_steps(__file__))


@PAGE.step("export_instants")
def _(it: Script) -> Any:
    folder = Path(it.path).parent / "exported"
    folder.mkdir()
    it.sql("CALL export_instants(table => '{t}', local_folder => '{folder}/exported', actions => 'commit')").collect()
    return it.frame("files int", (len(list(folder.glob("[0-9]*"))),))


@PAGE.step("run_rollback_inflight_tableservice of a plan that somebody began")
def _(it: Script) -> Any:
    plan = it.planned("clustering.requested")
    Path(it.path, ".hoodie", "timeline", f"{plan}.clustering.inflight").touch()
    text = f"CALL run_rollback_inflight_tableservice(table => '{{t}}', pending_instant => '{plan}')"
    return without_values(it.sql(text))
