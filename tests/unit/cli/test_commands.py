"""Every command on a small table: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.cli import main
from tests.support.command_line import Run
from tests.support.tables import new_table

TRIPS = pa.table(
    {
        "id": ["a", "b", "c"],
        "fare": [1.5, 2.5, None],
        "city": ["sf", "nyc", "sf"],
        "at": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
    }
)
CHANGED = TRIPS.slice(1, 1).set_column(1, "fare", [[3.5]])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with three trips in two partitions, made on the command line."""
    folder = tmp_path_factory.mktemp("made")
    rows, path = str(folder / "trips.parquet"), str(folder / "trips")
    pq.write_table(TRIPS, rows)
    for command in (
        ("create", path, "--like", rows, "--key", "id", "--partition-by", "city", "--ordering", "at"),
        ("upsert", path, rows),
    ):
        with pytest.raises(SystemExit, match=r"^0$"):
            main(command)
    return folder / "trips"


@pytest.fixture
def trips(made: Path, tmp_path: Path) -> Path:
    """A copy of the table."""
    return Path(shutil.copytree(made, tmp_path / "trips"))


def newest(trips: Path) -> str:
    """The requested time of the newest instant."""
    return hoodie.open(trips).timeline.instants[-1].requested_time


def file_of(rows: pa.Table, path: Path) -> Path:
    """A Parquet file of these rows."""
    pq.write_table(rows, path)
    return path


def test_a_table_of_version_8_is_created(run: Run, tmp_path: Path) -> None:
    columns = ("--column", "id:string", "--key", "id", "--table-version")
    run.text("create", tmp_path / "t", *columns, "8")
    assert hoodie.open(tmp_path / "t").view().config.version.value == 8
    assert "table_version=7: expected one of 6, 8, 9" in run.error("create", tmp_path / "u", *columns, "7")


def test_create_makes_the_table_it_was_asked_for(trips: Path) -> None:
    config = hoodie.open(trips).view().config
    assert hoodie.open(trips).schema.names == TRIPS.column_names
    assert (config.record_key_fields, config.partition_fields) == (("id",), ("city",))
    assert config.name == "trips"


def test_create_takes_columns_by_name_and_type(tmp_path: Path, run: Run) -> None:
    columns = ("id:string", "n:bigint", "p:decimal(9,2)", "s:struct<a:int,l:array<map<string,date>>>")
    given = [part for column in columns for part in ("-c", column)]
    assert run.json("create", tmp_path / "t", *given, "-k", "id")["columns"] == {
        "id": "string",
        "n": "int64",
        "p": "decimal128(9, 2)",
        "s": "struct<a: int32, l: list<element: map<string, date32[day]>>>",
    }
    for text in ("strang", "int, x", "map<int,int>", "int default 3"):
        assert run.error("create", tmp_path / "u", "-c", f"id:{text}", "-k", "id").startswith("hoodie: column 'id': ")
    for text in ("", "not null"):
        expected = "expected a type of Spark SQL, such as bigint or struct<a: int>"
        error = run.error("create", tmp_path / "u", "--column", f"id:{text}", "-k", "id")
        assert error == f"hoodie: column 'id': {expected}, found {text!r}\n"
    assert not (tmp_path / "u").exists()


def test_create_takes_not_null(tmp_path: Path, run: Run) -> None:
    said = run.text("create", tmp_path / "t", "-c", "id:varchar(10)", "-c", "n:int NOT NULL", "-k", "id")
    assert said.endswith("t: id string, n int32 not null\n")
    assert [row["nullable"] for row in run.rows("schema", tmp_path / "t")] == [True, False]
    lines = tmp_path / "rows.jsonl"
    lines.write_text('{"id": "a", "n": null}\n')
    assert "null" in run.error("upsert", tmp_path / "t", lines, "--option", "hoodie.python.schema.evolution=never")


