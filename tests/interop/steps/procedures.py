"""SQL procedures: what CALL shows of a table; savepoints, rollbacks and copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.interop.steps.script import Page, Script
from tests.interop.steps.sql_page import sql_steps, without_values

PAGE = Page("SQL procedures: commits, files, savepoints and copies", sql_steps(__file__))


@PAGE.step("show_invalid_parquet")
def _(it: Script) -> Any:
    broken = Path(it.path, "p=x", "broken.parquet")
    broken.write_bytes(b"no parquet")
    found = without_values(it.sql("CALL show_invalid_parquet(path => '{path}')"), "path")
    broken.unlink()
    return found


@PAGE.step("show_file_status of a file that is there")
def _(it: Script) -> Any:
    name = max(found.name for found in Path(it.path, "p=x").glob("*.parquet"))
    text = f"CALL show_file_status(table => '{{t}}', partition => 'p=x', file => '{name}')"
    return without_values(it.sql(text), "full_path")


@PAGE.step("repair_overwrite_hoodie_props")
def _(it: Script) -> Any:
    source = Path(it.path).parent / "new.properties"
    source.write_text(Path(it.path, ".hoodie", "hoodie.properties").read_text())
    found = it.sql(
        "CALL repair_overwrite_hoodie_props(table => '{t}', new_props_file_path => '{folder}/new.properties')"
    )
    return without_values(found).where("property = 'hoodie.table.type'")
