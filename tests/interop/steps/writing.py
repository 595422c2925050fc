"""Writing data: operations and save modes of the DataFrame writer, with and without a record key."""

from __future__ import annotations

from typing import Any

from tests.interop.steps.script import COLUMNS, FIRST, KEYED, MERGE_ON_READ, OPERATION, Page, Script

PAGE = Page("Writing data: operations and save modes")
KEY = "hoodie.datasource.write.recordkey.field"
FLAGGED = COLUMNS + ", _hoodie_is_deleted boolean"
KEYLESS = {"hoodie.datasource.write.partitionpath.field": "p"}


def keyed(it: Script, rows: Any, mode: str = "append", operation: str | None = None, **more: str) -> None:
    """Write rows with the options of a keyed table."""
    chosen = {} if operation is None else {OPERATION: operation}
    it.save(it.frame(COLUMNS, *rows), mode, {**KEYED, **chosen, **more})


PAGE.add(
    "append creates the table; duplicates of the batch are merged",
    lambda it: keyed(it, (*FIRST, (1, 2, "newer", "x"), (3, 0, "older", "y"))),
)
PAGE.add("the same frame twice is one row a key", lambda it: keyed(it, FIRST))
PAGE.add("mode error refuses an existing table", lambda it: keyed(it, ((9, 9, "no", "x"),), mode="error"))
PAGE.add("mode ignore does nothing with an existing table", lambda it: keyed(it, ((9, 9, "no", "x"),), mode="ignore"))
PAGE.add(
    "append with operation insert", lambda it: keyed(it, ((3, 5, "again", "y"), (4, 1, "d", "y")), operation="insert")
)


@PAGE.step("append with operation insert and insert.drop.duplicates")
def _(it: Script) -> None:
    more = {"hoodie.datasource.write.insert.drop.duplicates": "true"}
    keyed(
        it, ((4, 7, "dropped", "y"), (5, 1, "e", "x"), (6, 1, "f", "x"), (6, 2, "f2", "x")), operation="insert", **more
    )


@PAGE.step("append with operation bulk_insert and a duplicate in the batch")
def _(it: Script) -> None:
    it.use("bulk")
    keyed(it, (*FIRST, (1, 2, "second", "x")), operation="bulk_insert")


PAGE.add("append with insert_overwrite", lambda it: keyed(it, ((7, 1, "only", "x"),), operation="insert_overwrite"))
PAGE.add(
    "append with insert_overwrite_table",
    lambda it: keyed(it, ((8, 1, "only", "z"), (8, 2, "twice", "z")), operation="insert_overwrite_table"),
)


@PAGE.step("append with delete")
def _(it: Script) -> None:
    keyed(it, ((8, 1, "only", "z"),), operation="insert_overwrite")
    keyed(it, ((9, 1, "i", "z"), (10, 1, "j", "q")))
    keyed(it, ((8, 0, "", "z"), (77, 0, "", "z")), operation="delete")


PAGE.add(
    "append with delete_partition of the frame's partitions",
    lambda it: keyed(it, ((0, 0, "", "z"),), operation="delete_partition"),
)


@PAGE.step("append with delete_partition by name")
def _(it: Script) -> None:
    keyed(it, ((11, 1, "k", "r"), (12, 1, "l", "s")))
    keyed(it, (), operation="delete_partition", **{"hoodie.datasource.write.partitions.to.delete": "r,q"})


def named(it: Script, operation: str, *rows: Any) -> None:
    """Overwrite the table with rows of other columns, and another key."""
    options = {KEY: "name", OPERATION: operation}
    it.save(it.frame("name string, n double", *rows), "overwrite", options)


PAGE.add(
    "overwrite with upsert replaces the table, key and schema too",
    lambda it: named(it, "upsert", ("a", 1.0), ("b", 2.0), ("a", 3.0)),
)
PAGE.add("overwrite with insert", lambda it: named(it, "insert", ("c", 1.0), ("c", 3.0)))
PAGE.add("overwrite with bulk_insert", lambda it: named(it, "bulk_insert", ("d", 1.0), ("d", 3.0)))


@PAGE.step("overwrite with insert_overwrite")
def _(it: Script) -> None:
    it.use("over")
    keyed(it, FIRST)
    keyed(it, ((7, 1, "only", "x"),), mode="overwrite", operation="insert_overwrite")


@PAGE.step("overwrite with insert_overwrite_table")
def _(it: Script) -> None:
    keyed(it, FIRST)
    keyed(it, ((7, 1, "only", "x"),), mode="overwrite", operation="insert_overwrite_table")


@PAGE.step("overwrite with insert_overwrite_table and a further column")
def _(it: Script) -> None:
    rows = it.frame(COLUMNS + ", more int", (7, 1, "only", "x", 5))
    it.save(rows, "overwrite", {**KEYED, OPERATION: "insert_overwrite_table"})