def test_create_without_a_key_makes_automatic_keys(tmp_path: Path, run: Run) -> None:
    path, rows = tmp_path / "keyless", file_of(TRIPS, tmp_path / "more.parquet")
    run.text("create", path, "--like", rows, "--partition-by", "city")
    run.text("insert", path, rows)
    table = hoodie.open(path)
    stored = table.to_arrow(["_hoodie_record_key", "_hoodie_partition_path"], where="id = 'b'")
    assert stored["_hoodie_record_key"].to_pylist() == [f"{table.timeline.completed().instants[-1].requested_time}_0_1"]
    assert "1 deleted" in run.text("delete", path, file_of(stored, tmp_path / "keys.parquet"))
    assert "call insert" in run.error("upsert", path, rows)
    assert sorted(hoodie.open(path).to_arrow(["id"])["id"].to_pylist()) == ["a", "c"]


def test_counts_are_plain_numbers(tmp_path: Path, run: Run) -> None:
    table = hoodie.create(tmp_path / "t", pa.schema([("id", pa.int64())]), record_key="id", spark=False)
    table.bulk_insert(pa.table({"id": range(1234)}))
    assert run("count", tmp_path / "t").out == "1234\n"
    assert (table.count(), table.count("id < 10"), table.head(5).num_rows) == (1234, 10, 5)


def test_create_refuses_a_second_table_unless_told(trips: Path, run: Run) -> None:
    create = ("create", trips, "-c", "id:string", "-k", "id")
    said = run.error(*create)
    assert said.startswith("hoodie: ")
    assert said.count("\n") == 1
    # Messages speak the words of the command line.
    assert ("--exist-ok" in said, "exist_ok" in said) == (True, False)
    run.text(*create, "--exist-ok")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "parquet"])
def test_upsert_reads_every_kind_of_file(trips: Path, tmp_path: Path, run: Run, kind: str) -> None:
    path = tmp_path / f"more.{kind}"
    more = TRIPS.slice(1).set_column(1, "fare", pa.array([9.5, 8.5]))
    more = more.set_column(3, "at", pa.array([20, 30], pa.timestamp("us", "UTC")))
    if kind == "parquet":
        pq.write_table(more, path)
    elif kind == "jsonl":
        lines = [{**row, "at": row["at"].isoformat()} for row in more.to_pylist()]
        path.write_text("\n".join(json.dumps(line) for line in lines))
    else:
        compression = "gzip" if kind.endswith("gz") else None
        with pa.output_stream(str(path), compression=compression) as sink:
            pa_csv.write_csv(more, sink)
    result = run.json("upsert", trips, path)
    assert [result[name] for name in ("inserted", "updated", "deleted")] == [0, 2, 0]
    row = {"id": "b", "fare": 9.5, "city": "nyc", "at": "1970-01-01T00:00:00.000020+00:00"}
    assert run.rows("head", trips, "--where", "id = 'b'") == [row]


