"""The quick start: create, insert, query, update, merge, delete, time travel, changes."""

from __future__ import annotations

from typing import Any

from tests.interop.steps.script import Page, Script

PAGE = Page("Quick start")
TRIPS = "ts bigint, uuid string, rider string, driver string, fare double, city string"
ROWS = (
    (1695159649087, "334e26e9", "rider-A", "driver-K", 19.10, "san_francisco"),
    (1695091554788, "e96c4396", "rider-C", "driver-M", 27.70, "san_francisco"),
    (1695046462179, "9909a8b1", "rider-D", "driver-L", 33.90, "san_francisco"),
    (1695516137016, "e3cf430c", "rider-F", "driver-P", 34.15, "sao_paulo"),
    (1695115999911, "c8abbe79", "rider-J", "driver-T", 17.85, "chennai"),
)
OPERATION = "hoodie.datasource.write.operation"
KEYLESS = {"hoodie.datasource.write.partitionpath.field": "city"}
KEYED = {
    "hoodie.datasource.write.recordkey.field": "uuid",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}


PAGE.add(
    "insert into a new table, mode overwrite, no record key",
    lambda it: it.save(it.frame(TRIPS, *ROWS), "overwrite", KEYLESS),
)
PAGE.add(
    "snapshot query with a filter",
    lambda it: it.load().where("fare > 20.0").select("uuid", "fare", "ts", "rider", "driver", "city"),
)


def tenfold(it: Script, rider: str) -> Any:
    """Return the rows of a rider with ten times the fare, and all columns of the table."""
    rows = it.load()
    changed = rows.where(f"rider = '{rider}'").withColumnRenamed("fare", "old").selectExpr("*", "old * 10 as fare")
    return changed.select(*rows.columns).localCheckpoint()


PAGE.add(
    "update: rows of the table with another fare, mode append",
    lambda it: it.save(tenfold(it, "rider-D"), "append", KEYLESS),
)
PAGE.add(
    "the same with operation upsert",
    lambda it: it.save(tenfold(it, "rider-J"), "append", {**KEYLESS, OPERATION: "upsert"}),
)


@PAGE.step("delete rows of the table, mode append, no record key")
def _(it: Script) -> None:
    it.save(it.load().where("rider = 'rider-F'").localCheckpoint(), "append", {**KEYLESS, OPERATION: "delete"})


@PAGE.step("insert with a record key, mode overwrite")
def _(it: Script) -> None:
    it.use("keyed")
    it.save(it.frame(TRIPS, *ROWS), "overwrite", KEYED)


PAGE.add(
    "upsert in mode append without an operation",
    lambda it: it.save(tenfold(it, "rider-D").select("ts", "uuid", "rider", "driver", "fare", "city"), "append", KEYED),
)
PAGE.add(
    "the rows of the table with their meta columns, written back",
    lambda it: it.save(it.load().where("city = 'chennai'").localCheckpoint(), "append", KEYED),
)


@PAGE.step("delete")
def _(it: Script) -> None:
    rows = it.load().where("rider = 'rider-F'").localCheckpoint()
    it.save(rows, "append", {**KEYED, OPERATION: "delete"})


PAGE.add("time travel to the first commit", lambda it: it.load(**{"as.of.instant": it.instants()[0][0]}))


@PAGE.step("incremental query from the first commit")
def _(it: Script) -> Any:
    begin = it.instants()[0][1]
    return it.load(**{"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": begin})
