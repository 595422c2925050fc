"""CREATE TABLE without Spark: the values of properties, and what a failed query leaves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from sqlglot import exp

import hoodie
from hoodie.errors import HoodieError, InvalidConfigError, TableExistsError
from hoodie.records.sql.parse import parse_statement
from hoodie.statements import create
from hoodie.statements.names import Names
from hoodie.storage import Store, open_store
from hoodie.table import Table
from hoodie.table.save import Save

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64())])
ROWS = pa.table({"id": [1, 2], "x": [3, 4]}, SCHEMA)


def parsed(text: str) -> exp.Create:
    tree = parse_statement(text)
    assert isinstance(tree, exp.Create)
    return tree


class Catalog:
    """The catalog of Spark: names and the places of their tables."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.entries = folder, dict[str, str]()

    def check_has_tables(self) -> None: ...

    def find(self, name: str) -> Any:
        uri = self.entries.get(name)
        return None if uri is None else SimpleNamespace(uri=uri, is_managed=True)

    def exists(self, name: str) -> bool:
        return name in self.entries

    def default_uri(self, name: str) -> str:
        return str(self.folder / name.strip("`"))

    def add(self, name: str, uri: str, schema: pa.Schema, *, is_managed: bool) -> None:
        self.entries[name] = uri

    def remove(self, name: str) -> None:
        del self.entries[name]

    def columns(self, text: str) -> pa.Schema:
        return SCHEMA


class Session:
    """What a statement needs of a session: the rows of a query are `ROWS`, or fail when they are written."""

    def __init__(self, folder: Path) -> None:
        self.catalog, self.storage_options, self.session = Catalog(folder), None, False
        self.error: Exception | None = None
        self.saved: list[Save] = []
        self.of_session: dict[str, str] = {}

    def save(self, store: Store, frame: Any, save: Save) -> None:
        checked = save.checked(store, SCHEMA, ROWS.slice(0, 0))
        self.saved.append(checked)
        if self.error is not None:
            raise self.error
        checked.run(Table(store, spark=False), ROWS)

    def frame(self, schema: pa.Schema) -> pa.Table:
        return schema.empty_table()

    def settings(self, operation: str, table: Table) -> dict[str, str]:
        return self.of_session

    def run(self, text: str, properties: Mapping[str, Any] | None = None) -> Table | None:
        return create.run_create(text, parsed(text), cast("Names", self), properties)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    rows = SimpleNamespace(select=lambda *names: ROWS)
    monkeypatch.setattr(create, "run_query", lambda text, names: rows)
    monkeypatch.setattr(create, "arrow_schema", lambda rows: SCHEMA)
    return Session(tmp_path)


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("true", "true"),
        ("TRUE", "true"),
        ("false", "false"),
        ("-1", "-1"),
        ("-0.5", "-0.5"),
        ("3", "3"),
        ("1.5", "1.5"),
        ("'-1'", "-1"),
        ("' a b '", " a b "),
        ("word", "word"),
    ],
)
def test_values_of_properties(written: str, stored: str) -> None:
    text = f"CREATE TABLE m (id BIGINT) USING hudi TBLPROPERTIES (primaryKey='id', hoodie.x = {written})"
    options = create._parsed(text, parsed(text)).options
    assert options == {"record_key": "id", "hoodie.x": stored}


def test_a_flag_without_quotes(session: Session) -> None:
    text = "CREATE TABLE m (id BIGINT) USING hudi TBLPROPERTIES (primaryKey='id', 'hoodie.table.cdc.enabled' = true)"
    table = session.run(text)
    assert table is not None
    assert table.view().config.is_cdc_enabled


@pytest.mark.parametrize("value", ["NULL", "1 + 1"])
def test_other_values_are_refused(session: Session, value: str) -> None:
    with pytest.raises(HoodieError):
        session.run(f"CREATE TABLE m (id BIGINT) USING hudi TBLPROPERTIES (primaryKey='id', 'hoodie.x' = {value})")