def test_csv_nulls_are_empty_fields_and_the_texts_that_were_named(trips: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "more.csv"
    path.write_text('id,fare,city,at\nd,NA,sf,1970-01-01T00:00:00Z\ne,,"",1970-01-01T00:00:00Z\n')
    run.text("upsert", trips, path, "--null", "NA")
    rows = hoodie.open(trips).to_arrow(columns=["id", "fare", "city"], where="id IN ('d', 'e')").sort_by("id")
    assert rows.to_pylist() == [{"id": "d", "fare": None, "city": "sf"}, {"id": "e", "fare": None, "city": ""}]


def test_a_misspelt_column_of_a_csv_file_is_not_added(trips: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "more.csv"
    path.write_text("id,fare,city,at,tipp\nd,1.0,sf,1970-01-01T00:00:00Z,2\n")
    assert "'tipp' is not in the table" in " ".join(run.error("upsert", trips, path).split())
    done = run.json("upsert", trips, path, "--option", "hoodie.python.schema.evolution=always")
    assert done["notes"] == ["column tipp added: int64"]


def test_insert_and_bulk_insert_add_rows(trips: Path, tmp_path: Path, run: Run) -> None:
    path = file_of(TRIPS.set_column(0, "id", pa.array(["x", "y", "z"])), tmp_path / "more.parquet")
    assert run.json("insert", trips, path)["operation"] == "insert"
    path = file_of(TRIPS.set_column(0, "id", pa.array(["u", "v", "w"])), path)
    bulk = run.json("insert", trips, path, "--bulk", "--sort", "partition")
    assert (bulk["operation"], bulk["inserted"]) == ("bulk_insert", 3)
    assert run("count", trips).out == "9\n"


def test_delete_by_keys_and_by_condition(trips: Path, tmp_path: Path, run: Run) -> None:
    keys = tmp_path / "gone.csv"
    keys.write_text("id,city\na,sf\nnobody,sf\n")
    assert run.json("delete", trips, keys)["deleted"] == 1
    assert run.json("delete", trips, "--where", "fare > 2")["deleted"] == 1
    assert [row["id"] for row in run.rows("head", trips)] == ["c"]
    assert run("delete", trips).code == 2


def test_rows_are_printed_with_the_columns_that_were_asked_for(trips: Path, run: Run) -> None:
    assert len(run.rows("head", trips, "-n", 2)) == 2
    assert {"_hoodie_record_key", "id"} <= run.rows("head", trips, "--meta")[0].keys()
    one = ("head", trips, "--where", "id = 'a'")
    assert run.text(*one, "-c", "fare").split() == ["fare", "─" * 4, "1.5"]
    assert run.rows(*one, "--columns", "fare,city", "-c", "id") == [{"fare": 1.5, "city": "sf", "id": "a"}]


def test_get_prints_records_by_key(trips: Path, run: Run) -> None:
    assert sorted(row["id"] for row in run.rows("get", trips, "b", "a", "-c", "id")) == ["a", "b"]
    code, out, err = run("get", trips, "a", "nobody", "-c", "fare")
    assert out.split() == ["fare", "─" * 4, "1.5"]
    assert (code, err) == (1, "hoodie: no record has the key nobody\n")


def test_update_sets_columns_of_matching_records(trips: Path, run: Run) -> None:
    done = run.json("update", trips, "--set", "fare=fare * 2", "--set", "at=at", "--where", "city = 'sf'")
    assert done["updated"] == 2
    assert run.rows("get", trips, "a", "-c", "fare") == [{"fare": 3.0}]


def test_delete_partitions_removes_their_rows(trips: Path, run: Run) -> None:
    run.text("delete-partitions", trips, "city=sf")
    assert run("count", trips).out == "1\n"


def test_schema_prints_columns_and_types(trips: Path, run: Run) -> None:
    assert run.rows("schema", trips)[1] == {"column": "fare", "type": "double", "nullable": True}


def test_remedies_name_the_table(trips: Path, tmp_path: Path, run: Run) -> None:
    for names in (["ID", "City"], ["x", "y"]):
        csv, lines = tmp_path / "keys.csv", tmp_path / "keys.json"
        csv.write_text(f"{','.join(names)}\na,sf\n")
        lines.write_text(json.dumps(dict.fromkeys(names, "a")))
        for keys in (file_of(pa.table([["a"], ["sf"]], names), tmp_path / "keys.parquet"), csv, lines):
            said = run.error("delete", trips, keys)
            assert "expected the record key columns ['id']" in said
            assert f"found columns {names}" in said
    (trips / "city=sf" / ".hoodie_partition_metadata").unlink()
    done = run("verify", trips)
    assert (done.code, f"hoodie repair {trips} --execute" in done.out) == (3, True), done.out
    first = newest(trips)
    hoodie.open(trips).upsert(CHANGED)
    assert f"`hoodie rollback {trips} {first} --chain`" in run.error("rollback", trips, first)


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version").out == f"hoodie {hoodie.__version__}\n"


def test_a_reader_that_closes_the_output_is_no_error(trips: Path) -> None:
    command = f"{sys.executable} -m hoodie head {trips} --json"
    ended = f"set -o pipefail; {command} | (exec 0<&-; sleep 3)"
    done = subprocess.run(["bash", "-c", ended], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_says_what_happened(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hoodie, "open", interrupted)
    done = run("count", "t")
    assert done.code == 130
    assert done.err.startswith("hoodie: interrupted; a write that was not yet committed changed nothing")


def test_count_now_before_and_with_a_condition(trips: Path, run: Run) -> None:
    before = newest(trips)
    run("delete", trips, "--where", "city = 'sf'")
    assert run.rows("count", trips) == [{"rows": 1}]
    assert run("count", trips, "--as-of", before).out == "3\n"
    assert run("count", trips, "--where", "city = 'sf'").out == "0\n"


def test_fields_of_structs_are_columns(tmp_path: Path, run: Run) -> None:
    rows = pa.table({"id": ["a", "b"], "st": [{"x": 1, "y": "p"}, None]})
    new_table(rows.schema, rows, path=tmp_path / "nested")
    chosen = ("--column", "st.x", "--column", "id")
    assert run.rows("get", tmp_path / "nested", "a", *chosen) == [{"x": 1, "id": "a"}]
    assert run.rows("head", tmp_path / "nested", "--where", "st IS NULL", *chosen) == [{"x": None, "id": "b"}]


def test_info_prints_the_card_of_a_table_and_of_each_table_of_a_folder(tmp_path: Path, run: Run) -> None:
    for name in ("one", "two"):
        new_table(TRIPS.schema, TRIPS, path=tmp_path / name)
    assert "record key" in run.text("info", tmp_path / "one")
    (card,) = run.rows("info", tmp_path / "one")
    assert (card["rows"], card["record key"]) == (str(TRIPS.num_rows), "id")
    assert [Path(card["path"]).name for card in run.rows("info", tmp_path)] == ["one", "two"]
    assert "is no table" in run.error("info", tmp_path / "three")


def test_changes_are_the_rows_written_since(trips: Path, tmp_path: Path, run: Run) -> None:
    first = newest(trips)
    run("upsert", trips, file_of(CHANGED, tmp_path / "more.parquet"))
    assert [row["id"] for row in run.rows("changes", trips, "--since", first)] == ["b"]
    assert "1 rows changed" in run("changes", trips, "--since", first).out
    chosen = run.rows("changes", trips, "--where", "city = 'sf' AND now() > current_date", "--column", "id")
    assert sorted(row["id"] for row in chosen) == ["a", "c"]
    assert run("changes", trips, "--where", "nosuch = 1").code == 1


def test_changes_tell_the_place_to_go_on_from(trips: Path, tmp_path: Path, run: Run) -> None:
    *rows, first = run.rows("changes", trips, "--place")
    assert len(rows) == 3
    assert (first["since"], first["is_snapshot"], first["commits"]) == (None, True, 1)
    run("upsert", trips, file_of(CHANGED, tmp_path / "more.parquet"))
    row, second = run.rows("changes", trips, "--since", first["until"], "--place")
    assert (row["id"], second["since"], second["is_snapshot"]) == ("b", first["until"], False)
    since = ("changes", trips, "--since", second["until"])
    done = run(*since, "--place")
    assert (done.code, done.out.splitlines()[-1]) == (0, "0 rows changed")
    assert f"go on with --since {second['until']}" in done.err
    assert run("changes", trips, "--place", "--limit", "2").code == 2
    assert len(run.rows("timeline", trips, "--archived")) == 2
    hoodie.open(trips).rollback(newest(trips))
    lost = run.error(*since)
    assert "was rolled back" in lost
    assert "--fallback snapshot does so" in lost
    *rows, third = run.rows(*since, "--fallback", "snapshot", "--place")
    assert (len(rows), third["is_snapshot"]) == (3, True)
    assert "3 rows in the table" in run("changes", trips).out


def test_timeline_show_and_inspect(trips: Path, run: Run) -> None:
    (instant,) = run.rows("timeline", trips)
    assert (instant["operation"], instant["state"], instant["inserted"]) == ("upsert", "completed", 3)
    shown = run.json("show", trips)
    assert (shown["instant"], shown["content"]["operationType"]) == (instant["instant"], "UPSERT")
    assert "operationType" in run("show", trips, instant["instant"]).out
    partitions = run.rows("inspect", trips)
    assert [(row["partition_path"], row["base_rows"]) for row in partitions] == [("city=nyc", 1), ("city=sf", 2)]
    for part in ("files", "slices", "statistics"):
        assert run.rows("inspect", trips, part), part
        assert "city=sf" in run("inspect", trips, part).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("count", "{nowhere}"), "nowhere"),
        (("upsert", "{trips}", "{nowhere}.csv"), "no such file"),
        (("upsert", "{trips}", "{bad}"), "bad.parquet"),
        (("upsert", "{trips}", "{trips}/.hoodie/hoodie.properties"), "expected .parquet"),
        (("head", "{trips}", "-c", "nothing"), "nothing"),
        (("head", "{trips}", "--where", "id ="), "id ="),
        (("show", "{trips}", "20200101000000000"), "20200101000000000"),
        (("upsert", "{trips}", "{bad}", "--option", "hoodie.nonsense=1"), "bad.parquet"),
    ],
)
def test_errors_are_one_line_and_exit_code_1(
    trips: Path, tmp_path: Path, run: Run, arguments: tuple[str, ...], said: str
) -> None:
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 no more")
    names = {"trips": trips, "nowhere": tmp_path / "nowhere", "bad": bad}
    code, out, err = run(*(argument.format(**names) for argument in arguments))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("hoodie: ")
    assert said in err


