"""The JSON endpoints of `hoodie ui` on real tables: reports, pages, errors, and the search for tables."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

import hoodie
from hoodie.web import places
from hoodie.web.api import REPORTS, Cut
from hoodie.web.export import export
from hoodie.web.places import Tables, id_of
from tests.support.web_server import Client, serving

NEEDED = {"instant": "time={instant}", "group": "file_id={file_id}", "changed": "instant={instant}", "record": "key=a"}
"""Parameters without which a report cannot be made."""
JVM_TABLES = ("v6_cow", "v6_mor", "v8_cow", "v8_mor", "v9_cow", "v9_mor")
WIDE = 2**60


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tables, one of them with every kind of report, and a folder that holds no table."""
    folder = tmp_path_factory.mktemp("lake")
    rows = pa.table(
        {
            "id": ["a", "b", "c"],
            "n": [WIDE, 2, 3],
            "day": [date(2026, 11, 25)] * 3,
            "fare": [Decimal("1.50")] * 3,
            "city": ["sf", "sf", "nyc"],
        }
    )
    table = hoodie.create(
        folder / "deep" / "trips", rows.schema, record_key="id", partition_by="city", type="merge_on_read"
    )
    table.upsert(rows, extra_metadata={"place": "7", "db.password": "hidden"})
    table.upsert(rows.slice(0, 1).set_column(1, "n", pa.array([4])))
    table.schedule_compaction()
    hoodie.create(folder / "empty", {"id": ["a"]}, record_key="id")
    (folder / "plain" / "nothing").mkdir(parents=True)
    return folder


@pytest.fixture(scope="module")
def client(lake: Path) -> Iterator[Client]:
    with serving(lake) as client:
        yield client


def _address(client: Client, name: str, report: str) -> str:
    rows = client.report(name, "timeline")["rows"]
    writes = [row["instant"] for row in rows if row["operation"]]
    groups = client.report(name, "slices")["rows"] if writes else []
    given = {"instant": writes[0] if writes else "none", "file_id": groups[0]["file_id"] if groups else "none"}
    return report + (f"?{NEEDED[report].format(**given)}" if report in NEEDED else "")


def test_places_have_the_tables_and_no_more(client: Client, lake: Path) -> None:
    found = client.get("places")
    assert found["version"] == hoodie.__version__
    assert found["places"] == [str(lake)]
    assert (found["data"], found["export"], found["notes"]) == (True, False, [])
    trips = lake / "deep" / "trips"
    assert [table["path"] for table in found["tables"]] == [str(trips), str(lake / "empty")]
    assert found["tables"][0] == {"id": id_of(f"file://{trips}"), "path": str(trips), "name": "trips"}


@pytest.mark.parametrize("report", REPORTS)
def test_each_report_of_a_written_table(client: Client, report: str) -> None:
    found = client.report("trips", _address(client, "trips", report))
    if report in ("summary", "sizes", "instant", "record"):
        assert "next" not in found
    else:
        assert found.keys() >= {"rows", "next", "notes"}
        assert found["rows"] or report in ("flows", "locks")


@pytest.mark.parametrize("report", sorted(REPORTS.keys() - NEEDED.keys()))
def test_each_report_of_an_empty_table(client: Client, report: str) -> None:
    found = client.report("empty", report)
    assert report in ("summary", "sizes", "index", "schemas", "locks") or found["rows"] == []


@pytest.mark.parametrize("name", JVM_TABLES)
def test_each_report_of_tables_of_the_jvm(golden_tables: Path, name: str) -> None:
    with serving(golden_tables / name) as client:
        for report in REPORTS:
            reply = client.send(f"/api/tables/{client.id_of(name)}/{_address(client, name, report)}")
            assert reply.status == 200 or (report == "record" and reply.status in (400, 404)), (report, reply)


def test_the_reports_are_those_of_the_command_line(client: Client, lake: Path) -> None:
    table = hoodie.open(lake / "deep" / "trips", spark=False)
    assert client.report("trips", "partitions?limit=5000")["rows"] == table.inspect.partitions().to_pylist()
    shown = client.report("trips", "timeline?limit=5000")["rows"]
    assert [row["instant"] for row in shown] == table.history()["instant"].to_pylist()


