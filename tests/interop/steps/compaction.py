"""Compaction: merge-on-read tables, inline and scheduled, its triggers and strategies, log compaction, procedures."""

from __future__ import annotations

import time
from typing import Any

from tests.interop.steps import script
from tests.interop.steps.script import COLUMNS, FIRST, KEYED, OPERATION, Page, Script
from tests.interop.steps.sql_page import sql_steps

PAGE = Page("Compaction")
MERGE_ON_READ = {**KEYED, **script.MERGE_ON_READ}
INLINE = {"hoodie.compact.inline": "true"}
AFTER = "hoodie.compact.inline.max.delta.commits"
AFTER_TWO = {AFTER: "2"}
SECONDS = "hoodie.compact.inline.max.delta.seconds"
TRIGGER = "hoodie.compact.inline.trigger.strategy"
STRATEGY = "hoodie.compaction.strategy"
PACKAGE = "org.apache.hudi.table.action.compact.strategy."
ASYNC = {**AFTER_TWO, "hoodie.datasource.compaction.async.enable": "true"}


def write(it: Script, rows: Any, **more: str) -> Any:
    """Upsert rows into the merge-on-read table, and return the instants."""
    it.save(it.frame(COLUMNS, *rows), "append", {**MERGE_ON_READ, **more})
    return it.services()


def update(it: Script, *turns: int, **more: str) -> Any:
    """Update the first row in each turn, and return the instants."""
    return [write(it, ((1, turn, f"a{turn}", "x"),), **more) for turn in turns][-1]


def begin(it: Script, table: str, **more: str) -> None:
    """Go on with a new table that has a base file in each of two partitions."""
    it.use(table)
    write(it, FIRST, **more)


def read_optimized(it: Script) -> Any:
    """Return the rows of the base files."""
    return it.load(**{"hoodie.datasource.query.type": "read_optimized"}).select("id", "ts", "v", "p")


@PAGE.step("inserts and an update of a merge-on-read table, without compaction")
def _(it: Script) -> Any:
    begin(it, "plain")
    update(it, 2)
    return it.services(files=True)


PAGE.add("read_optimized before the compaction", read_optimized)


@PAGE.step("the default: the fifth delta commit compacts")
def _(it: Script) -> Any:
    update(it, 3, 4, 5)
    return it.services(files=True)


PAGE.add("read_optimized after the compaction", read_optimized)
PAGE.add(
    "the asynchronous compaction of streams as option: a batch does not compact", lambda it: update(it, 6, 7, **ASYNC)
)


@PAGE.step("hoodie.compact.inline.max.delta.commits: an update and a delete are compacted")
def _(it: Script) -> Any:
    write(it, ((2, 9, "", "x"),), **INLINE, **AFTER_TWO, **{OPERATION: "delete"})
    return read_optimized(it)


PAGE.add(
    "inline and schedule.inline together are refused",
    lambda it: write(it, ((3, 4, "c4", "y"),), **INLINE, **{"hoodie.compact.schedule.inline": "true"}),
)


@PAGE.step("hoodie.compact.schedule.inline leaves a plan")
def _(it: Script) -> Any:
    scheduled = {"hoodie.compact.inline": "false", "hoodie.compact.schedule.inline": "true", **AFTER_TWO}
    begin(it, "scheduled", **scheduled)
    update(it, 2, **scheduled)
    return it.services(files=True)


PAGE.add("writes go on while the plan is pending", lambda it: write(it, ((1, 3, "a3", "x"), (4, 1, "d", "y"))))
PAGE.add(
    "the next inline compaction executes the plan", lambda it: write(it, ((3, 3, "c3", "y"),), **INLINE, **AFTER_TWO)
)


@PAGE.step("trigger TIME_ELAPSED, not yet due")
def _(it: Script) -> Any:
    begin(it, "triggers", **INLINE)
    return update(it, 3, **INLINE, **{TRIGGER: "TIME_ELAPSED", SECONDS: "3600"})


@PAGE.step("trigger TIME_ELAPSED, due")
def _(it: Script) -> Any:
    time.sleep(1.5)
    return update(it, 4, **INLINE, **{TRIGGER: "TIME_ELAPSED", SECONDS: "1"})


PAGE.add(
    "trigger NUM_AND_TIME, with the number only",
    lambda it: update(it, 5, **INLINE, **{TRIGGER: "NUM_AND_TIME", AFTER: "1"}),
)
PAGE.add("an unknown trigger is refused", lambda it: update(it, 7, **INLINE, **{TRIGGER: "SOMETIMES"}))


@PAGE.step("strategy LogFileSizeBasedCompactionStrategy with a threshold that no log reaches")
def _(it: Script) -> Any:
    begin(it, "strategies")
    write(it, ((1, 2, "a2", "x"), (3, 2, "c2", "y")))
    size = {"hoodie.compaction.logfile.size.threshold": "1000000000"}
    return update(it, 3, **INLINE, **AFTER_TWO, **{STRATEGY: PACKAGE + "LogFileSizeBasedCompactionStrategy"}, **size)


@PAGE.step("strategy LogFileNumBasedCompactionStrategy compacts the slices with two log files")
def _(it: Script) -> Any:
    by_number = {
        STRATEGY: PACKAGE + "LogFileNumBasedCompactionStrategy",
        "hoodie.compaction.logfile.num.threshold": "3",
    }
    update(it, 4, **INLINE, **AFTER_TWO, **by_number)
    return it.services(files=True)


@PAGE.step("strategy UnBoundedCompactionStrategy compacts the rest")
def _(it: Script) -> Any:
    update(it, 5, **INLINE, **{AFTER: "1", STRATEGY: PACKAGE + "UnBoundedCompactionStrategy"})
    return it.services(files=True)


PAGE.add(
    "an unknown strategy is refused", lambda it: update(it, 6, **INLINE, **AFTER_TWO, **{STRATEGY: "com.example.Mine"})
)


@PAGE.step("DayBasedCompactionStrategy takes the newest days")
def _(it: Script) -> Any:
    it.use("days")
    days = ("2026/01/01", "2026/01/02", "2026/01/03")
    by_day = {STRATEGY: PACKAGE + "DayBasedCompactionStrategy", "hoodie.compaction.daybased.target.partitions": "1"}
    write(it, [(turn, 1, "a", day) for turn, day in enumerate(days)])
    write(it, [(turn, 2, "b", day) for turn, day in enumerate(days)], **INLINE, **AFTER_TWO, **by_day)
    return read_optimized(it)


PAGE.steps += sql_steps(__file__)


@PAGE.step("log compaction inline")
def _(it: Script) -> Any:
    more = {"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "2"}
    begin(it, "log_compaction", **more)
    return update(it, 2, 3, 4, **more)
