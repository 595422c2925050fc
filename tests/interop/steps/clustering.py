"""Clustering: inline and scheduled, plans, sort columns and layouts, choices of partitions, the procedure."""

from __future__ import annotations

from typing import Any

from tests.interop.steps.script import Page, Script

PAGE = Page("Clustering")
COLUMNS = "id int, ts bigint, v string, p string"
KEYED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
}
SEPARATE = {"hoodie.datasource.write.operation": "insert", "hoodie.parquet.small.file.limit": "0"}
PLAN = "hoodie.clustering.plan.strategy"
NO_ROLLBACKS = "what NOT LIKE 'rollback%'"
MODE = "hoodie.clustering.plan.partition.filter.mode"
INLINE = {"hoodie.clustering.inline": "true"}
NOW = {**INLINE, "hoodie.clustering.inline.max.commits": "1"}
ALL = {"hoodie.table.services.incremental.enabled": "false"}
SORTED = {f"{PLAN}.sort.columns": "v"}


def insert(it: Script, rows: Any, **more: str) -> None:
    """Insert rows into new files."""
    it.save(it.frame(COLUMNS, *rows), "append", {**KEYED, **SEPARATE, **more})


def two_files(it: Script, table: str, *partitions: str) -> None:
    """Go on with a new table that has two files in each partition, and no clustering."""
    it.use(table)
    insert(it, [(10 * turn + 1, 1, "c", path) for turn, path in enumerate(partitions)])
    insert(it, [(10 * turn + 2, 1, "a", path) for turn, path in enumerate(partitions)])


@PAGE.step("inserts into new files")
def _(it: Script) -> Any:
    two_files(it, "inline", "x", "y")
    return it.services(files=True)


@PAGE.step("hoodie.clustering.inline with inline.max.commits: not yet due")
def _(it: Script) -> Any:
    insert(it, ((3, 1, "b", "x"),), **INLINE, **SORTED)
    return it.services(files=True)


@PAGE.step("hoodie.clustering.inline with the default of four commits: due")
def _(it: Script) -> Any:
    insert(it, ((13, 1, "b", "y"),), **INLINE, **SORTED)
    return it.services(files=True)


@PAGE.step("an incremental query does not return the rows that were clustered")
def _(it: Script) -> Any:
    begin = it.instants()[2][1]
    options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin}
    return it.load(**options).select("id", "v", "p")


@PAGE.step("an update of a row that was clustered")
def _(it: Script) -> Any:
    it.save(it.frame(COLUMNS, (1, 2, "u", "x")), "append", KEYED)
    return it.services(files=True)


@PAGE.step("without sort columns: files become one")
def _(it: Script) -> Any:
    two_files(it, "unsorted", "x")
    insert(it, ((3, 1, "b", "x"),), **NOW)
    return it.services(files=True)


@PAGE.step("one file alone, without sort columns")
def _(it: Script) -> Any:
    it.use("alone")
    insert(it, ((1, 1, "b", "x"),), **NOW)
    return it.services(files=True)


@PAGE.step("plan strategy SparkSizeBasedClusteringPlanStrategy, z-order of two columns")
def _(it: Script) -> Any:
    two_files(it, "zorder", "x")
    strategy = {f"{PLAN}.class": "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy"}
    order = {f"{PLAN}.sort.columns": "id,v", "hoodie.layout.optimize.strategy": "z-order"}
    insert(it, ((3, 1, "b", "x"),), **NOW, **strategy, **order)
    return it.services(files=True)


@PAGE.step("hilbert order of two columns")
def _(it: Script) -> Any:
    insert(it, ((4, 1, "d", "x"),))
    order = {f"{PLAN}.sort.columns": "id,v", "hoodie.layout.optimize.strategy": "hilbert"}
    insert(it, ((5, 1, "e", "x"),), **NOW, **order)
    return it.services(files=True)


@PAGE.step("an unknown plan strategy is refused")
def _(it: Script) -> None:
    insert(it, ((8, 1, "h", "x"),), **NOW, **{f"{PLAN}.class": "com.example.Mine"})


@PAGE.step("an unknown layout is refused")
def _(it: Script) -> None:
    insert(it, ((7, 1, "g", "x"),), **NOW, **SORTED, **{"hoodie.layout.optimize.strategy": "spiral"})


@PAGE.step("a sort column that the table lacks")
def _(it: Script) -> None:
    insert(it, ((6, 1, "f", "x"),), **NOW, **{f"{PLAN}.sort.columns": "absent"})


@PAGE.step("partition filter mode RECENT_DAYS")
def _(it: Script) -> Any:
    two_files(it, "days", "2026-01-01", "2026-01-02", "2026-01-03")
    recent = {MODE: "RECENT_DAYS", f"{PLAN}.daybased.lookback.partitions": "1"}
    insert(it, ((100, 1, "b", "2026-01-01"),), **NOW, **recent)
    return it.services(files=True)