def test_lists_go_on_where_they_ended(client: Client) -> None:
    for report, key in (("partitions", "partition_path"), ("slices", "file_id")):
        whole = client.report("trips", report)
        assert whole["next"] is None
        seen, offset = list[Any](), 0
        while offset is not None:
            page = client.report("trips", f"{report}?limit=1&offset={offset}")
            seen, offset = [*seen, *page["rows"]], page["next"]
        assert [row[key] for row in seen] == [row[key] for row in whole["rows"]]
    by_size = client.report("trips", "partitions?sort=bytes")["rows"]
    assert by_size == sorted(by_size, key=lambda row: -row["size_bytes"])
    whole = client.report("trips", "timeline")["rows"]
    seen, before = list[Any](), ""
    while before is not None:
        page = client.report("trips", f"timeline?limit=1&before={before}")
        seen, before = [*seen, *page["rows"]], page["next"]
    assert seen == whole
    path = by_size[0]["partition_path"]
    slices = client.report("trips", f"slices?partition={quote(path, safe='')}")["rows"]
    assert {row["partition_path"] for row in slices} == {path}


def test_values_arrive_exactly(client: Client) -> None:
    found = client.report("trips", "rows?where=n = 2 or id = 'c'&columns=id,n,day,fare".replace(" ", "%20"))
    assert sorted(found["rows"], key=lambda row: str(row["id"])) == [
        {"id": "b", "n": 2, "day": "2026-11-25", "fare": "1.50"},
        {"id": "c", "n": 3, "day": "2026-11-25", "fare": "1.50"},
    ]
    assert found["columns"][1] == {"name": "n", "type": "int64"}
    first, newest = (row["instant"] for row in reversed(client.report("trips", "timeline")["rows"]) if row["operation"])
    assert client.report("trips", f"rows?as_of={first}&where=id='a'")["rows"][0]["n"] == str(WIDE)
    changed = client.report("trips", f"changed?instant={newest}")["rows"]
    assert [(row["key"], row["before"]["n"], row["after"]["n"]) for row in changed] == [("a", str(WIDE), 4)]
    record = client.report("trips", "record?key=a")
    assert (record["row"]["n"], record["row"]["day"]) == (4, "2026-11-25")
    assert [version["row"]["n"] for version in record["versions"]] == [4, str(WIDE)]


def test_secrets_are_hidden_at_every_depth(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path / "t", {"id": ["a"]}, record_key="id")
    extra = {
        "gcp.credentials": '{"private_key": "HIDDEN1", "project": "HIDDEN2"}',
        "kafka.config": '{"sasl.password": "HIDDEN3", "list": ["https://me:HIDDEN4@host/x?sig=HIDDEN5"]}',
        "sasl.jaas.config": 'x required username="u" password="my HIDDEN6;x";',
    }
    table.upsert({"id": ["a"]}, extra_metadata=extra)
    table.savepoint(user="ann", comment="password=HIDDEN7")
    with serving(tmp_path) as client:
        for row in client.report("t", "timeline")["rows"]:
            shown = client.report("t", f"instant?time={row['instant']}&action={row['action']}")
            assert "HIDDEN" not in str(shown)
        assert "HIDDEN" not in str(client.report("t", "writers"))
        kafka = shown["content"]["extraMetadata"]["kafka.config"]
        assert kafka == {"sasl.password": "***", "list": ["https://me:***@host/x?sig=***"]}
    assert "HIDDEN" not in export(Tables([str(tmp_path)], {}), shows_data=False)[0]


def test_long_values_and_answers_are_cut_with_a_note(tmp_path: Path) -> None:
    names = pa.schema([("id", pa.string()), ("text", pa.string()), ("bytes", pa.binary())])
    rows = pa.table({"id": ["a"], "text": ["é" * 9_000], "bytes": [b"x" * 20_000_000]}, schema=names)
    table = hoodie.create(tmp_path / "t", names, record_key="id", type="copy_on_write")
    written = table.upsert(rows)
    cut = {"id": "a", "text": "é" * 8_000 + "… (9,000 characters)"}
    with serving(tmp_path) as client:
        answers = {
            name: client.report("t", name) for name in ("rows", "record?key=a", f"changed?instant={written.instant}")
        }
        shown = [answers["rows"]["rows"][0], answers["record?key=a"]["row"], [*answers.values()][2]["rows"][0]["after"]]
        for row, answer in zip(shown, answers.values(), strict=True):
            assert row.pop("bytes").endswith("… (20,000,000 bytes)")
            assert row == cut
            assert [note for note in answer["notes"] if "long values cut: `hoodie head" in note], answer["notes"]
    answer = Cut(left=25_000)
    kept = [*answer.items({"id": number, "text": "x" * 9_000} for number in range(100))]
    assert (len(kept), answer.notes("all")) == (
        4,
        ["4 long values cut and the answer ends after 8,000,000 characters: all"],
    )


