"""Cleaning, archiving, sizes of files, and dead writes, by the options of writes; savepoints that keep files."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from pyspark.sql import functions as sf

from tests.interop.steps.script import COLUMNS, KEYED, MERGE_ON_READ, OPERATION, Page, Script
from tests.interop.steps.sql_page import sql_steps

PAGE = Page("Cleaning, archiving, file sizes and rollbacks")
RETAINED = "hoodie.clean.commits.retained"
ONE = {RETAINED: "1"}
MANUAL = {"hoodie.clean.automatic": "false"}
POLICY = "hoodie.clean.policy"
VERSIONS = "hoodie.clean.fileversions.retained"
INSERT = {OPERATION: "insert"}
KEEPS = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3", **ONE}
UPDATES: Final = Counter[str]()
"""Updates by the path of the table, which give their rows a newer ordering value."""


def save(it: Script, *rows: Any, **more: str) -> Any:
    """Append rows, and return what services left."""
    it.save(it.frame(COLUMNS, *rows), "append", {**KEYED, **more})
    return it.services(files=True)


def update(it: Script, times: int = 1, /, **more: str) -> Any:
    """Update the row of partition x, so that its file has a newer version, and return what services left."""
    for _ in range(times):
        UPDATES[it.path] += 1
        found = save(it, (1, 10 + UPDATES[it.path], "updated", "x"), **more)
    return found


def begin(it: Script, table: str, **more: str) -> None:
    """Go on with a new table with a row in each of two partitions."""
    it.use(table)
    save(it, (1, 1, "a", "x"), (2, 1, "b", "y"), **more)


def totals(it: Script) -> Any:
    """Return how many instants each action has, whether or not they are archived, and whether some are."""
    found = it.services().selectExpr("split(what, ' ')[0] AS action", "what LIKE '%archived' AS is_archived", "n")
    return found.groupBy("action").agg(sf.sum("n").alias("n"), sf.max("is_archived").alias("has_archived"))


@PAGE.step("the default retains ten commits: nothing is cleaned")
def _(it: Script) -> Any:
    begin(it, "commits")
    return update(it, 2)


PAGE.add("hoodie.clean.commits.retained of one", lambda it: update(it, **ONE))
PAGE.add(
    "a read as of a commit whose files are gone",
    lambda it: it.load(**{"as.of.instant": it.instants()[0][0]}).select("id", "v"),
)
PAGE.add(
    "a read as of the newest commit but one",
    lambda it: it.load(**{"as.of.instant": it.instants()[-2][0]}).select("id", "ts"),
)
PAGE.add(
    "the old name hoodie.cleaner.commits.retained", lambda it: update(it, **{"hoodie.cleaner.commits.retained": "2"})
)
PAGE.add("hoodie.clean.automatic off", lambda it: update(it, 2, **MANUAL, **ONE))


@PAGE.step("hoodie.clean.trigger.max.commits: not yet due")
def _(it: Script) -> Any:
    more = {"hoodie.clean.trigger.strategy": "NUM_COMMITS", "hoodie.clean.trigger.max.commits": "9"}
    return update(it, **more, **ONE)


PAGE.add(
    "the old name hoodie.clean.max.commits: due", lambda it: update(it, **{"hoodie.clean.max.commits": "2"}, **ONE)
)
PAGE.add("an unknown policy is refused", lambda it: update(it, **{POLICY: "KEEP_NOTHING"}))


@PAGE.step("hoodie.clean.async: rows")
def _(it: Script) -> None:
    update(it, **{"hoodie.clean.async": "true"}, **ONE)


PAGE.add(
    "an unknown trigger strategy is refused", lambda it: update(it, **{"hoodie.clean.trigger.strategy": "SOMETIMES"})
)


@PAGE.step("policy KEEP_LATEST_FILE_VERSIONS")
def _(it: Script) -> Any:
    begin(it, "versions")
    update(it, 3, **MANUAL)
    return update(it, **{POLICY: "KEEP_LATEST_FILE_VERSIONS", VERSIONS: "2"})


@PAGE.step("the old names hoodie.cleaner.policy and hoodie.cleaner.fileversions.retained")
def _(it: Script) -> Any:
    old = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": "1"}
    return update(it, **old)


@PAGE.step("hoodie.clean.fileversions.retained alone chooses the policy")
def _(it: Script) -> Any:
    update(it, **MANUAL)
    return update(it, **{VERSIONS: "1"})


PAGE.add(
    "policy KEEP_LATEST_BY_HOURS retains the commits of the last hour",
    lambda it: update(it, **{POLICY: "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": "1"}),
)


@PAGE.step("insert_overwrite: the replaced files are cleaned when the commit leaves the window")
def _(it: Script) -> Any:
    save(it, (2, 5, "over", "y"), **{OPERATION: "insert_overwrite"}, **ONE)
    return update(it, 2, **ONE)


@PAGE.step("a savepoint keeps its files")
def _(it: Script) -> Any:
    begin(it, "saved")
    update(it)
    it.sql("CALL create_savepoint(path => '{path}')").collect()
    return update(it, 3, **ONE)


@PAGE.step("without the savepoint they are cleaned")
def _(it: Script) -> Any:
    it.sql("CALL delete_savepoint(path => '{path}')").collect()
    return update(it, **ONE)


@PAGE.step("merge-on-read: a clean after compactions")
def _(it: Script) -> Any:
    compacts = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    begin(it, "mor", **MERGE_ON_READ)
    return update(it, 3, **MERGE_ON_READ, **compacts, **ONE)


@PAGE.step("archiving: hoodie.keep.min.commits and hoodie.keep.max.commits")
def _(it: Script) -> Any:
    often = {"hoodie.metadata.compact.max.delta.commits": "1"}
    begin(it, "archived", **often)
    update(it, 7, **KEEPS, **often)
    return totals(it)


@PAGE.step("an incremental query across archived commits")
def _(it: Script) -> Any:
    options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}
    return it.load(**options).select("id", "v")


@PAGE.step("hoodie.archive.automatic off")
def _(it: Script) -> Any:
    it.use("not_archived")
    update(it, 4, **KEEPS, **{"hoodie.archive.automatic": "false"})
    return it.services()


PAGE.add(
    "hoodie.keep.max.commits below hoodie.keep.min.commits is refused",
    lambda it: update(it, **{"hoodie.keep.min.commits": "5", "hoodie.keep.max.commits": "4"}, **ONE),
)


@PAGE.step("inserts go to the small file of the partition")
def _(it: Script) -> Any:
    begin(it, "sizes")
    return save(it, (3, 1, "c", "x"), **INSERT)


PAGE.add(
    "hoodie.parquet.small.file.limit of zero: inserts go to a new file",
    lambda it: save(it, (4, 1, "d", "x"), **INSERT, **{"hoodie.parquet.small.file.limit": "0"}),
)
PAGE.add("upserts of new keys go to a small file too", lambda it: save(it, (5, 1, "e", "y")))


@PAGE.step("merge-on-read: new keys go to the small base file")
def _(it: Script) -> Any:
    more = {**MERGE_ON_READ, "hoodie.index.type": "SIMPLE"}
    begin(it, "sizes_mor", **more)
    return save(it, (3, 1, "c", "x"), **more)


@PAGE.step("a write that fails")
def _(it: Script) -> None:
    begin(it, "failed")
    fails = sf.udf(lambda _: 1 // 0, "bigint")
    it.save(it.frame(COLUMNS, (9, 1, "x", "x")).withColumn("ts", fails("ts")), "append", KEYED)


@PAGE.step("the next write takes it back")
def _(it: Script) -> None:
    update(it, **{"hoodie.clean.failed.writes.policy": "EAGER"})


PAGE.steps += sql_steps(__file__)