PAGE.add(
    "overwrite with delete is refused", lambda it: keyed(it, ((7, 1, "", "x"),), mode="overwrite", operation="delete")
)
PAGE.add("overwrite with the same definition", lambda it: keyed(it, FIRST, mode="overwrite"))
PAGE.add("append under another table name is refused", lambda it: keyed(it, FIRST, **{"hoodie.table.name": "other"}))
PAGE.add("append with another record key is refused", lambda it: keyed(it, FIRST, **{KEY: "v"}))
PAGE.add(
    "append without the key option to a table that has a key",
    lambda it: it.save(it.frame(COLUMNS, (3, 9, "newest", "y")), "append", {}),
)
PAGE.add(
    "append with a further column",
    lambda it: it.save(it.frame(COLUMNS + ", more int", (3, 10, "wider", "y", 5)), "append", KEYED),
)
PAGE.add("append without a column of the table", lambda it: keyed(it, ((2, 10, "narrower", "x"),)))


@PAGE.step("the same with reconcile.schema")
def _(it: Script) -> None:
    more = {"hoodie.datasource.write.reconcile.schema": "true"}
    keyed(it, ((1, 10, "narrower", "x"),), **more)


@PAGE.step("a wider type: bigint where the table has int")
def _(it: Script) -> None:
    it.save(it.frame(COLUMNS + ", more bigint", (1, 11, "w", "x", 1 << 40)), "append", KEYED)


PAGE.add(
    "a narrower type: int where the table has bigint",
    lambda it: it.save(it.frame("id int, ts int, v string, p string, more int", (1, 12, "n", "x", 7)), "append", KEYED),
)


@PAGE.step("columns in another order")
def _(it: Script) -> None:
    it.save(it.frame("p string, v string, ts bigint, id int, more bigint", ("x", "o", 13, 2, 8)), "append", KEYED)


@PAGE.step("a table of type merge-on-read with ordering by event time")
def _(it: Script) -> None:
    it.use("mor")
    keyed(it, FIRST, **MERGE_ON_READ)
    keyed(it, ((1, 0, "older", "x"), (2, 5, "newer", "x")), **MERGE_ON_READ)


@PAGE.step("delete flag _hoodie_is_deleted in a table that lacks the column")
def _(it: Script) -> None:
    rows = it.frame(FLAGGED, (1, 9, "a", "x", True), (4, 9, "new", "x", False))
    it.save(rows, "append", {**KEYED, **MERGE_ON_READ})


PAGE.add(
    "a write without the delete flag after one that had it",
    lambda it: keyed(it, ((5, 9, "after", "x"),), **MERGE_ON_READ),
)


@PAGE.step("a table that is created with the delete flag")
def _(it: Script) -> None:
    it.use("flagged")
    it.save(it.frame(FLAGGED, (1, 1, "a", "x", False), (2, 1, "b", "x", False)), "append", KEYED)
    it.save(it.frame(FLAGGED, (1, 2, "a", "x", True)), "append", KEYED)


@PAGE.step("no record key: append twice")
def _(it: Script) -> None:
    it.use("keyless")
    it.save(it.frame(COLUMNS, *FIRST), "append", KEYLESS)
    it.save(it.frame(COLUMNS, *FIRST), "append", KEYLESS)


PAGE.add(
    "no record key and operation upsert with new rows",
    lambda it: it.save(it.frame(COLUMNS, (4, 1, "d", "x")), "append", {**KEYLESS, OPERATION: "upsert"}),
)
PAGE.add(
    "no record key and operation insert_overwrite",
    lambda it: it.save(it.frame(COLUMNS, (5, 1, "e", "x")), "append", {**KEYLESS, OPERATION: "insert_overwrite"}),
)
PAGE.add(
    "no record key, no partition column", lambda it: it.save(it.frame(COLUMNS, *FIRST), "append", {}), table="bare"
)


@PAGE.step("a record key of two columns")
def _(it: Script) -> None:
    it.use("composite")
    options = {KEY: "id,p", "hoodie.datasource.write.precombine.field": "ts"}
    it.save(it.frame(COLUMNS, *FIRST), "append", options)
    it.save(it.frame(COLUMNS, (1, 2, "n", "x"), (1, 2, "n", "y")), "append", options)


@PAGE.step("two partition columns, hive style")
def _(it: Script) -> None:
    it.use("hive")
    hive = {"hoodie.datasource.write.hive_style_partitioning": "true"}
    keyed(it, FIRST, **hive, **{"hoodie.datasource.write.partitionpath.field": "p,v"})


@PAGE.step("a key without an ordering column")
def _(it: Script) -> None:
    it.use("commit_time")
    options = {KEY: "id"}
    it.save(it.frame(COLUMNS, *FIRST), "append", options)
    it.save(it.frame(COLUMNS, (1, 0, "later", "x")), "append", options)


@PAGE.step("null in the record key is refused")
def _(it: Script) -> None:
    it.save(it.frame(COLUMNS, (None, 0, "null", "x")), "append", {KEY: "id"})


@PAGE.step("a missing key column is refused")
def _(it: Script) -> None:
    it.use("missing")
    it.save(it.frame(COLUMNS, *FIRST), "append", {KEY: "nothing"})
