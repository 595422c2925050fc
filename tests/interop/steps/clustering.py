"""Clustering: inline and scheduled, plans, sort columns and layouts, choices of partitions, the procedure."""

from __future__ import annotations

from typing import Any

from tests.interop.steps.script import COLUMNS, KEYED, MERGE_ON_READ, OPERATION, Page, Script
from tests.interop.steps.sql_page import sql_steps

PAGE = Page("Clustering")
SEPARATE = {OPERATION: "insert", "hoodie.parquet.small.file.limit": "0"}
PLAN = "hoodie.clustering.plan.strategy"
STRATEGIES = "org.apache.hudi.client.clustering.plan.strategy."
LAYOUT = "hoodie.layout.optimize.strategy"
MODE = "hoodie.clustering.plan.partition.filter.mode"
NO_ROLLBACKS = "what NOT LIKE 'rollback%'"
INLINE = {"hoodie.clustering.inline": "true"}
NOW = {**INLINE, "hoodie.clustering.inline.max.commits": "1"}
ALL = {"hoodie.table.services.incremental.enabled": "false"}
SORTED = {f"{PLAN}.sort.columns": "v"}


def insert(it: Script, *rows: Any, **more: str) -> Any:
    """Insert rows into new files, and return what services left."""
    it.save(it.frame(COLUMNS, *rows), "append", {**KEYED, **SEPARATE, **more})
    return it.services(files=True)


def update(it: Script, **more: str) -> Any:
    """Update a row, and return what services left."""
    it.save(it.frame(COLUMNS, (1, 2, "u", "x")), "append", {**KEYED, **more})
    return it.services(files=True)


def two_files(it: Script, table: str, *partitions: str) -> Any:
    """Go on with a new table that has two files in each partition, and no clustering."""
    it.use(table)
    insert(it, *((10 * turn + 1, 1, "c", path) for turn, path in enumerate(partitions)))
    return insert(it, *((10 * turn + 2, 1, "a", path) for turn, path in enumerate(partitions)))


PAGE.add("inserts into new files", lambda it: two_files(it, "inline", "x", "y"))
PAGE.add(
    "hoodie.clustering.inline with inline.max.commits: not yet due",
    lambda it: insert(it, (3, 1, "b", "x"), **INLINE, **SORTED),
)
PAGE.add(
    "hoodie.clustering.inline with the default of four commits: due",
    lambda it: insert(it, (13, 1, "b", "y"), **INLINE, **SORTED),
)


@PAGE.step("an incremental query does not return the rows that were clustered")
def _(it: Script) -> Any:
    begin = it.instants()[2][1]
    options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
    return it.load(**options).select("id", "v", "p")


PAGE.add("an update of a row that was clustered", update)


@PAGE.step("without sort columns: files become one")
def _(it: Script) -> Any:
    two_files(it, "unsorted", "x")
    return insert(it, (3, 1, "b", "x"), **NOW)


PAGE.add("one file alone, without sort columns", lambda it: insert(it, (1, 1, "b", "x"), **NOW), table="alone")


@PAGE.step("plan strategy SparkSizeBasedClusteringPlanStrategy, z-order of two columns")
def _(it: Script) -> Any:
    two_files(it, "zorder", "x")
    strategy = {f"{PLAN}.class": STRATEGIES + "SparkSizeBasedClusteringPlanStrategy"}
    return insert(it, (3, 1, "b", "x"), **NOW, **strategy, **{f"{PLAN}.sort.columns": "id,v", LAYOUT: "z-order"})


@PAGE.step("hilbert order of two columns")
def _(it: Script) -> Any:
    insert(it, (4, 1, "d", "x"))
    return insert(it, (5, 1, "e", "x"), **NOW, **{f"{PLAN}.sort.columns": "id,v", LAYOUT: "hilbert"})


PAGE.add(
    "an unknown plan strategy is refused",
    lambda it: insert(it, (8, 1, "h", "x"), **NOW, **{f"{PLAN}.class": "com.example.Mine"}),
)
PAGE.add("an unknown layout is refused", lambda it: insert(it, (7, 1, "g", "x"), **NOW, **SORTED, **{LAYOUT: "spiral"}))


@PAGE.step("a sort column that the table lacks")
def _(it: Script) -> None:
    insert(it, (6, 1, "f", "x"), **NOW, **{f"{PLAN}.sort.columns": "absent"})


@PAGE.step("partition filter mode RECENT_DAYS")
def _(it: Script) -> Any:
    two_files(it, "days", "2026-01-01", "2026-01-02", "2026-01-03")
    recent = {MODE: "RECENT_DAYS", f"{PLAN}.daybased.lookback.partitions": "1"}
    return insert(it, (100, 1, "b", "2026-01-01"), **NOW, **recent)


@PAGE.step("partition filter mode SELECTED_PARTITIONS")
def _(it: Script) -> Any:
    bounds = dict.fromkeys((f"{PLAN}.cluster.begin.partition", f"{PLAN}.cluster.end.partition"), "2026-01-01")
    return insert(it, (101, 1, "b", "2026-01-02"), **NOW, **ALL, **{MODE: "SELECTED_PARTITIONS"}, **bounds)


PAGE.add(
    "partitions by a pattern",
    lambda it: insert(it, (102, 1, "b", "2026-01-03"), **NOW, **ALL, **{f"{PLAN}.partition.regex.pattern": ".*-02"}),
)


@PAGE.step("plan strategy SparkRecentDaysClusteringPlanStrategy")
def _(it: Script) -> Any:
    strategy = {f"{PLAN}.class": STRATEGIES + "SparkRecentDaysClusteringPlanStrategy"}
    return insert(
        it, (103, 1, "b", "2026-01-02"), **NOW, **ALL, **strategy, **{f"{PLAN}.daybased.lookback.partitions": "1"}
    )


@PAGE.step("small.file.limit: no file is small")
def _(it: Script) -> Any:
    two_files(it, "large", "x")
    return insert(it, (3, 1, "b", "x"), **NOW, **SORTED, **{f"{PLAN}.small.file.limit": "1"})


@PAGE.step("hoodie.clustering.schedule.inline leaves a plan")
def _(it: Script) -> Any:
    scheduled = {"hoodie.clustering.schedule.inline": "true", "hoodie.clustering.async.max.commits": "1"}
    return insert(it, (4, 1, "d", "x"), **scheduled, **SORTED)


PAGE.add("inserts go on while the plan is pending", lambda it: insert(it, (5, 1, "e", "x")))
PAGE.add("an update of a file group of the pending plan is refused", update)
PAGE.add(
    "the next inline clustering executes the plan",
    lambda it: insert(it, (6, 1, "f", "x"), **INLINE, **SORTED).where(NO_ROLLBACKS),
)


@PAGE.step("hoodie.clustering.async.enabled in a batch")
def _(it: Script) -> Any:
    more = {"hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "1"}
    insert(it, (7, 1, "g", "x"), **more)
    return it.services().where(NO_ROLLBACKS)


@PAGE.step("merge-on-read: file slices with log files are clustered")
def _(it: Script) -> Any:
    it.use("mor")
    insert(it, (1, 1, "c", "x"), **MERGE_ON_READ)
    update(it, **MERGE_ON_READ)
    return insert(it, (2, 1, "a", "x"), **MERGE_ON_READ, **NOW, **SORTED)


PAGE.steps += sql_steps(__file__)
