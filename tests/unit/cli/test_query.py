"""`hoodie query`: tables by name and path, formats of the output, and what is left to DuckDB."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hoodie
from tests.support.command_line import Run


@pytest.fixture(autouse=True)
def trips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> hoodie.Table:
    """A table in the folder in which the commands run."""
    monkeypatch.chdir(tmp_path)
    table = hoodie.create("trips", {"id": ["a"], "n": [1]}, record_key="id", spark=False)
    table.upsert({"id": ["a", "b"], "n": [1, 2]})
    return table


def test_tables_are_named_by_folder_path_and_option(run: Run, tmp_path: Path) -> None:
    text = f"SELECT id, k.n FROM trips JOIN '{tmp_path}/trips' USING (id) JOIN k USING (id) ORDER BY id"
    code, out, _ = run("query", text, "--table", "k=trips", "--json")
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [{"id": "a", "n": 1}, {"id": "b", "n": 2}]
    code, out, _ = run("query", "WITH w AS (SELECT id, n FROM trips) SELECT * FROM w ORDER BY n", "--csv")
    assert out.splitlines() == ['"id","n"', '"a",1', '"b",2']
    code, out, _ = run("query", "SELECT sum(n) AS total FROM trips")
    assert (code, out.split()) == (0, ["total", "─────", "3"])


def test_tables_are_read_as_of_a_time(run: Run, trips: hoodie.Table) -> None:
    before = trips.timeline.instants[-1].completion_time
    trips.delete(["a"])
    assert run("query", "SELECT id FROM trips", "--csv")[1] == '"id"\n"b"\n'
    assert run("query", "SELECT count(*) AS n FROM trips", "--csv", "--as-of", str(before))[1] == '"n"\n2\n'


def test_a_long_answer_is_cut_on_a_terminal_only(run: Run) -> None:
    _, out, err = run("query", "FROM range(300)")
    assert ("99" in out, "100 rows" in err, "299" in out) == (True, True, False)
    assert len(run("query", "FROM range(300)", "--json")[1].splitlines()) == 300


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("SELECT nope FROM trips", "DuckDB: Binder Error"),
        ("SELECT * FROM nothing", "Table with name nothing does not exist"),
        ("SELECT count(*) FROM a/b", "DuckDB: Parser Error: syntax error at or near"),
    ],
)
def test_a_wrong_query_is_refused_in_one_line(run: Run, statement: str, says: str) -> None:
    code, out, err = run("query", statement)
    assert (code, out) == (1, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_table_that_is_not_there_is_named(run: Run) -> None:
    code, _, err = run("query", "SELECT * FROM k", "--table", "k=other")
    assert "other is not a Hudi table" in err
    assert code != 0