def test_wrong_usage_is_exit_code_2(trips: Path, run: Run) -> None:
    for command in (
        ("count",),
        ("upsert", trips, "x.csv", "--option", "no-equals-sign"),
        ("compact", trips, "--plan", "--run"),
    ):
        assert run(*command).code == 2


def test_python_m_hoodie_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "hoodie", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in ("demo", "create", "upsert", "changes", "timeline", "inspect"))


def test_rows_of_call_are_printed_in_full(trips: Path, run: Run) -> None:
    listed = run.text("sql", "CALL help()").splitlines()
    assert len(listed) > 60
    assert "synopsis" in listed
    described = run.text("sql", "CALL help(cmd => 'run_clean')")
    assert re.search(r"^ +retain_commits +integer +null +false *$", described, re.MULTILINE)
    for file in trips.rglob("*.parquet"):
        if not file.name.startswith("."):
            file.unlink()
    facts = run.text("sql", f"CALL verify(path => '{trips}')")
    assert re.search(r"^mended by +file-missing: .*--accept-loss \S+\.parquet$", facts, re.MULTILINE)
    assert "…" not in facts
    examples = [line for line in facts.splitlines() if "expected a file, found none" in line]
    assert len(examples) > 1
    assert {line.index("file-missing") for line in examples} == {facts.splitlines()[0].index(facts.split()[1])}


