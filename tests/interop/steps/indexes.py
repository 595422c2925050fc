"""Indexes: those that find the rows of writes, those of the metadata table, and the statements about indexes."""

from __future__ import annotations

from typing import Any

from tests.interop.steps.script import Page, Script

PAGE = Page("Indexes")
COLUMNS = "id int, ts bigint, v string, p string"
KEYED = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "p",
}
FIRST = ((1, 1, "a", "x"), (2, 1, "b", "x"), (3, 1, "c", "y"))
NEWS = ((1, 2, "update", "x"), (3, 2, "moved", "x"), (4, 2, "new", "y"))
MERGE_ON_READ = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
TYPE = "hoodie.index.type"


def write(it: Script, rows: Any, **more: str) -> None:
    """Upsert rows."""
    it.save(it.frame(COLUMNS, *rows), "append", {**KEYED, **more})


def two_writes(it: Script, table: str, **more: str) -> Any:
    """Go on with a new table, and upsert an update, a row with another partition, and a new row."""
    it.use(table)
    write(it, FIRST, **more)
    write(it, NEWS, **more)
    return it.services(files=True)


def query(it: Script, text: str) -> Any:
    """Return the rows of a query of the table's columns."""
    return it.sql(f"SELECT id, v, p FROM {{t}} WHERE {text}")


@PAGE.step("SIMPLE: a key is unique in its partition")
def _(it: Script) -> Any:
    return two_writes(it, "simple", **{TYPE: "SIMPLE"})


@PAGE.step("GLOBAL_SIMPLE: a row moves to the partition of its update")
def _(it: Script) -> Any:
    return two_writes(it, "global_simple", **{TYPE: "GLOBAL_SIMPLE"})


@PAGE.step("GLOBAL_SIMPLE with hoodie.simple.index.update.partition.path off: a row stays")
def _(it: Script) -> Any:
    off = {"hoodie.simple.index.update.partition.path": "false"}
    return two_writes(it, "global_simple_stays", **{TYPE: "GLOBAL_SIMPLE"}, **off)


@PAGE.step("BLOOM, with options of the filters")
def _(it: Script) -> Any:
    filters = {"hoodie.index.bloom.num_entries": "1000", "hoodie.index.bloom.fpp": "0.0001"}
    return two_writes(it, "bloom", **{TYPE: "BLOOM"}, **filters, **{"hoodie.bloom.index.filter.type": "SIMPLE"})


@PAGE.step("GLOBAL_BLOOM")
def _(it: Script) -> Any:
    return two_writes(it, "global_bloom", **{TYPE: "GLOBAL_BLOOM"})


@PAGE.step("GLOBAL_BLOOM with hoodie.bloom.index.update.partition.path off")
def _(it: Script) -> Any:
    off = {"hoodie.bloom.index.update.partition.path": "false"}
    return two_writes(it, "global_bloom_stays", **{TYPE: "GLOBAL_BLOOM"}, **off)


@PAGE.step("BUCKET with hoodie.bucket.index.num.buckets")
def _(it: Script) -> Any:
    return two_writes(it, "bucket", **{TYPE: "BUCKET", "hoodie.bucket.index.num.buckets": "2"})


@PAGE.step("BUCKET of a merge-on-read table")
def _(it: Script) -> Any:
    return two_writes(it, "bucket_mor", **MERGE_ON_READ, **{TYPE: "BUCKET", "hoodie.bucket.index.num.buckets": "2"})


@PAGE.step("another number of buckets")
def _(it: Script) -> None:
    write(it, NEWS, **MERGE_ON_READ, **{TYPE: "BUCKET", "hoodie.bucket.index.num.buckets": "3"})


@PAGE.step("BUCKET with consistent hashing, merge-on-read")
def _(it: Script) -> Any:
    engine = {"hoodie.index.bucket.engine": "CONSISTENT_HASHING", "hoodie.bucket.index.num.buckets": "2"}
    return two_writes(it, "consistent", **MERGE_ON_READ, **{TYPE: "BUCKET"}, **engine)


