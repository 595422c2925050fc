"""Job files: what they may have, and what their errors name."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InvalidConfigError
from hoodie.ingest.job import Job, job_of
from hoodie.ingest.runner import Runner
from hoodie.ingest.sources.hudi import Hudi
from hoodie.ingest.transforms.registry import Sql

FLOW = """
[[flow]]
name = "trips"
source = { kind = "hudi", path = "raw" }
table = { path = "lake/trips", create = { record_key = "id" } }
"""


def read(text: str, folder: Path | str = "/jobs", **environment: str) -> Job:
    return job_of(tomllib.loads(text), folder=str(folder), environment=environment)


def refused(text: str, **environment: str) -> str:
    with pytest.raises(InvalidConfigError) as caught:
        read(text, **environment)
    return str(caught.value)


def test_all_keys_of_a_job() -> None:
    job = read(
        """
        continuous = true
        interval = 10
        threads = 2
        services = "beside"
        metrics_port = 9108
        spark = { "spark.master" = "local[2]", "spark.sql.shuffle.partitions" = 4 }

        [defaults]
        operation = "insert"
        limit = 100
        bad_rows = "skip"
        retries = 2
        [defaults.properties]
        hoodie.parquet.max.file.size = 5000
        "hoodie.clean.commits.retained" = 5
        "hoodie.upsert.shuffle.parallelism" = 2
        [defaults.storage_options]
        aws_region = "eu-west-1"

        [[flow]]
        name = "trips"
        source = { kind = "hudi", path = "s3://lake/raw", storage_options = { aws_region = "${REGION}" } }
        transform = [ { kind = "sql", query = "SELECT * FROM source" } ]
        table = { path = "lake/trips", create = { record_key = "id", partition_by = "city", ordering = "ts" } }
        operation = "upsert"
        interval = 60
        bad_rows = "bad"
        bad_rows_max = 7
        schema = { id = "string", fare = "decimal(10, 2)" }
        checkpoint = "7"
        evolve = "add_columns"
        properties = { "hoodie.clean.commits.retained" = 6 }
        spark = false

        [[flow]]
        name = "rides"
        source = { kind = "jdbc", url = "jdbc:postgresql://db/x", table = "rides", password = "${PW}" }
        table = "s3://lake/rides"
        """,
        REGION="us-west-2",
        PW="secret",
    )
    trips, rides = job.flows
    assert (job.pace.continuous, job.pace.threads, job.services, job.metrics_port) == (True, 2, "beside", 9108)
    assert job.spark == {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "4"}
    assert [flow.name for flow in job.flows if flow.needs_spark] == ["rides"]
    assert trips.pace is not None
    assert rides.pace is not None
    assert (trips.pace.interval, rides.pace.interval, rides.pace.retries) == (60, 10, 2)
    assert isinstance(trips.source, Hudi)
    assert trips.source.storage_options == {"aws_region": "us-west-2"}
    assert trips.transforms == (Sql(query="SELECT * FROM source"),)
    assert trips.target.path == "/jobs/lake/trips"
    assert trips.target.create == {"record_key": "id", "partition_by": "city", "ordering": "ts"}
    assert trips.target.storage_options == {}
    assert (trips.operation, rides.operation, trips.limit) == ("upsert", "insert", 100)
    assert (trips.bad_rows.mode, trips.bad_rows.max, rides.bad_rows.mode) == ("/jobs/bad", 7, "skip")
    assert trips.schema == pa.schema([("id", pa.string()), ("fare", pa.decimal128(10, 2))])
    assert (trips.start.place, trips.evolve) == ("7", "add_columns")
    assert trips.properties == {"hoodie.clean.commits.retained": "6", "hoodie.parquet.max.file.size": "5000"}
    assert "flow 'trips': without effect here, see docs/options.md: hoodie.upsert.shuffle.parallelism" in job.notes
    assert rides.target.storage_options == {"aws_region": "eu-west-1"}
    assert "secret" not in repr(rides.source)


@pytest.mark.parametrize("key", ["back_off", "back_off_max"])
def test_the_wait_after_an_error_has_a_least(key: str) -> None:
    assert getattr(read(f"{key} = 0.1\n{FLOW}").pace, key) == 0.1
    for wrong in ("0", "0.09", "-1", "nan"):
        assert f"job, {key}: expected seconds, 0.1 or more, found {wrong}" in refused(f"{key} = {wrong}\n{FLOW}")


def test_flows_of_one_table_have_names_in_its_commits() -> None:
    one = FLOW
    other = FLOW.replace('"trips"', '"more"').replace('path = "lake/trips"', 'path = "./lake/trips"')
    assert [flow.key for flow in read(one).flows] == [None]
    assert [flow.key for flow in read(one + other).flows] == ["trips", "more"]
    assert [flow.key for flow in read(one + "is_named = true").flows] == ["trips"]
    assert [flow.key for flow in read(one + other).only(["more"]).flows] == ["more"]


def test_a_flow_follows_the_flows_that_write_what_it_reads() -> None:
    chain = """
    [[flow]]
    name = "gold"
    source = { kind = "query", query = "SELECT * FROM s", tables = { s = "silver" } }
    table = "gold"
    after = "other"
    [[flow]]
    name = "silver"
    source = { kind = "hudi", path = "/jobs/bronze" }
    table = "silver"
    [[flow]]
    name = "bronze"
    source = { kind = "hudi", path = "raw" }
    table = "bronze"
    [[flow]]
    name = "other"
    source = { kind = "hudi", path = "raw" }
    table = "other"
    """
    assert {flow.name: flow.after for flow in read(chain).flows} == {
        "gold": ("other", "silver"),
        "silver": ("bronze",),
        "bronze": (),
        "other": (),
    }
    assert "after: no flow 'othr'; did you mean 'other'?" in refused(chain.replace('after = "other"', 'after = "othr"'))
    assert "reads the table that it writes" in refused(FLOW.replace('"lake/trips"', '"raw"'))


def test_files_beside_the_job(tmp_path: Path) -> None:
    (tmp_path / "only.sql").write_text("SELECT id FROM source")
    record = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]}'
    (tmp_path / "trips.avsc").write_text(record)
    text = FLOW + 'transform = { kind = "sql", file = "only.sql" }\nschema = "trips.avsc"'
    (flow,) = read(text, tmp_path).flows
    assert flow.transforms == (Sql(query="SELECT id FROM source"),)
    assert flow.schema is not None
    assert flow.schema.names == ["id"]
    query = FLOW.replace('kind = "hudi", path = "raw"', 'kind = "query", file = "only.sql"')
    assert read(query, tmp_path).flows[0].source.query == "SELECT id FROM source"  # type: ignore[attr-defined]
    assert "flow 'trips', schema: 'none.avsc' cannot be read" in refused(FLOW + 'schema = "none.avsc"')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("name =", "nme ="), "flow 1: unknown 'nme'; did you mean 'name'?"),
        (('kind = "hudi"', 'kind = "kafkaa"'), "flow 'trips', source, kind: unknown 'kafkaa'; did you mean 'kafka'?"),
        (('path = "raw"', 'pth = "raw"'), "flow 'trips', source: unknown 'pth'; did you mean 'path'?"),
        ((', path = "raw"', ""), "flow 'trips': source hudi: path is missing"),
        (("record_key =", "record_keys ="), "flow 'trips', table, create: unknown 'record_keys'; did you mean"),
        (("create =", "creat ="), "flow 'trips', table: unknown 'creat'; did you mean 'create'?"),
        (('path = "lake/trips", ', ""), "flow 'trips', table: path is missing"),
        (('name = "trips"', 'name = "trips"\nlimit = "5"'), "flow 'trips', limit: expected a whole number, found '5'"),
        (('name = "trips"', 'name = "trips"\nlimit = true'), "flow 'trips', limit: expected a whole number"),
        (('name = "trips"', 'name = "trips"\nlimit = 0'), "flow 'trips': limit=0: expected a number from 1"),
        (('name = "trips"', 'name = "trips"\noperation = "upsrt"'), "flow 'trips': "),
        (('name = "trips"', 'name = "trips"\nthreads = 3'), "flow 'trips': threads belongs to the job, not to a flow"),
        (('name = "trips"', 'name = "trips"\nschema = { id = "strng" }'), "flow 'trips': "),
        (('name = "trips"', 'name = "trips"\ntransform = 7'), "flow 'trips', transform: expected SQL"),
        (('name = "trips"', 'name = "trips"\ntransform = [{ kind = "sql", qery = "" }]'), "did you mean 'query'?"),
        (
            ('name = "trips"', 'name = "trips"\nproperties = { "hoodie.clean.comits.retained" = 1 }'),
            "flow 'trips': unkno",
        ),
        (('"raw"', '"raw", start = 5'), "flow 'trips': source hudi, start: expected"),
        (("[[flow]]", "servces = 'off'\n[[flow]]"), "job: unknown 'servces'; did you mean 'services'?"),
        (("[[flow]]", "services = 'no'\n[[flow]]"), "job, services: expected inline, beside, off, found 'no'"),
        (("[[flow]]", "interval = -1\n[[flow]]"), "interval=-1: expected a number from 0"),
        (("[[flow]]", "spark = 5\n[[flow]]"), "job, spark: expected true, false or settings"),
        (("[[flow]]", "limit = 5\n[[flow]]"), "job: limit belongs in [defaults] or a [[flow]]"),
        (("[[flow]]", "[defaults]\nthreads = 5\n[[flow]]"), "defaults: threads belongs to the job: write it above"),
        (("[[flow]]", "[flow]"), "job: expected at least one [[flow]]"),
    ],
)
def test_what_is_wrong_is_named(change: tuple[str, str], message: str) -> None:
    assert message in refused(FLOW.replace(*change, 1))


def test_no_flow_and_equal_names_are_refused() -> None:
    assert "expected at least one [[flow]]" in refused("threads = 1")
    assert "flow 'trips': two flows have this name" in refused(FLOW + FLOW)
    with pytest.raises(InvalidConfigError, match="no flow 'trip' in the job; did you mean 'trips'"):
        read(FLOW).only(["trip"])


def test_variables_of_the_environment() -> None:
    text = FLOW.replace('"raw"', '"s3://${BUCKET}/raw", storage_options = { aws_region = "${KEY}" }')
    message = refused(text, BUCKET="b")
    assert "flow 'trips', source, storage_options, aws_region: the environment variable KEY is not" in message
    assert read(text, BUCKET="b", KEY="k").flows[0].source.path == "s3://b/raw"  # type: ignore[attr-defined]
    assert "defaults, operation: the environment variable OP" in refused('[defaults]\noperation = "${OP}"' + FLOW)
    escaped = FLOW.replace('"raw"', '"/$${raw}"')
    assert read(escaped).flows[0].source.path == "/${raw}"  # type: ignore[attr-defined]


def test_a_job_runs(tmp_path: Path) -> None:
    rows = {"id": ["a", "b"], "fare": [1.0, 2.0]}
    hoodie.create(tmp_path / "raw", rows, record_key="id", spark=False).upsert(rows)
    job = read(FLOW + 'transform = { kind = "sql", query = "SELECT * FROM source WHERE fare > 1" }', tmp_path)
    (result,) = Runner(flows=job.flows, pace=job.pace).run()
    assert (result.inserted, result.error) == (1, None)
    assert hoodie.open(tmp_path / "lake" / "trips", spark=False).to_arrow()["id"].to_pylist() == ["b"]