def test_an_instant_has_some_files_and_the_sums_of_all(tmp_path: Path) -> None:
    table = hoodie.create(tmp_path / "t", {"id": ["a"]}, record_key="id", type="copy_on_write", table_version=6)
    written = table.upsert({"id": ["a"]})
    file = tmp_path / "t" / ".hoodie" / f"{written.instant}.commit"
    commit = json.loads(file.read_text())
    (stat,) = commit["partitionToWriteStats"][""]
    commit["partitionToWriteStats"] = {f"p={n}": [{**stat, "numInserts": n, "fileId": f"{n}"}] * 500 for n in range(8)}
    file.write_text(json.dumps(commit))
    with serving(tmp_path) as client:
        shown = client.report("t", f"instant?time={written.instant}")
    assert [len(stats) for stats in shown["content"]["partitionToWriteStats"].values()] == [500] * 4
    sums = shown["statistics"]
    assert (sums["partitions"], sums["all"]["files"], sums["all"]["numInserts"]) == (8, 4_000, 14_000)
    assert sums["by_partition"]["p=7"]["numInserts"] == 3_500
    assert sums["by_partition"]["p=7"]["totalWriteBytes"] == 500 * stat["totalWriteBytes"]
    assert "first 2,000 of 4,000 files" in shown["notes"][0]
    assert f"hoodie show TABLE {written.instant}" in shown["notes"][0]


def test_secrets_of_commits_are_hidden(client: Client) -> None:
    writers = client.report("trips", "writers")["rows"]
    assert writers[-1]["extra"] == {"place": "7", "db.password": "***"}
    shown = client.report("trips", f"instant?time={writers[-1]['instant']}")
    assert shown["content"]["extraMetadata"]["db.password"] == "***"
    assert shown["content"]["extraMetadata"]["place"] == "7"


@pytest.mark.parametrize(
    ("request_", "status", "kind", "text"),
    [
        ("timeline?limit=x", 400, "InvalidConfigError", "limit: expected a whole number, found 'x'"),
        ("timeline?limit=-1", 400, "InvalidConfigError", "limit: expected a whole number"),
        ("timeline?archived=yes", 400, "InvalidConfigError", "archived: expected 0 or 1"),
        ("timeline?no_such=1", 400, "InvalidConfigError", "found ['no_such']"),
        ("partitions?sort=x", 400, "InvalidConfigError", "sort"),
        ("instant", 400, "InvalidConfigError", "time: expected a value, found none"),
        ("instant?time=20000101000000000", 404, "InstantNotFoundError", "no instant 20000101000000000"),
        ("instant?time=1&action=x", 400, "InvalidConfigError", "action"),
        ("rows?where=no_such%20=%201", 400, "", "no_such"),
        ("rows?where=)", 400, "InvalidConfigError", ""),
        ("rows?columns=no_such", 400, "", "no_such"),
        ("rows?where=" + "x" * 5000, 400, "InvalidConfigError", "at most 4,000 characters"),
        ("verify?start=2", 400, "InvalidConfigError", "start: expected 0 or 1"),
        ("no_such", 404, "NotFound", "no such page or report"),
    ],
)
def test_errors_have_a_status_and_a_sentence(client: Client, request_: str, status: int, kind: str, text: str) -> None:
    reply = client.send(f"/api/tables/{client.id_of('trips')}/{request_}")
    assert (reply.status, text in reply.values["error"]) == (status, True), reply
    assert not kind or reply.values["type"] == kind


def test_a_limit_is_cut(client: Client) -> None:
    assert len(client.report("trips", "rows?limit=999999999")["rows"]) == 3


def test_an_unknown_table_is_not_found(client: Client) -> None:
    for report in ("summary", "verify", "live"):
        reply = client.send(f"/api/tables/000000000000/{report}")
        assert (reply.status, reply.values["type"]) == (404, "TableNotFoundError")


