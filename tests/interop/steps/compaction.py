"""Compaction: merge-on-read tables, inline and scheduled, its triggers and strategies, log compaction, procedures."""

from __future__ import annotations

import time
from typing import Any

from tests.interop.steps.script import Page, Script

PAGE = Page("Compaction")
COLUMNS = "id int, ts bigint, v string, p string"
MERGE_ON_READ = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}
FIRST = ((1, 1, "a", "x"), (2, 1, "b", "x"), (3, 1, "c", "y"))
INLINE = {"hoodie.compact.inline": "true"}
AFTER_TWO = {"hoodie.compact.inline.max.delta.commits": "2"}
TRIGGER = "hoodie.compact.inline.trigger.strategy"
DUE = "hoodie.compact.inline.max.delta.commits=1"
STRATEGY = "hoodie.compaction.strategy"
PACKAGE = "org.apache.hudi.table.action.compact.strategy."


def write(it: Script, rows: Any, **more: str) -> None:
    """Upsert rows into the merge-on-read table."""
    it.save(it.frame(COLUMNS, *rows), "append", {**MERGE_ON_READ, **more})


def begin(it: Script, table: str, **more: str) -> None:
    """Go on with a new table that has a base file in each of two partitions."""
    it.use(table)
    write(it, FIRST, **more)


def read_optimized(it: Script) -> Any:
    """Return the rows of the base files."""
    frame = it.load(**{"hoodie.datasource.query.type": "read_optimized"})
    return frame.select("id", "ts", "v", "p")


@PAGE.step("inserts and an update of a merge-on-read table, without compaction")
def _(it: Script) -> Any:
    begin(it, "plain")
    write(it, ((1, 2, "a2", "x"),))
    return it.services(files=True)


@PAGE.step("read_optimized before the compaction")
def _(it: Script) -> Any:
    return read_optimized(it)


@PAGE.step("the default: the fifth delta commit compacts")
def _(it: Script) -> Any:
    for turn in (3, 4, 5):
        write(it, ((1, turn, f"a{turn}", "x"),))
    return it.services(files=True)


@PAGE.step("read_optimized after the compaction")
def _(it: Script) -> Any:
    return read_optimized(it)


@PAGE.step("the asynchronous compaction of streams as option: a batch does not compact")
def _(it: Script) -> Any:
    write(it, ((1, 6, "a6", "x"),), **{**AFTER_TWO, "hoodie.datasource.compaction.async.enable": "true"})
    write(it, ((1, 7, "a7", "x"),), **{**AFTER_TWO, "hoodie.datasource.compaction.async.enable": "true"})
    return it.services()


@PAGE.step("hoodie.compact.inline.max.delta.commits: an update and a delete are compacted")
def _(it: Script) -> Any:
    write(it, ((2, 9, "", "x"),), **INLINE, **AFTER_TWO, **{"hoodie.datasource.write.operation": "delete"})
    return read_optimized(it)


@PAGE.step("inline and schedule.inline together are refused")
def _(it: Script) -> None:
    write(it, ((3, 4, "c4", "y"),), **INLINE, **{"hoodie.compact.schedule.inline": "true"})


@PAGE.step("hoodie.compact.schedule.inline leaves a plan")
def _(it: Script) -> Any:
    scheduled = {"hoodie.compact.inline": "false", "hoodie.compact.schedule.inline": "true", **AFTER_TWO}
    begin(it, "scheduled", **scheduled)
    write(it, ((1, 2, "a2", "x"),), **scheduled)
    return it.services(files=True)


@PAGE.step("writes go on while the plan is pending")
def _(it: Script) -> Any:
    write(it, ((1, 3, "a3", "x"), (4, 1, "d", "y")))
    return it.services()


@PAGE.step("the next inline compaction executes the plan")
def _(it: Script) -> Any:
    write(it, ((3, 3, "c3", "y"),), **INLINE, **AFTER_TWO)
    return it.services()


@PAGE.step("trigger TIME_ELAPSED, not yet due")
def _(it: Script) -> Any:
    begin(it, "triggers", **INLINE)
    more = {**INLINE, TRIGGER: "TIME_ELAPSED", "hoodie.compact.inline.max.delta.seconds": "3600"}
    write(it, ((1, 3, "a3", "x"),), **more)
    return it.services()


@PAGE.step("trigger TIME_ELAPSED, due")
def _(it: Script) -> Any:
    time.sleep(1.5)
    more = {**INLINE, TRIGGER: "TIME_ELAPSED", "hoodie.compact.inline.max.delta.seconds": "1"}
    write(it, ((1, 4, "a4", "x"),), **more)
    return it.services()


@PAGE.step("trigger NUM_AND_TIME, with the number only")
def _(it: Script) -> Any:
    more = {**INLINE, TRIGGER: "NUM_AND_TIME", "hoodie.compact.inline.max.delta.commits": "1"}
    write(it, ((1, 5, "a5", "x"),), **more)
    return it.services()