@PAGE.step("RECORD_INDEX")
def _(it: Script) -> Any:
    two_writes(it, "record", **{TYPE: "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true"})
    return it.services()


@PAGE.step("RECORD_INDEX with hoodie.record.index.update.partition.path: a row moves")
def _(it: Script) -> Any:
    more = {"hoodie.metadata.record.index.enable": "true", "hoodie.record.index.update.partition.path": "true"}
    two_writes(it, "record_moves", **{TYPE: "RECORD_INDEX"}, **more)
    return it.services()


@PAGE.step("RECORD_INDEX without hoodie.metadata.record.index.enable")
def _(it: Script) -> Any:
    two_writes(it, "record_alone", **{TYPE: "RECORD_INDEX"})


@PAGE.step("GLOBAL_RECORD_LEVEL_INDEX")
def _(it: Script) -> Any:
    more = {"hoodie.metadata.global.record.level.index.enable": "true"}
    two_writes(it, "global_record", **{TYPE: "GLOBAL_RECORD_LEVEL_INDEX"}, **more)
    return it.services()


@PAGE.step("RECORD_LEVEL_INDEX: a key is unique in its partition")
def _(it: Script) -> Any:
    more = {"hoodie.metadata.record.level.index.enable": "true"}
    two_writes(it, "record_level", **{TYPE: "RECORD_LEVEL_INDEX"}, **more)
    return it.services()


@PAGE.step("INMEMORY")
def _(it: Script) -> Any:
    two_writes(it, "inmemory", **{TYPE: "INMEMORY"})


@PAGE.step("an unknown index is refused")
def _(it: Script) -> None:
    it.use("unknown")
    write(it, FIRST, **{TYPE: "MAGIC"})


@PAGE.step("a delete by GLOBAL_BLOOM finds the key in any partition")
def _(it: Script) -> None:
    it.use("global_bloom")
    operation = {"hoodie.datasource.write.operation": "delete"}
    write(it, ((4, 9, "", "other"),), **{TYPE: "GLOBAL_BLOOM"}, **operation)


@PAGE.step("hoodie.metadata.record.index.enable without an index type")
def _(it: Script) -> None:
    two_writes(it, "record_enabled", **{"hoodie.metadata.record.index.enable": "true"})


@PAGE.step("the partitions of the metadata table by options")
def _(it: Script) -> Any:
    it.use("statistics")
    more = {
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.partition.stats.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        TYPE: "SIMPLE",
    }
    write(it, FIRST, **more)
    write(it, NEWS, **more)
    return it.services(metadata=True)


@PAGE.step("column statistics of some columns")
def _(it: Script) -> Any:
    it.use("some_statistics")
    columns = {"hoodie.metadata.index.column.stats.column.list": "ts,v", TYPE: "SIMPLE"}
    write(it, FIRST, **{"hoodie.metadata.index.column.stats.enable": "true"}, **columns)
    return it.services(metadata=True)


@PAGE.step("a read that skips files by statistics")
def _(it: Script) -> Any:
    return it.load(**{"hoodie.enable.data.skipping": "true"}).where("ts > 0 AND v = 'b'").select("id", "v")


@PAGE.step("BLOOM with hoodie.bloom.index.use.metadata")
def _(it: Script) -> Any:
    more = {"hoodie.metadata.index.bloom.filter.enable": "true", "hoodie.bloom.index.use.metadata": "true"}
    return two_writes(it, "bloom_metadata", **{TYPE: "BLOOM"}, **more)


@PAGE.step("hoodie.metadata.enable off: rows")
def _(it: Script) -> None:
    it.use("listed")
    write(it, FIRST, **{"hoodie.metadata.enable": "false"})


@PAGE.step("SQL: a table without indexes")
def _(it: Script) -> Any:
    it.use("indexes_sql")
    it.sql("SET hoodie.write.lock.provider = org.apache.hudi.client.transaction.lock.InProcessLockProvider")
    it.sql("SET hoodie.metadata.index.column.stats.enable = false")
    it.sql(
        "CREATE TABLE {t} (id int, ts bigint, v string, p string) USING hudi TBLPROPERTIES (primaryKey = 'id', "
        "preCombineField = 'ts', 'hoodie.index.type' = 'SIMPLE') PARTITIONED BY (p) LOCATION '{path}'"
    )
    it.sql("INSERT INTO {t} VALUES (1, 1, 'a', 'x'), (2, 1, 'b', 'x'), (3, 1, 'c', 'y')")
    return it.sql("SHOW INDEXES FROM {t}")