def test_new_tables_appear_and_removed_ones_go(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        assert client.get("places")["tables"] == []
        hoodie.create(tmp_path / "t", {"id": ["a"]}, record_key="id")
        table = client.id_of("t")
        assert client.get(f"tables/{table}/rows")["rows"] == []
        hoodie.open(tmp_path / "t").upsert({"id": ["x"]})
        assert client.get(f"tables/{table}/rows")["rows"] == [{"id": "x"}]
        (tmp_path / "t").rename(tmp_path.parent / f"{tmp_path.name}-gone")
        assert client.send(f"/api/tables/{table}/summary").status == 404
        assert client.get("places")["tables"] == []
        assert client.send(f"/api/tables/{table}/summary").status == 404


def test_a_damaged_table_does_not_hide_others(tmp_path: Path) -> None:
    for name in ("good", "bad"):
        hoodie.create(tmp_path / name, {"id": ["a"]}, record_key="id").upsert({"id": ["a"]})
    for name in ("hoodie.properties", "hoodie.properties.backup"):
        (tmp_path / "bad" / ".hoodie" / name).unlink(missing_ok=True)
    with serving(tmp_path) as client:
        assert client.send(f"/api/tables/{client.id_of('bad')}/summary").status >= 400
        assert client.report("good", "summary")["name"] == "good"


def test_a_search_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hoodie.create(tmp_path / "1/2/3/4/5", {"id": ["a"]}, record_key="id", name="deep")
    hoodie.create(tmp_path / "1/2/3/4/x/6", {"id": ["a"]}, record_key="id", name="deeper")
    (tmp_path / ".hidden").mkdir()
    found = Tables([str(tmp_path)], {}).search()
    assert [table.folder for table in found.tables.values()] == ["1/2/3/4/5"]
    assert [note for note in found.notes if "more than 5 levels below" in note and "1/2/3/4/x" in note], found.notes
    for number in range(30):
        (tmp_path / f"wide-{number:02}").mkdir()
    monkeypatch.setattr(places, "_FOLDERS_MAX", 20)
    notes = Tables([str(tmp_path)], {}).search().notes
    assert [note for note in notes if "the search ended after 20 folders" in note and "wide-" in note], notes
    monkeypatch.setattr(places, "_TABLES_MAX", 1)
    places_ = [str(tmp_path / "1/2/3/4/5"), str(tmp_path / "1/2/3/4/x")]
    found = Tables(places_, {}).search()
    assert (len(found.tables), found.notes) == (1, ("2 tables were found, the first 1 are shown: name their folders",))


def test_a_table_in_memory() -> None:
    name = f"memory://web-{uuid.uuid4().hex}"
    hoodie.create(name, {"id": ["a"]}, record_key="id").upsert({"id": ["a"]})
    with serving(name) as client:
        assert client.report(name.removeprefix("memory://"), "rows")["rows"] == [{"id": "a"}]


def test_tables_in_a_bucket(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    options = request.getfixturevalue("s3_options")
    bucket = f"b{uuid.uuid4().hex}"
    urllib.request.urlopen(urllib.request.Request(f"{options['aws_endpoint']}/{bucket}", method="PUT")).close()
    table = hoodie.create(f"s3://{bucket}/a/t", {"id": ["a"]}, record_key="id", storage_options=options)
    table.upsert({"id": ["a"]})
    hoodie.create(tmp_path / "local", {"id": ["a"]}, record_key="id")
    with serving(f"s3://{bucket}", tmp_path, options=options) as client:
        assert {table["path"] for table in client.get("places")["tables"]} == {
            f"s3://{bucket}/a/t",
            str(tmp_path / "local"),
        }
        assert client.report("t", "rows")["rows"] == [{"id": "a"}]
        assert client.report("t", "summary")["name"] == "t"


def test_equal_requests_are_computed_once_and_a_slow_table_waits_alone(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, goes_on = list[str](), threading.Event()
    head = hoodie.Table.head

    def slow(table: hoodie.Table, *given: Any, **options: Any) -> Any:
        calls.append(table.path)
        if table.path.endswith("trips"):
            goes_on.wait(20)
        return head(table, *given, **options)

    monkeypatch.setattr(hoodie.Table, "head", slow)
    with serving(lake) as client:
        slow_id, fast_id = client.id_of("trips"), client.id_of("empty")
        threads = [
            threading.Thread(target=client.get, args=(f"tables/{slow_id}/rows?limit={number % 8}",))
            for number in range(40)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        started = time.perf_counter()
        assert client.get(f"tables/{fast_id}/rows")["rows"] == []
        assert client.get(f"tables/{slow_id}/verify")["state"] == "none"
        assert time.perf_counter() - started < 5
        assert len([path for path in calls if path.endswith("trips")]) == 2
        assert client.get(f"tables/{slow_id}/summary")["name"] == "trips"
        goes_on.set()
        for thread in threads:
            thread.join(20)
        assert len([path for path in calls if path.endswith("trips")]) == 8


def test_a_request_that_was_left_does_not_run(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, goes_on = list[str](), threading.Event()
    head = hoodie.Table.head

    def slow(table: hoodie.Table, *given: Any, where: str | None = None, **options: Any) -> Any:
        calls.append(str(where))
        goes_on.wait(20)
        return head(table, *given, where=where, **options)

    monkeypatch.setattr(hoodie.Table, "head", slow)
    with serving(lake) as client:
        rows = f"/api/tables/{client.id_of('trips')}/rows?where=n%3D"
        for number in range(6):
            connection = http.client.HTTPConnection("127.0.0.1", client.server.gate.port, timeout=20)
            connection.request("GET", f"{rows}{number}", headers={"Cookie": client.cookie})
            time.sleep(0.2)
            connection.close()
        time.sleep(0.2)
        last = threading.Thread(target=client.send, args=(f"{rows}9",))
        last.start()
        time.sleep(0.2)
        goes_on.set()
        last.join(20)
        assert calls == ["n=0", "n=1", "n=9"]
