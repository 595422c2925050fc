"""The table of operations: a row is all that a command and a procedure need."""

from __future__ import annotations

import inspect

import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

import hoodie
from hoodie.cli.operations import command_of
from hoodie.results import ServiceResult
from hoodie.statements.procedures.operations import procedure_of_row
from hoodie.statements.procedures.procedure import Call
from hoodie.statements.procedures.registry import PROCEDURES
from hoodie.table.operations import OPERATIONS, About, Operation
from hoodie.table.services import TableServices
from tests.support.tables import new_table

ROWS = {"id": ["a", "b"], "x": [1, 2]}


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row.name)
def test_a_row_has_the_parameters_of_its_method(row: Operation) -> None:
    declared = row.signature()
    assert [*declared] == [*row.parameters]
    assert row.procedure is None or row.procedure in PROCEDURES


class _Made:
    """A made-up operation: it counts the rows of a table, some times."""

    def count_again(self, times: int = 1, *, names: str | None = None, dry_run: bool = False) -> ServiceResult:
        assert isinstance(self, hoodie.Table)
        return ServiceResult(
            operation=f"count {names or 'all'}", counts={"rows": self.count() * times}, dry_run=dry_run
        )


ROW = Operation(
    name="count-again",
    method="count_again",
    about="Count the rows of a table.\n\nMore than once.",
    parameters={
        "times": About(text="How often.", least=1),
        "names": About(text="What to count."),
        "dry_run": About(text="Count only."),
    },
)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> hoodie.Table:
    """A table of two rows, whose handle has the made-up operation."""
    monkeypatch.setattr(hoodie.Table, "count_again", _Made.count_again, raising=False)
    return new_table(pa.table(ROWS).schema, ROWS)


def test_a_function_and_a_row_make_a_command(table: hoodie.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hoodie, "open", lambda *_, **__: table)
    app = typer.Typer()
    app.command(ROW.name)(command_of(ROW))
    done = CliRunner().invoke(app, ["memory://any", "--times", "2", "--names", "rows", "--json"])
    assert done.exit_code == 0, done.output
    assert '"operation":"count rows"' in done.output.replace(" :", ":").replace(": ", ":")
    assert '"rows":4' in done.output.replace(": ", ":")
    wrong = CliRunner().invoke(app, ["memory://any", "--times", "0"])
    assert wrong.exit_code == 2


def test_a_function_and_a_row_make_a_procedure(table: hoodie.Table) -> None:
    procedure = procedure_of_row(ROW)
    assert [parameter.name for parameter in procedure.parameters] == ["table", "path", "times", "names", "dry_run"]
    assert procedure.about == "Count the rows of a table."

    class _Names:
        def named(self, _: str) -> hoodie.Table:
            return table

    values = {"table": "t", "times": 3, "names": None, "dry_run": False}
    rows = procedure.rows(Call(names=_Names(), values=values, properties={}))  # type: ignore[arg-type]
    assert {"fact": "rows", "value": "6"} in rows.to_pylist()


def test_procedures_of_rows_return_the_facts_of_the_result(table: hoodie.Table) -> None:
    def call(text: str) -> dict[str, str]:
        found = hoodie.sql(None, f"CALL {text}", tables={"t": table}).to_pylist()
        return {row["fact"]: row["value"] for row in found}

    assert call("verify(table => 't', full => true)")["result"] == "OK"
    assert call("index_drop(table => 't')")["operation"] == "drop record index"
    built = call("index_build(table => 't', buckets => 2, wait_seconds => 5)")
    assert (built["entries"], built["buckets"]) == ("2", "2")
    assert call("index_build(table => 't', name => 'column_stats', columns => 'id, x')")["operation"].startswith(
        "build"
    )
    assert "nothing" in call("repair(table => 't')").get("result", "nothing")


def test_each_operation_that_looks_after_a_table_has_a_row() -> None:
    """A method of the services is a row, or has a command of its own module."""
    without_row = {
        "schedule_compaction", "schedule_log_compaction", "compact", "pending_compactions", "cluster",
        "schedule_clustering", "pending_clusterings", "clustering_advice", "savepoints", "services", "compactor",
    }  # fmt: skip
    methods = {name for name, _ in inspect.getmembers(TableServices, inspect.isfunction) if name[0] != "_"}
    assert methods - without_row == {row.method for row in OPERATIONS if "." not in row.method}
