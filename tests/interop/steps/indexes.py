"""Indexes: those that find the rows of writes, those of the metadata table, and the statements about indexes."""

from __future__ import annotations

from typing import Any, Literal

from tests.interop.steps.script import COLUMNS, FIRST, KEYED, MERGE_ON_READ, OPERATION, Page, Script
from tests.interop.steps.sql_page import sql_steps

PAGE = Page("Indexes")
NEWS = ((1, 2, "update", "x"), (3, 2, "moved", "x"), (4, 2, "new", "y"))
TYPE = "hoodie.index.type"
BUCKETS = "hoodie.bucket.index.num.buckets"
ENGINE = "hoodie.index.bucket.engine"
RECORD_INDEX = {TYPE: "RECORD_INDEX"}
ENABLED = {"hoodie.metadata.record.index.enable": "true"}
COLUMN_STATS = {"hoodie.metadata.index.column.stats.enable": "true"}
BLOOM_FILTERS = {"hoodie.metadata.index.bloom.filter.enable": "true"}


def write(it: Script, rows: Any, options: dict[str, str]) -> None:
    """Upsert rows."""
    it.save(it.frame(COLUMNS, *rows), "append", {**KEYED, **options})


def two_writes(
    name: str, table: str, options: dict[str, str], count: Literal["files", "instants", "nothing"] = "files"
) -> None:
    """Add a step: a new table, then an upsert of an update, a row with another partition, and a new row."""

    @PAGE.step(name)
    def _(it: Script) -> Any:
        it.use(table)
        write(it, FIRST, options)
        write(it, NEWS, options)
        return None if count == "nothing" else it.services(files=count == "files")


two_writes("SIMPLE: a key is unique in its partition", "simple", {TYPE: "SIMPLE"})
two_writes("GLOBAL_SIMPLE: a row moves to the partition of its update", "global_simple", {TYPE: "GLOBAL_SIMPLE"})
two_writes(
    "GLOBAL_SIMPLE with hoodie.simple.index.update.partition.path off: a row stays",
    "global_simple_stays",
    {TYPE: "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"},
)
FILTERS = {"hoodie.index.bloom.num_entries": "1000", "hoodie.index.bloom.fpp": "0.0001"}
FILTERS["hoodie.bloom.index.filter.type"] = "SIMPLE"
two_writes("BLOOM, with options of the filters", "bloom", {TYPE: "BLOOM", **FILTERS})
two_writes("GLOBAL_BLOOM", "global_bloom", {TYPE: "GLOBAL_BLOOM"})
two_writes(
    "GLOBAL_BLOOM with hoodie.bloom.index.update.partition.path off",
    "global_bloom_stays",
    {TYPE: "GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path": "false"},
)
two_writes("BUCKET with hoodie.bucket.index.num.buckets", "bucket", {TYPE: "BUCKET", BUCKETS: "2"})
two_writes("BUCKET of a merge-on-read table", "bucket_mor", {**MERGE_ON_READ, TYPE: "BUCKET", BUCKETS: "2"})
PAGE.add("another number of buckets", lambda it: write(it, NEWS, {**MERGE_ON_READ, TYPE: "BUCKET", BUCKETS: "3"}))
two_writes(
    "BUCKET with consistent hashing, merge-on-read",
    "consistent",
    {**MERGE_ON_READ, TYPE: "BUCKET", ENGINE: "CONSISTENT_HASHING", BUCKETS: "2"},
)
two_writes("RECORD_INDEX", "record", {**RECORD_INDEX, **ENABLED}, "instants")
two_writes(
    "RECORD_INDEX with hoodie.record.index.update.partition.path: a row moves",
    "record_moves",
    {**RECORD_INDEX, **ENABLED, "hoodie.record.index.update.partition.path": "true"},
    "instants",
)
two_writes("RECORD_INDEX without hoodie.metadata.record.index.enable", "record_alone", RECORD_INDEX, "nothing")
two_writes(
    "GLOBAL_RECORD_LEVEL_INDEX",
    "global_record",
    {TYPE: "GLOBAL_RECORD_LEVEL_INDEX", "hoodie.metadata.global.record.level.index.enable": "true"},
    "instants",
)
two_writes(
    "RECORD_LEVEL_INDEX: a key is unique in its partition",
    "record_level",
    {TYPE: "RECORD_LEVEL_INDEX", "hoodie.metadata.record.level.index.enable": "true"},
    "instants",
)
two_writes("INMEMORY", "inmemory", {TYPE: "INMEMORY"}, "nothing")


PAGE.add("an unknown index is refused", lambda it: write(it, FIRST, {TYPE: "MAGIC"}), table="unknown")


@PAGE.step("a delete by GLOBAL_BLOOM finds the key in any partition")
def _(it: Script) -> None:
    it.use("global_bloom")
    write(it, ((4, 9, "", "other"),), {TYPE: "GLOBAL_BLOOM", OPERATION: "delete"})


two_writes("hoodie.metadata.record.index.enable without an index type", "record_enabled", ENABLED, "nothing")


@PAGE.step("the partitions of the metadata table by options")
def _(it: Script) -> Any:
    it.use("statistics")
    more = {**COLUMN_STATS, "hoodie.metadata.index.partition.stats.enable": "true", **BLOOM_FILTERS, TYPE: "SIMPLE"}
    write(it, FIRST, more)
    write(it, NEWS, more)
    return it.services(metadata=True)


@PAGE.step("column statistics of some columns")
def _(it: Script) -> Any:
    it.use("some_statistics")
    write(it, FIRST, {**COLUMN_STATS, "hoodie.metadata.index.column.stats.column.list": "ts,v", TYPE: "SIMPLE"})
    return it.services(metadata=True)


@PAGE.step("a read that skips files by statistics")
def _(it: Script) -> Any:
    return it.load(**{"hoodie.enable.data.skipping": "true"}).where("ts > 0 AND v = 'b'").select("id", "v")


two_writes(
    "BLOOM with hoodie.bloom.index.use.metadata",
    "bloom_metadata",
    {TYPE: "BLOOM", **BLOOM_FILTERS, "hoodie.bloom.index.use.metadata": "true"},
)
PAGE.add(
    "hoodie.metadata.enable off: rows", lambda it: write(it, FIRST, {"hoodie.metadata.enable": "false"}), table="listed"
)


PAGE.steps += sql_steps(__file__)
