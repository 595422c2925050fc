"""Reading data: query types, time travel, incremental queries and change data."""

from __future__ import annotations

import time
from typing import Any

from tests.interop.steps import script
from tests.interop.steps.script import COLUMNS, MERGE_ON_READ, OPERATION, Page, Script, dashed

PAGE = Page("Reading data: query types, time travel, incremental, change data")
KEYED = {**script.KEYED, "hoodie.table.cdc.enabled": "true"}
MOR = {**KEYED, **MERGE_ON_READ}
TYPE = "hoodie.datasource.query.type"
BEGIN, END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"
INCREMENTAL = {TYPE: "incremental"}
CDC = {TYPE: "incremental", "hoodie.datasource.query.incremental.format": "cdc"}
DELETE = {OPERATION: "delete"}


def _fill(it: Script, options: dict[str, str]) -> None:
    it.save(it.frame(COLUMNS, (1, 1, "a", "x"), (2, 1, "b", "x"), (3, 1, "c", "y")), "append", options)
    time.sleep(1.1)  # a time in whole seconds is between the commits
    it.save(it.frame(COLUMNS, (1, 2, "a2", "x"), (4, 1, "d", "y")), "append", options)
    it.save(it.frame(COLUMNS, (2, 9, "", "x")), "append", {**options, **DELETE})
    it.save(it.frame(COLUMNS, (3, 4, "c4", "y"), (5, 1, "e", "z")), "append", options)


PAGE.add("four commits on a copy-on-write table with change data", lambda it: _fill(it, KEYED), table="cow")


def _reads(kind: str) -> None:
    def add(name: str, options: Any) -> None:
        @PAGE.step(f"{kind}: {name}")
        def _(it: Script) -> Any:
            return it.load(**options(it))

    def requested(it: Script, number: int) -> str:
        return it.instants()[number][0]

    def completed(it: Script, number: int) -> str:
        return it.instants()[number][1]

    add("query type snapshot", lambda it: {TYPE: "snapshot"})
    add("query type read_optimized", lambda it: {TYPE: "read_optimized"})
    add("as.of.instant with a requested time", lambda it: {"as.of.instant": requested(it, 1)})
    add("as.of.instant with a completion time", lambda it: {"as.of.instant": completed(it, 1)})
    add("as.of.instant with dashes", lambda it: {"as.of.instant": dashed(requested(it, 1))})
    add("as.of.instant in seconds", lambda it: {"as.of.instant": requested(it, 1)[:14]})
    add("as.of.instant in seconds since 1970", lambda it: {"as.of.instant": "4102444800"})
    add("as.of.instant with a day in the future", lambda it: {"as.of.instant": "2100-01-01"})
    add("as.of.instant before the first commit", lambda it: {"as.of.instant": "2001-01-01"})
    add("as.of.instant that is no time", lambda it: {"as.of.instant": "yesterday"})
    add("incremental from a completion time", lambda it: {**INCREMENTAL, BEGIN: completed(it, 1)})
    add("incremental from a requested time", lambda it: {**INCREMENTAL, BEGIN: requested(it, 1)})
    add("incremental with both bounds", lambda it: {**INCREMENTAL, BEGIN: completed(it, 0), END: completed(it, 2)})
    add("incremental to a requested time", lambda it: {**INCREMENTAL, BEGIN: "000", END: requested(it, 2)})
    add("incremental from 000", lambda it: {**INCREMENTAL, BEGIN: "000"})
    add("incremental from earliest", lambda it: {**INCREMENTAL, BEGIN: "earliest"})
    add("incremental from a day with dashes", lambda it: {**INCREMENTAL, BEGIN: "2001-01-01"})
    add("incremental from the last completion time", lambda it: {**INCREMENTAL, BEGIN: completed(it, 3)})
    add("incremental from the future", lambda it: {**INCREMENTAL, BEGIN: "21000101000000000"})
    add("incremental without a begin", lambda it: INCREMENTAL)
    add("change data from 000", lambda it: {**CDC, BEGIN: "000"})
    add(
        "change data of the second and third commit", lambda it: {**CDC, BEGIN: completed(it, 0), END: completed(it, 2)}
    )
    add("a query type that does not exist", lambda it: {TYPE: "whole"})


_reads("copy-on-write")


PAGE.add("four commits on a merge-on-read table with change data", lambda it: _fill(it, MOR), table="mor")


_reads("merge-on-read")


PAGE.add("a schema of the caller's", lambda it: it.spark.read.format("hudi").schema("id int, v string").load(it.path))
PAGE.add("a path that is no table", lambda it: it.load(), table="nothing")