QUERY = "CREATE {}TABLE {}m USING hudi TBLPROPERTIES (primaryKey='id') AS SELECT 1 AS id, 1/0 AS x"


@pytest.mark.parametrize("words", [("", ""), ("", "IF NOT EXISTS "), ("OR REPLACE ", "")], ids=str)
def test_a_failed_query_leaves_no_table(session: Session, tmp_path: Path, words: tuple[str, str]) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "notes.txt").write_text("of somebody")
    text = QUERY.format(*words)
    session.error = ArithmeticError("1/0")
    with pytest.raises(ArithmeticError):
        session.run(text)
    assert (tmp_path / "m" / "notes.txt").read_text() == "of somebody"
    with pytest.raises(HoodieError):
        hoodie.open(tmp_path / "m", spark=False)
    session.error = None
    table = session.run(text)
    assert table is not None
    assert table.count() == 2
    assert [save.operation for save in session.saved] == ["bulk_insert", "bulk_insert"]
    assert session.catalog.entries.keys() == {"`m`"}


def test_a_table_that_was_there_stays(session: Session, tmp_path: Path) -> None:
    table = session.run(QUERY.format("", ""))
    assert table is not None
    session.error = ArithmeticError("1/0")
    with pytest.raises(ArithmeticError):
        session.run(QUERY.format("OR REPLACE ", ""))
    assert hoodie.open(tmp_path / "m", spark=False).count() == 2


def test_a_table_that_another_writer_uses_stays(session: Session, tmp_path: Path) -> None:
    """It wrote between the creation and the error."""
    session.error = ArithmeticError("1/0")
    checked = session.save

    def save(store: Store, frame: Any, save: Save) -> None:
        Table(open_store(str(tmp_path / "m")), spark=False).insert(ROWS)
        checked(store, frame, save)

    session.save = save  # type: ignore[method-assign]
    with pytest.raises(ArithmeticError):
        session.run(QUERY.format("", ""))
    assert hoodie.open(tmp_path / "m", spark=False).count() == 2
    with pytest.raises(TableExistsError):
        session.run(QUERY.format("", ""))


def test_negative_values_of_alter() -> None:
    table = hoodie.create("memory://altered", SCHEMA, record_key="id", spark=False)
    hoodie.sql(
        None, "ALTER TABLE t SET TBLPROPERTIES ('hoodie.partition.ttl.strategy.days.retain' = -1)", tables={"t": table}
    )
    assert table.view().config.raw["hoodie.partition.ttl.strategy.days.retain"] == "-1"
    with pytest.raises(InvalidConfigError):
        hoodie.sql(
            None,
            "ALTER TABLE t SET TBLPROPERTIES ('hoodie.partition.ttl.strategy.days.retain' = --1)",
            tables={"t": table},
        )


def test_the_rows_of_a_query_are_written_with_the_options_of_the_call_and_the_session(session: Session) -> None:
    text = "CREATE TABLE t USING hudi TBLPROPERTIES (primaryKey='id') AS SELECT 1"
    kept = "hoodie.clean.commits.retained"
    session.of_session = {
        kept: "3",
        "hoodie.parquet.max.file.size": "999999999",
        "hoodie.spark.sql.insert.into.operation": "insert",
        # of the definition of a table
        "hoodie.datasource.write.hive_style_partitioning": "false",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.index.type": "BLOOM",
    }
    with pytest.raises(InvalidConfigError, match=r"hoodie\.clean\.commits\.retaine\b"):
        session.run(text, {"hoodie.clean.commits.retaine": 7})
    assert session.run(text, {"hoodie.cleaner.commits.retained": 7}) is not None
    assert session.saved[-1].properties == {kept: "7", "hoodie.parquet.max.file.size": "999999999"}


def test_options_without_a_write_are_refused(session: Session) -> None:
    with pytest.raises(InvalidConfigError, match=r"takes no properties=, found hoodie\.clean\.automatic"):
        session.run("CREATE TABLE t (id BIGINT) USING hudi", {"hoodie.clean.automatic": "false"})
    assert not session.catalog.entries