@PAGE.step("an unknown trigger is refused")
def _(it: Script) -> None:
    write(it, ((1, 7, "a7", "x"),), **INLINE, **{TRIGGER: "SOMETIMES"})


@PAGE.step("strategy LogFileSizeBasedCompactionStrategy with a threshold that no log reaches")
def _(it: Script) -> Any:
    begin(it, "strategies")
    write(it, ((1, 2, "a2", "x"), (3, 2, "c2", "y")))
    size = {"hoodie.compaction.logfile.size.threshold": "1000000000"}
    more = {**INLINE, **AFTER_TWO, STRATEGY: PACKAGE + "LogFileSizeBasedCompactionStrategy", **size}
    write(it, ((1, 3, "a3", "x"),), **more)
    return it.services()


@PAGE.step("strategy LogFileNumBasedCompactionStrategy compacts the slices with two log files")
def _(it: Script) -> Any:
    number = {"hoodie.compaction.logfile.num.threshold": "3"}
    more = {**INLINE, **AFTER_TWO, STRATEGY: PACKAGE + "LogFileNumBasedCompactionStrategy", **number}
    write(it, ((1, 4, "a4", "x"),), **more)
    return it.services(files=True)


@PAGE.step("strategy UnBoundedCompactionStrategy compacts the rest")
def _(it: Script) -> Any:
    more = {**INLINE, "hoodie.compact.inline.max.delta.commits": "1", STRATEGY: PACKAGE + "UnBoundedCompactionStrategy"}
    write(it, ((1, 5, "a5", "x"),), **more)
    return it.services(files=True)


@PAGE.step("an unknown strategy is refused")
def _(it: Script) -> None:
    write(it, ((1, 6, "a6", "x"),), **INLINE, **AFTER_TWO, **{STRATEGY: "com.example.Mine"})


@PAGE.step("DayBasedCompactionStrategy takes the newest days")
def _(it: Script) -> Any:
    it.use("days")
    days = ("2026/01/01", "2026/01/02", "2026/01/03")
    write(it, [(turn, 1, "a", day) for turn, day in enumerate(days)])
    more = {
        **INLINE,
        **AFTER_TWO,
        STRATEGY: PACKAGE + "DayBasedCompactionStrategy",
        "hoodie.compaction.daybased.target.partitions": "1",
    }
    write(it, [(turn, 2, "b", day) for turn, day in enumerate(days)], **more)
    return read_optimized(it)


@PAGE.step("SQL: a merge-on-read table with inline compaction as table property")
def _(it: Script) -> Any:
    it.use("compaction_sql")
    it.sql(
        "CREATE TABLE {t} (id int, v string, ts bigint) USING hudi TBLPROPERTIES (type = 'mor', primaryKey = 'id', "
        "preCombineField = 'ts') LOCATION '{path}'"
    )
    it.sql("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1)")
    it.sql("UPDATE {t} SET v = 'u', ts = 2 WHERE id = 1")
    return it.services(files=True)


@PAGE.step("SQL: SET hoodie.compact.inline")
def _(it: Script) -> Any:
    it.sql("SET hoodie.compact.inline = true")
    it.sql("SET hoodie.compact.inline.max.delta.commits = 1")
    it.sql("UPDATE {t} SET v = 'w', ts = 3 WHERE id = 2")
    it.sql("RESET hoodie.compact.inline")
    it.sql("RESET hoodie.compact.inline.max.delta.commits")
    return it.services(files=True)


@PAGE.step("CALL run_compaction with op schedule")
def _(it: Script) -> Any:
    it.sql("UPDATE {t} SET v = 'x', ts = 4 WHERE id = 2")
    it.sql(f"CALL run_compaction(op => 'schedule', table => '{{t}}', options => '{DUE}')").collect()
    return it.services()


@PAGE.step("CALL run_compaction with op run executes it")
def _(it: Script) -> Any:
    it.sql("CALL run_compaction(op => 'run', table => '{t}')").collect()
    return it.services(files=True)


@PAGE.step("CALL run_compaction with op scheduleAndExecute")
def _(it: Script) -> Any:
    it.sql("UPDATE {t} SET v = 'y', ts = 5 WHERE id = 1")
    it.sql(f"CALL run_compaction(op => 'scheduleAndExecute', table => '{{t}}', options => '{DUE}')").collect()
    return it.services(files=True)


@PAGE.step("CALL run_compaction with an unknown op is refused")
def _(it: Script) -> None:
    it.sql("CALL run_compaction(op => 'sometimes', table => '{t}')").collect()


@PAGE.step("log compaction inline")
def _(it: Script) -> Any:
    more = {"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "2"}
    begin(it, "log_compaction", **more)
    for turn in (2, 3, 4):
        write(it, ((1, turn, f"a{turn}", "x"),), **more)
    return it.services()


@PAGE.step("drop the table of SQL")
def _(it: Script) -> None:
    it.use("compaction_sql")
    it.sql("DROP TABLE {t}")
