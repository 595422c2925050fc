"""`hoodie query`: tables by name and path, formats of the output, and what is left to DuckDB."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from tests.support.command_line import Run
from tests.support.tables import new_table


@pytest.fixture(autouse=True)
def trips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> hoodie.Table:
    """A table in the folder in which the commands run."""
    monkeypatch.chdir(tmp_path)
    rows = pa.table({"id": ["a", "b"], "n": [1, 2]})
    return new_table(rows.schema, rows, path=tmp_path / "trips")


def test_tables_are_named_by_folder_path_and_option(run: Run, tmp_path: Path) -> None:
    text = f"SELECT id, k.n FROM trips JOIN '{tmp_path}/trips' USING (id) JOIN k USING (id) ORDER BY id"
    assert run.rows("query", text, "--table", "k=trips") == [{"id": "a", "n": 1}, {"id": "b", "n": 2}]
    out = run.text("query", "WITH w AS (SELECT id, n FROM trips) SELECT * FROM w ORDER BY n", "--csv")
    assert out.splitlines() == ['"id","n"', '"a",1', '"b",2']
    assert run.text("query", "SELECT sum(n) AS total FROM trips").split() == ["total", "─────", "3"]
    assert (
        run("query", "SELECT sum(n) AS t, sum(n)::DECIMAL(9, 2) AS d FROM trips", "--json")[1]
        == '{"t": 3, "d": "3.00"}\n'
    )
    assert (
        run("query", "SELECT sum(9223372036854775807) AS t FROM trips", "--json")[1]
        == '{"t": "18446744073709551614"}\n'
    )


def test_columns_of_one_name_get_distinct_names(run: Run) -> None:
    text = "SELECT a.id, b.id, a.n AS ID FROM trips a JOIN trips b USING (id) ORDER BY a.id LIMIT 1"
    assert run("query", text, "--json")[1] == '{"id": "a", "id_1": "a", "ID_2": 1}\n'
    assert run("query", text, "--csv")[1].splitlines() == ['"id","id_1","ID_2"', '"a","a",1']
    assert run("query", text)[1].split()[:3] == ["id", "id_1", "ID_2"]


@pytest.mark.parametrize("name", ["TRIPS", "main.trips", "Main.K", "k"])
def test_names_in_another_case_and_with_a_schema(run: Run, name: str) -> None:
    out = run("query", f"SELECT count(*) AS n FROM {name}", "--csv", "--table", "K=trips", "--table", "Trips=trips")
    assert out[:2] == (0, '"n"\n2\n')
    assert run("query", f"EXPLAIN ANALYZE SELECT * FROM {name}", "--table", "K=trips", "--table", "Trips=trips")[0] == 0


def test_tables_are_read_as_of_a_time(run: Run, trips: hoodie.Table) -> None:
    before = trips.timeline.instants[-1].completion_time
    trips.delete(["a"])
    assert run.text("query", "SELECT id FROM trips", "--csv") == '"id"\n"b"\n'
    assert run.text("query", "SELECT count(*) AS n FROM trips", "--csv", "--as-of", before) == '"n"\n2\n'


def test_a_long_answer_is_cut_on_a_terminal_only(run: Run) -> None:
    _, out, err = run("query", "FROM range(300)")
    assert ("99" in out, "100 rows" in err, "299" in out) == (True, True, False)
    assert len(run.rows("query", "FROM range(300)")) == 300


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("SELECT nope FROM trips", "DuckDB: Binder Error"),
        ("SELECT * FROM nothing", "Table with name nothing does not exist"),
        ("SELECT count(*) FROM a/b", "DuckDB: Parser Error: syntax error at or near"),
        ("SELECT * FROM k", "other is not a Hudi table"),
    ],
)
def test_a_wrong_query_is_refused_in_one_line(run: Run, statement: str, says: str) -> None:
    code, out, err = run("query", statement, *(("--table", "k=other") if " k" in statement else ()))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert says in err


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    "statement", ["SELECT count(*) FROM range(100000000000)", "SELECT a.n FROM trips a, range(1000000000) ORDER BY 1"]
)
def test_ctrl_c_ends_a_long_query(statement: str) -> None:
    command = [sys.executable, "-m", "hoodie", "query", statement]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(2.5)  # in the query, or in imports on a slow machine: both end in the same way
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told.startswith("hoodie: interrupted"), told.count("\n")) == (130, True, 1)