@PAGE.step("partition filter mode SELECTED_PARTITIONS")
def _(it: Script) -> Any:
    chosen = {
        MODE: "SELECTED_PARTITIONS",
        f"{PLAN}.cluster.begin.partition": "2026-01-01",
        f"{PLAN}.cluster.end.partition": "2026-01-01",
    }
    insert(it, ((101, 1, "b", "2026-01-02"),), **NOW, **ALL, **chosen)
    return it.services(files=True)


@PAGE.step("partitions by a pattern")
def _(it: Script) -> Any:
    insert(it, ((102, 1, "b", "2026-01-03"),), **NOW, **ALL, **{f"{PLAN}.partition.regex.pattern": ".*-02"})
    return it.services(files=True)


@PAGE.step("plan strategy SparkRecentDaysClusteringPlanStrategy")
def _(it: Script) -> Any:
    strategy = "org.apache.hudi.client.clustering.plan.strategy.SparkRecentDaysClusteringPlanStrategy"
    recent = {f"{PLAN}.class": strategy, f"{PLAN}.daybased.lookback.partitions": "1"}
    insert(it, ((103, 1, "b", "2026-01-02"),), **NOW, **ALL, **recent)
    return it.services(files=True)


@PAGE.step("small.file.limit: no file is small")
def _(it: Script) -> Any:
    two_files(it, "large", "x")
    insert(it, ((3, 1, "b", "x"),), **NOW, **SORTED, **{f"{PLAN}.small.file.limit": "1"})
    return it.services(files=True)


@PAGE.step("hoodie.clustering.schedule.inline leaves a plan")
def _(it: Script) -> Any:
    scheduled = {"hoodie.clustering.schedule.inline": "true", "hoodie.clustering.async.max.commits": "1"}
    insert(it, ((4, 1, "d", "x"),), **scheduled, **SORTED)
    return it.services(files=True)


@PAGE.step("inserts go on while the plan is pending")
def _(it: Script) -> Any:
    insert(it, ((5, 1, "e", "x"),))
    return it.services(files=True)


@PAGE.step("an update of a file group of the pending plan is refused")
def _(it: Script) -> None:
    it.save(it.frame(COLUMNS, (1, 2, "u", "x")), "append", KEYED)


@PAGE.step("the next inline clustering executes the plan")
def _(it: Script) -> Any:
    insert(it, ((6, 1, "f", "x"),), **INLINE, **SORTED)
    return it.services(files=True).where(NO_ROLLBACKS)


@PAGE.step("hoodie.clustering.async.enabled in a batch")
def _(it: Script) -> Any:
    more = {"hoodie.clustering.async.enabled": "true", "hoodie.clustering.async.max.commits": "1"}
    insert(it, ((7, 1, "g", "x"),), **more)
    return it.services().where(NO_ROLLBACKS)


@PAGE.step("merge-on-read: file slices with log files are clustered")
def _(it: Script) -> Any:
    it.use("mor")
    more = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    insert(it, ((1, 1, "c", "x"),), **more)
    it.save(it.frame(COLUMNS, (1, 2, "u", "x")), "append", {**KEYED, **more})
    insert(it, ((2, 1, "a", "x"),), **more, **NOW, **SORTED)
    return it.services(files=True)


@PAGE.step("SQL: CALL run_clustering with an order")
def _(it: Script) -> Any:
    it.use("clustering_sql")
    it.sql(
        "CREATE TABLE {t} (id int, v string, p string) USING hudi TBLPROPERTIES (primaryKey = 'id') "
        "PARTITIONED BY (p) LOCATION '{path}'"
    )
    it.sql("SET hoodie.parquet.small.file.limit = 0")
    it.sql("INSERT INTO {t} VALUES (1, 'c', 'x'), (2, 'b', 'y')")
    it.sql("INSERT INTO {t} VALUES (3, 'a', 'x'), (4, 'd', 'y')")
    it.sql("RESET hoodie.parquet.small.file.limit")
    it.sql("CALL run_clustering(table => '{t}', order => 'v')").collect()
    return it.services(files=True)


@PAGE.step("CALL run_clustering with op schedule, then execute")
def _(it: Script) -> Any:
    it.sql("SET hoodie.parquet.small.file.limit = 0")
    it.sql("INSERT INTO {t} VALUES (5, 'a', 'x'), (6, 'd', 'y')")
    it.sql("RESET hoodie.parquet.small.file.limit")
    it.sql("CALL run_clustering(table => '{t}', op => 'schedule', order => 'id')").collect()
    it.sql("CALL run_clustering(table => '{t}', op => 'execute')").collect()
    return it.services(files=True)


@PAGE.step("drop the table of SQL")
def _(it: Script) -> None:
    it.sql("DROP TABLE {t}")
