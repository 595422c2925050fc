"""Cleaning, archiving, sizes of files, and dead writes, by the options of writes; savepoints that keep files."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from pyspark.sql import functions as sf

from tests.interop.steps.script import Page, Script

PAGE = Page("Cleaning, archiving, file sizes and rollbacks")
COLUMNS = "id int, ts bigint, v string, p string"
KEYED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
}
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
RETAINED = "hoodie.clean.commits.retained"
POLICY = "hoodie.clean.policy"
VERSIONS = "hoodie.clean.fileversions.retained"
INSERT = {"hoodie.datasource.write.operation": "insert"}
KEEPS = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", RETAINED: "1"}
UPDATES: Final = Counter[str]()
"""Updates by the path of the table, which give their rows a newer ordering value."""


def update(it: Script, **more: str) -> None:
    """Update the row of partition x, so that its file has a newer version."""
    UPDATES[it.path] += 1
    it.save(it.frame(COLUMNS, (1, 10 + UPDATES[it.path], "updated", "x")), "append", {**KEYED, **more})


def begin(it: Script, table: str, **more: str) -> None:
    """Go on with a new table with a row in each of two partitions."""
    it.use(table)
    it.save(it.frame(COLUMNS, (1, 1, "a", "x"), (2, 1, "b", "y")), "append", {**KEYED, **more})


def totals(it: Script) -> Any:
    """Return how many instants each action has, whether or not they are archived, and whether some are."""
    found = it.services().selectExpr("split(what, ' ')[0] AS action", "what LIKE '%archived' AS is_archived", "n")
    return found.groupBy("action").agg(sf.sum("n").alias("n"), sf.max("is_archived").alias("has_archived"))


@PAGE.step("the default retains ten commits: nothing is cleaned")
def _(it: Script) -> Any:
    begin(it, "commits")
    update(it)
    update(it)
    return it.services(files=True)


@PAGE.step("hoodie.clean.commits.retained of one")
def _(it: Script) -> Any:
    update(it, **{RETAINED: "1"})
    return it.services(files=True)


@PAGE.step("a read as of a commit whose files are gone")
def _(it: Script) -> Any:
    return it.load(**{"as.of.instant": it.instants()[0][0]}).select("id", "v")


@PAGE.step("a read as of the newest commit but one")
def _(it: Script) -> Any:
    return it.load(**{"as.of.instant": it.instants()[-2][0]}).select("id", "ts")


@PAGE.step("the old name hoodie.cleaner.commits.retained")
def _(it: Script) -> Any:
    update(it, **{"hoodie.cleaner.commits.retained": "2"})
    return it.services(files=True)


@PAGE.step("hoodie.clean.automatic off")
def _(it: Script) -> Any:
    update(it, **{"hoodie.clean.automatic": "false", RETAINED: "1"})
    update(it, **{"hoodie.clean.automatic": "false", RETAINED: "1"})
    return it.services(files=True)


@PAGE.step("hoodie.clean.trigger.max.commits: not yet due")
def _(it: Script) -> Any:
    more = {"hoodie.clean.trigger.strategy": "NUM_COMMITS", "hoodie.clean.trigger.max.commits": "9"}
    update(it, **more, **{RETAINED: "1"})
    return it.services(files=True)


@PAGE.step("the old name hoodie.clean.max.commits: due")
def _(it: Script) -> Any:
    update(it, **{"hoodie.clean.max.commits": "2", RETAINED: "1"})
    return it.services(files=True)


@PAGE.step("an unknown policy is refused")
def _(it: Script) -> None:
    update(it, **{POLICY: "KEEP_NOTHING"})


@PAGE.step("hoodie.clean.async: rows")
def _(it: Script) -> None:
    update(it, **{"hoodie.clean.async": "true", RETAINED: "1"})


@PAGE.step("an unknown trigger strategy is refused")
def _(it: Script) -> None:
    update(it, **{"hoodie.clean.trigger.strategy": "SOMETIMES"})


@PAGE.step("policy KEEP_LATEST_FILE_VERSIONS")
def _(it: Script) -> Any:
    begin(it, "versions")
    for _turn in range(3):
        update(it, **{"hoodie.clean.automatic": "false"})
    update(it, **{POLICY: "KEEP_LATEST_FILE_VERSIONS", VERSIONS: "2"})
    return it.services(files=True)


@PAGE.step("the old names hoodie.cleaner.policy and hoodie.cleaner.fileversions.retained")
def _(it: Script) -> Any:
    old = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
    update(it, **old)
    return it.services(files=True)


@PAGE.step("hoodie.clean.fileversions.retained alone chooses the policy")
def _(it: Script) -> Any:
    update(it, **{"hoodie.clean.automatic": "false"})
    update(it, **{VERSIONS: "1"})
    return it.services(files=True)


@PAGE.step("policy KEEP_LATEST_BY_HOURS retains the commits of the last hour")
def _(it: Script) -> Any:
    update(it, **{POLICY: "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "1"})
    return it.services(files=True)


@PAGE.step("insert_overwrite: the replaced files are cleaned when the commit leaves the window")
def _(it: Script) -> Any:
    more = {"hoodie.datasource.write.operation": "insert_overwrite", RETAINED: "1"}
    it.save(it.frame(COLUMNS, (2, 5, "over", "y")), "append", {**KEYED, **more})
    update(it, **{RETAINED: "1"})
    update(it, **{RETAINED: "1"})
    return it.services(files=True)


@PAGE.step("a savepoint keeps its files")
def _(it: Script) -> Any:
    begin(it, "saved")
    update(it)
    it.sql("CALL create_savepoint(path => '{path}')").collect()
    update(it, **{RETAINED: "1"})
    update(it, **{RETAINED: "1"})
    update(it, **{RETAINED: "1"})
    return it.services(files=True)


@PAGE.step("without the savepoint they are cleaned")
def _(it: Script) -> Any:
    it.sql("CALL delete_savepoint(path => '{path}')").collect()
    update(it, **{RETAINED: "1"})
    return it.services(files=True)


@PAGE.step("merge-on-read: a clean after compactions")
def _(it: Script) -> Any:
    compacts = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    begin(it, "mor", **MERGE_ON_READ)
    for _turn in range(3):
        update(it, **MERGE_ON_READ, **compacts, **{RETAINED: "1"})
    return it.services(files=True)


@PAGE.step("archiving: hoodie.keep.min.commits and hoodie.keep.max.commits")
def _(it: Script) -> Any:
    often = {"hoodie.metadata.compact.max.delta.commits": "1"}
    begin(it, "archived", **often)
    for _turn in range(7):
        update(it, **KEEPS, **often)
    return totals(it)


@PAGE.step("an incremental query across archived commits")
def _(it: Script) -> Any:
    options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}
    return it.load(**options).select("id", "v")


@PAGE.step("hoodie.archive.automatic off")
def _(it: Script) -> Any:
    it.use("not_archived")
    for _turn in range(4):
        update(it, **KEEPS, **{"hoodie.archive.automatic": "false"})
    return it.services()


@PAGE.step("hoodie.keep.max.commits below hoodie.keep.min.commits is refused")
def _(it: Script) -> None:
    update(it, **{"hoodie.keep.min.commits": "5", "hoodie.keep.max.commits": "4", RETAINED: "1"})


@PAGE.step("inserts go to the small file of the partition")
def _(it: Script) -> Any:
    begin(it, "sizes")
    it.save(it.frame(COLUMNS, (3, 1, "c", "x")), "append", {**KEYED, **INSERT})
    return it.services(files=True)


@PAGE.step("hoodie.parquet.small.file.limit of zero: inserts go to a new file")
def _(it: Script) -> Any:
    more = {**INSERT, "hoodie.parquet.small.file.limit": "0"}
    it.save(it.frame(COLUMNS, (4, 1, "d", "x")), "append", {**KEYED, **more})
    return it.services(files=True)


@PAGE.step("upserts of new keys go to a small file too")
def _(it: Script) -> Any:
    it.save(it.frame(COLUMNS, (5, 1, "e", "y")), "append", KEYED)
    return it.services(files=True)


@PAGE.step("merge-on-read: new keys go to the small base file")
def _(it: Script) -> Any:
    more = {**MERGE_ON_READ, "hoodie.index.type": "SIMPLE"}
    begin(it, "sizes_mor", **more)
    it.save(it.frame(COLUMNS, (3, 1, "c", "x")), "append", {**KEYED, **more})
    return it.services(files=True)


@PAGE.step("a write that fails")
def _(it: Script) -> None:
    begin(it, "failed")
    fails = sf.udf(lambda _: 1 // 0, "bigint")
    it.save(it.frame(COLUMNS, (9, 1, "x", "x")).withColumn("ts", fails("ts")), "append", KEYED)


@PAGE.step("the next write takes it back")
def _(it: Script) -> None:
    update(it, **{"hoodie.clean.failed.writes.policy": "EAGER"})


@PAGE.step("CALL run_clean")
def _(it: Script) -> Any:
    it.use("cleaning_sql")
    it.sql("CREATE TABLE {t} (id int, v string) USING hudi TBLPROPERTIES (primaryKey = 'id') LOCATION '{path}'")
    it.sql("INSERT INTO {t} VALUES (1, 'a')")
    it.sql("UPDATE {t} SET v = 'b'")
    it.sql("UPDATE {t} SET v = 'c'")
    it.sql("CALL run_clean(table => '{t}', retain_commits => 1)").collect()
    return it.services(files=True)


@PAGE.step("SET hoodie.clean.commits.retained")
def _(it: Script) -> Any:
    it.sql("SET hoodie.clean.commits.retained = 1")
    it.sql("UPDATE {t} SET v = 'd'")
    it.sql("RESET hoodie.clean.commits.retained")
    return it.services(files=True)


@PAGE.step("drop the table of SQL")
def _(it: Script) -> None:
    it.sql("DROP TABLE {t}")
