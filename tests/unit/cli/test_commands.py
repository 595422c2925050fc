"""Every command on a small table: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.cli import main

TRIPS = pa.table(
    {
        "id": ["a", "b", "c"],
        "fare": [1.5, 2.5, None],
        "city": ["sf", "nyc", "sf"],
        "at": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
    }
)
CHANGED = TRIPS.slice(1, 1).set_column(1, "fare", [[3.5]])


@dataclass(frozen=True)
class Done:
    """A command that ran."""

    code: object
    out: str
    err: str

    def documents(self) -> list[Any]:
        """Its output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process."""

    def call(*arguments: object) -> Done:
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(exit_.value.code, captured.out, captured.err)

    return call


@pytest.fixture
def trips(tmp_path: Path, run: Run) -> Path:
    """A table with three trips in two partitions, made on the command line."""
    rows, path = tmp_path / "trips.parquet", tmp_path / "trips"
    pq.write_table(TRIPS, rows)
    created = run("create", path, "--like", rows, "--key", "id", "--partition-by", "city", "--ordering", "at")
    assert created.code == 0, created.err
    assert run("upsert", path, rows).code == 0
    return path


def test_a_table_of_version_8_is_created(run: Run, tmp_path: Path) -> None:
    columns = ("--column", "id:string", "--key", "id")
    assert run("create", tmp_path / "t", *columns, "--table-version", "8").code == 0
    assert hoodie.open(tmp_path / "t").view().config.version.value == 8
    refused = run("create", tmp_path / "u", *columns, "--table-version", "7")
    assert refused.code != 0
    assert "table_version=7: expected one of 6, 8, 9" in refused.err


def test_create_makes_the_table_it_was_asked_for(trips: Path) -> None:
    config = hoodie.open(trips).view().config
    assert hoodie.open(trips).schema.names == TRIPS.column_names
    assert (config.record_key_fields, config.partition_fields) == (("id",), ("city",))
    assert config.name == "trips"


def test_create_takes_columns_by_name_and_type(tmp_path: Path, run: Run) -> None:
    done = run(
        "create", tmp_path / "t", "-c", "id:string", "-c", "n:bigint", "-c", "p:decimal(9,2)", "-k", "id", "--json"
    )
    assert done.documents()[0]["columns"] == {"id": "string", "n": "int64", "p": "decimal128(9, 2)"}


def test_create_without_a_key_makes_automatic_keys(trips: Path, tmp_path: Path, run: Run) -> None:
    path, rows, keys = tmp_path / "keyless", tmp_path / "more.parquet", tmp_path / "keys.parquet"
    pq.write_table(TRIPS, rows)
    assert run("create", path, "--like", rows, "--partition-by", "city").code == 0
    assert run("insert", path, rows).code == 0
    table = hoodie.open(path)
    stored = table.to_arrow(["_hoodie_record_key", "_hoodie_partition_path"], where="id = 'b'")
    assert stored["_hoodie_record_key"].to_pylist() == [f"{table.timeline.completed().instants[-1].requested_time}_0_1"]
    pq.write_table(stored, keys)
    assert "1 deleted" in run("delete", path, keys).out
    refused = run("upsert", path, rows)
    assert refused.code == 1
    assert "call insert" in refused.err
    assert sorted(hoodie.open(path).to_arrow(["id"])["id"].to_pylist()) == ["a", "c"]


def test_create_takes_types_with_colons(tmp_path: Path, run: Run) -> None:
    done = run(
        "create",
        tmp_path / "t",
        "-c",
        "id:string",
        "-c",
        "s:struct<a:int,l:array<map<string,date>>>",
        "-k",
        "id",
        "--json",
    )
    assert done.code == 0, done.err
    assert done.documents()[0]["columns"]["s"] == "struct<a: int32, l: list<element: map<string, date32[day]>>>"


def test_counts_are_plain_numbers(tmp_path: Path, run: Run) -> None:
    table = hoodie.create(tmp_path / "t", pa.schema([("id", pa.int64())]), record_key="id", spark=False)
    table.bulk_insert(pa.table({"id": range(1234)}))
    assert run("count", tmp_path / "t").out == "1234\n"
    assert (table.count(), table.count("id < 10"), table.head(5).num_rows) == (1234, 10, 5)


def test_create_refuses_a_second_table_unless_told(trips: Path, run: Run) -> None:
    again = run("create", trips, "-c", "id:string", "-k", "id")
    assert again.code == 1
    assert len(again.err.splitlines()) == 1
    assert again.err.startswith("hoodie: ")
    assert run("create", trips, "-c", "id:string", "-k", "id", "--exist-ok").code == 0


def test_create_names_the_type_it_does_not_know(tmp_path: Path, run: Run) -> None:
    done = run("create", tmp_path / "t", "-c", "id:strang", "-k", "id")
    assert done.code == 1
    assert "strang" in done.err


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "parquet"])
def test_upsert_reads_every_kind_of_file(trips: Path, tmp_path: Path, run: Run, kind: str) -> None:
    path = tmp_path / f"more.{kind}"
    more = TRIPS.slice(1).set_column(1, "fare", pa.array([9.5, 8.5]))
    at = pa.array([20, 30], pa.timestamp("us", "UTC"))
    more = more.set_column(3, "at", at)
    if kind == "parquet":
        pq.write_table(more, path)
    elif kind == "jsonl":
        lines = [{**row, "at": row["at"].isoformat()} for row in more.to_pylist()]
        path.write_text("\n".join(json.dumps(line) for line in lines))
    else:
        compression = "gzip" if kind.endswith("gz") else None
        with pa.output_stream(str(path), compression=compression) as sink:
            pa_csv.write_csv(more, sink)
    result = run("upsert", trips, path, "--json")
    assert result.code == 0, result.err
    assert [result.documents()[0][name] for name in ("inserted", "updated", "deleted")] == [0, 2, 0]
    rows = run("head", trips, "--json", "--where", "id = 'b'").documents()
    assert rows == [{"id": "b", "fare": 9.5, "city": "nyc", "at": "1970-01-01T00:00:00.000020+00:00"}]


def test_csv_nulls_are_empty_fields_and_the_texts_that_were_named(trips: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "more.csv"
    path.write_text('id,fare,city,at\nd,NA,sf,1970-01-01T00:00:00Z\ne,,"",1970-01-01T00:00:00Z\n')
    assert run("upsert", trips, path, "--null", "NA").code == 0
    rows = hoodie.open(trips).to_arrow(columns=["id", "fare", "city"], where="id IN ('d', 'e')").to_pylist()
    assert sorted(map(str, rows)) == sorted(
        map(str, [{"id": "d", "fare": None, "city": "sf"}, {"id": "e", "fare": None, "city": ""}])
    )


def test_a_misspelt_column_of_a_csv_file_is_not_added(trips: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "more.csv"
    path.write_text("id,fare,city,at,tipp\nd,1.0,sf,1970-01-01T00:00:00Z,2\n")
    refused = run("upsert", trips, path)
    assert (refused.code, "'tipp' is not in the table" in " ".join(refused.err.split())) == (1, True)
    done = run("upsert", trips, path, "--json", "--option", "hoodie.python.schema.evolution=always")
    assert done.documents()[0]["notes"] == ["column tipp added: int64"]


def test_insert_and_bulk_insert_add_rows(trips: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "more.parquet"
    pq.write_table(TRIPS.set_column(0, "id", pa.array(["x", "y", "z"])), path)
    assert run("insert", trips, path, "--json").documents()[0]["operation"] == "insert"
    pq.write_table(TRIPS.set_column(0, "id", pa.array(["u", "v", "w"])), path)
    bulk = run("insert", trips, path, "--bulk", "--sort", "partition", "--json").documents()[0]
    assert (bulk["operation"], bulk["inserted"]) == ("bulk_insert", 3)
    assert run("count", trips).out == "9\n"


def test_delete_by_keys_and_by_condition(trips: Path, tmp_path: Path, run: Run) -> None:
    keys = tmp_path / "gone.csv"
    keys.write_text("id,city\na,sf\nnobody,sf\n")
    assert run("delete", trips, keys, "--json").documents()[0]["deleted"] == 1
    assert run("delete", trips, "--where", "fare > 2", "--json").documents()[0]["deleted"] == 1
    assert [row["id"] for row in run("head", trips, "--json").documents()] == ["c"]
    assert run("delete", trips).code == 2


def test_head_prints_own_columns_unless_asked(trips: Path, run: Run) -> None:
    assert len(run("head", trips, "-n", 2, "--json").documents()) == 2
    with_meta = run("head", trips, "--meta", "--json").documents()[0]
    assert {"_hoodie_record_key", "id"} <= with_meta.keys()
    assert run("head", trips, "-c", "fare", "--where", "id = 'a'").out.split() == ["fare", "─" * 4, "1.5"]


def test_columns_are_named_one_by_one_or_with_commas(trips: Path, run: Run) -> None:
    rows = run("head", trips, "--columns", "fare,city", "-c", "id", "--where", "id = 'a'", "--json").documents()
    assert rows == [{"fare": 1.5, "city": "sf", "id": "a"}]


def test_get_prints_records_by_key(trips: Path, run: Run) -> None:
    found = run("get", trips, "b", "a", "-c", "id", "--json").documents()
    assert sorted(row["id"] for row in found) == ["a", "b"]
    done = run("get", trips, "a", "nobody", "-c", "fare")
    assert done.out.split() == ["fare", "─" * 4, "1.5"]
    assert (done.code, done.err) == (1, "hoodie: no record has the key nobody\n")


def test_update_sets_columns_of_matching_records(trips: Path, run: Run) -> None:
    done = run("update", trips, "--set", "fare=fare * 2", "--set", "at=at", "--where", "city = 'sf'", "--json")
    assert done.documents()[0]["updated"] == 2
    assert run("get", trips, "a", "-c", "fare", "--json").documents() == [{"fare": 3.0}]


def test_delete_partitions_removes_their_rows(trips: Path, run: Run) -> None:
    assert run("delete-partitions", trips, "city=sf").code == 0
    assert run("count", trips).out == "1\n"


def test_schema_prints_columns_and_types(trips: Path, run: Run) -> None:
    assert run("schema", trips, "--json").documents()[1] == {"column": "fare", "type": "double", "nullable": True}


def test_messages_speak_the_words_of_the_command_line(trips: Path, run: Run) -> None:
    done = run("create", trips, "--column", "id:string", "--key", "id")
    assert "--exist-ok" in done.err
    assert "exist_ok" not in done.err


def test_remedies_name_the_table(trips: Path, tmp_path: Path, run: Run) -> None:
    for names in (["ID", "City"], ["x", "y"]):
        rows, csv, lines = tmp_path / "keys.parquet", tmp_path / "keys.csv", tmp_path / "keys.json"
        pq.write_table(pa.table([["a"], ["sf"]], names), rows)
        csv.write_text(f"{','.join(names)}\na,sf\n")
        lines.write_text(json.dumps(dict.fromkeys(names, "a")))
        for keys in (rows, csv, lines):
            done = run("delete", trips, keys)
            assert (done.code, "expected the record key columns ['id']" in done.err) == (1, True), done.err
            assert f"found columns {names}" in done.err
    (trips / "city=sf" / ".hoodie_partition_metadata").unlink()
    done = run("verify", trips)
    assert (done.code, f"hoodie repair {trips} --execute" in done.out) == (3, True), done.out
    first = hoodie.open(trips).timeline.latest()
    assert first is not None
    hoodie.open(trips).upsert(CHANGED)
    done = run("rollback", trips, first.requested_time)
    assert (done.code, f"`hoodie rollback {trips} {first.requested_time} --chain`" in done.err) == (1, True), done.err


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version").out == f"hoodie {hoodie.__version__}\n"


def test_a_reader_that_closes_the_output_is_no_error(trips: Path) -> None:
    command = f"{sys.executable} -m hoodie head {trips} --json"
    ended = f"set -o pipefail; {command} | (exec 0<&-; sleep 3)"
    done = subprocess.run(["bash", "-c", ended], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_says_what_happened(trips: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hoodie, "open", interrupted)
    done = run("count", trips)
    assert done.code == 130
    assert done.err.startswith("hoodie: interrupted; a write that was not yet committed changed nothing")


def test_count_now_before_and_with_a_condition(trips: Path, run: Run) -> None:
    before = hoodie.open(trips).timeline.latest()
    assert before is not None
    run("delete", trips, "--where", "city = 'sf'")
    assert run("count", trips, "--json").documents() == [{"rows": 1}]
    assert run("count", trips, "--as-of", before.requested_time).out == "3\n"
    assert run("count", trips, "--where", "city = 'sf'").out == "0\n"


def test_fields_of_structs_are_columns(tmp_path: Path, run: Run) -> None:
    rows = pa.table({"id": ["a", "b"], "st": [{"x": 1, "y": "p"}, None]})
    hoodie.create(tmp_path / "nested", rows, record_key="id").upsert(rows)
    chosen = ("--column", "st.x", "--column", "id", "--json")
    assert run("get", tmp_path / "nested", "a", *chosen).documents() == [{"x": 1, "id": "a"}]
    assert run("head", tmp_path / "nested", "--where", "st IS NULL", *chosen).documents() == [{"x": None, "id": "b"}]


def test_changes_are_the_rows_written_since(trips: Path, tmp_path: Path, run: Run) -> None:
    first = hoodie.open(trips).timeline.latest()
    assert first is not None
    path = tmp_path / "more.parquet"
    pq.write_table(CHANGED, path)
    run("upsert", trips, path)
    changed = run("changes", trips, "--since", first.requested_time, "--json").documents()
    assert [row["id"] for row in changed] == ["b"]
    assert "1 rows changed" in run("changes", trips, "--since", first.requested_time).out
    chosen = run(
        "changes", trips, "--where", "city = 'sf' AND now() > current_date", "--column", "id", "--json"
    ).documents()
    assert sorted(row["id"] for row in chosen) == ["a", "c"]
    assert run("changes", trips, "--where", "nosuch = 1").code == 1


def test_changes_tell_the_place_to_go_on_from(trips: Path, tmp_path: Path, run: Run) -> None:
    *rows, first = run("changes", trips, "--place", "--json").documents()
    assert len(rows) == 3
    assert (first["since"], first["is_snapshot"], first["commits"]) == (None, True, 1)
    path = tmp_path / "more.parquet"
    pq.write_table(CHANGED, path)
    run("upsert", trips, path)
    row, second = run("changes", trips, "--since", first["until"], "--place", "--json").documents()
    assert (row["id"], second["since"], second["is_snapshot"]) == ("b", first["until"], False)
    done = run("changes", trips, "--since", second["until"], "--place")
    assert (done.code, done.out.splitlines()[-1]) == (0, "0 rows changed")
    assert f"go on with --since {second['until']}" in done.err
    assert run("changes", trips, "--place", "--limit", "2").code == 2
    listed = run("timeline", trips, "--archived", "--json").documents()
    assert len(listed) == 2
    newest = hoodie.open(trips).timeline.latest()
    assert newest is not None
    hoodie.open(trips).rollback(newest.requested_time)
    lost = run("changes", trips, "--since", second["until"])
    assert lost.code == 1
    assert "was rolled back" in lost.err
    assert "--fallback snapshot does so" in lost.err
    *rows, third = run(
        "changes", trips, "--since", second["until"], "--fallback", "snapshot", "--place", "--json"
    ).documents()
    assert (len(rows), third["is_snapshot"]) == (3, True)
    assert "3 rows in the table" in run("changes", trips).out


def test_timeline_show_and_inspect(trips: Path, run: Run) -> None:
    instants = run("timeline", trips, "--json").documents()
    assert [(row["operation"], row["state"], row["inserted"]) for row in instants] == [("upsert", "completed", 3)]
    shown = run("show", trips, "--json").documents()[0]
    assert shown["instant"] == instants[0]["instant"]
    assert shown["content"]["operationType"] == "UPSERT"
    assert "operationType" in run("show", trips, instants[0]["instant"]).out
    partitions = run("inspect", trips, "--json").documents()
    assert [(row["partition_path"], row["base_rows"]) for row in partitions] == [("city=nyc", 1), ("city=sf", 2)]
    for part in ("files", "slices", "statistics"):
        assert run("inspect", trips, part, "--json").documents(), part
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
    done = run(*(argument.format(**names) for argument in arguments))
    assert done.code == 1
    assert done.out == ""
    assert done.err.startswith("hoodie: ")
    assert said in done.err
    assert done.err.count("\n") == 1


def test_wrong_usage_is_exit_code_2(trips: Path, run: Run) -> None:
    assert run("count").code == 2
    assert run("upsert", trips, "x.csv", "--option", "no-equals-sign").code == 2
    assert run("compact", trips, "--plan", "--run").code == 2


def test_python_m_hoodie_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "hoodie", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in ("demo", "create", "upsert", "changes", "timeline", "inspect"))


def test_sql_runs_statements_with_tables_and_data_by_name(trips: Path, tmp_path: Path, run: Run) -> None:
    news = tmp_path / "news.parquet"
    pq.write_table(CHANGED, news)
    named = ("--table", f"trips={trips}", "--data", f"news={news}", "--json")
    run("upsert", trips, news)
    merge = "MERGE INTO trips t USING news s ON t.id = s.id WHEN MATCHED THEN UPDATE SET fare = s.fare + 1"
    assert run("sql", merge, *named).documents()[0]["updated"] == 1
    (row,) = run("sql", "CALL show_commits('trips', 1)", *named).documents()
    assert row["total_update_records_written"] == 1
    assert "hoodie.table.name" in run("sql", f"CALL show_table_properties(path => '{trips}', limit => 100)").out
    assert run("sql", f"DELETE FROM hoodie.`{trips}` WHERE fare > 4").code == 0
    refused = run("sql", "SELECT 1")
    assert (refused.code, refused.out) == (1, "")
    assert "SELECT needs a Spark session" in refused.err