def test_sql_runs_statements_with_tables_and_data_by_name(trips: Path, tmp_path: Path, run: Run) -> None:
    news = file_of(CHANGED, tmp_path / "news.parquet")
    named = ("--table", f"trips={trips}", "--data", f"news={news}")
    run("upsert", trips, news)
    merge = "MERGE INTO trips t USING news s ON t.id = s.id WHEN MATCHED THEN UPDATE SET fare = s.fare + 1"
    assert run.json("sql", merge, *named)["updated"] == 1
    assert run.json("sql", "CALL show_commits('trips', 1)", *named)["total_update_records_written"] == 1
    assert "hoodie.table.name" in run("sql", f"CALL show_table_properties(path => '{trips}', limit => 100)").out
    run.text("sql", f"DELETE FROM hoodie.`{trips}` WHERE fare > 4")
    code, out, err = run("sql", "SELECT 1")
    assert (code, out, "SELECT needs a Spark session" in err) == (1, "", True)


def test_a_statement_without_an_answer_prints_nothing(trips: Path, run: Run) -> None:
    table = f"hoodie.`{trips}`"
    for more in ((), ("--json",)):
        run("sql", f"DROP INDEX IF EXISTS record_index ON {table}")
        for statement in (
            f"CREATE INDEX record_index ON {table} (id)",
            f"CREATE INDEX IF NOT EXISTS record_index ON {table} (id)",
            f"DROP INDEX record_index ON {table}",
            f"ALTER TABLE {table} DROP PARTITION (city = 'nowhere')",
            f"TRUNCATE TABLE {table} PARTITION (city = 'nowhere')",
        ):
            assert run("sql", statement, *more) == (0, "", ""), statement