@PAGE.step("CREATE INDEX record_index")
def _(it: Script) -> Any:
    it.sql("CREATE INDEX record_index ON {t} (id)")
    it.sql("SET hoodie.metadata.record.index.enable = true")
    return it.services(metadata=True)


@PAGE.step("SHOW INDEXES")
def _(it: Script) -> Any:
    return it.sql("SHOW INDEXES FROM {t}")


@PAGE.step("CREATE INDEX of the same name is refused")
def _(it: Script) -> None:
    it.sql("CREATE INDEX record_index ON {t} (id)")


@PAGE.step("CREATE INDEX IF NOT EXISTS")
def _(it: Script) -> None:
    it.sql("CREATE INDEX IF NOT EXISTS record_index ON {t} (id)")


@PAGE.step("an update, and rows by the record key")
def _(it: Script) -> Any:
    it.sql("UPDATE {t} SET v = 'updated' WHERE id = 3")
    return query(it, "id = 3")


@PAGE.step("CREATE INDEX of a column: a secondary index")
def _(it: Script) -> Any:
    it.sql("CREATE INDEX idx_v ON {t} (v)")
    return it.services(metadata=True)


@PAGE.step("rows by the column of the secondary index")
def _(it: Script) -> Any:
    return query(it, "v = 'b'")


@PAGE.step("CREATE INDEX USING column_stats with an expression")
def _(it: Script) -> None:
    it.sql("CREATE INDEX idx_day ON {t} USING column_stats(ts) OPTIONS (expr = 'from_unixtime', format = 'yyyy-MM-dd')")


@PAGE.step("CREATE INDEX USING bloom_filters with an expression")
def _(it: Script) -> None:
    it.sql("CREATE INDEX idx_lower ON {t} USING bloom_filters(v) OPTIONS (expr = 'lower')")


@PAGE.step("rows by the expression of the index")
def _(it: Script) -> Any:
    return query(it, "from_unixtime(ts, 'yyyy-MM-dd') = '1970-01-01'")


@PAGE.step("CREATE INDEX on a column that the table lacks is refused")
def _(it: Script) -> None:
    it.sql("CREATE INDEX idx_absent ON {t} (absent)")


@PAGE.step("CREATE INDEX of an unknown kind is refused")
def _(it: Script) -> None:
    it.sql("CREATE INDEX idx_magic ON {t} USING magic(v)")


@PAGE.step("DROP INDEX of a secondary index and of expression indexes")
def _(it: Script) -> None:
    for name in ("secondary_index_idx_v", "expr_index_idx_day", "expr_index_idx_lower"):
        it.sql(f"DROP INDEX {name} ON {{t}}")


@PAGE.step("DROP INDEX record_index")
def _(it: Script) -> Any:
    it.sql("RESET hoodie.metadata.record.index.enable")
    it.sql("DROP INDEX record_index ON {t}")
    return it.sql("SHOW INDEXES FROM {t}")


@PAGE.step("DROP INDEX of an index that is not there is refused")
def _(it: Script) -> None:
    it.sql("DROP INDEX idx_v ON {t}")


@PAGE.step("DROP INDEX IF EXISTS")
def _(it: Script) -> None:
    it.sql("DROP INDEX IF EXISTS idx_v ON {t}")


@PAGE.step("an update after the indexes are gone")
def _(it: Script) -> Any:
    it.sql("UPDATE {t} SET v = 'again' WHERE id = 1")
    return query(it, "id < 3")


@PAGE.step("drop the table of SQL")
def _(it: Script) -> None:
    it.sql("RESET hoodie.write.lock.provider")
    it.sql("RESET hoodie.metadata.index.column.stats.enable")
    it.sql("DROP TABLE {t}")
