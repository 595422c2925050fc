"""Job files made of properties and options of HoodieStreamer."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from hoodie.errors import InvalidConfigError
from hoodie.ingest.job import job_of
from hoodie.ingest.properties import job_text

UTILITIES = "org.apache.hudi.utilities."
ENVIRONMENT = {"JDBC_PASSWORD": "p", "SASL_PASSWORD": "p"}


def made(source: str, properties: str, **options: str) -> tuple[dict[str, Any], str]:
    """The job file of a source class, parsed, and its text; a job is made of it."""
    given = {"--source-class": [f"{UTILITIES}sources.{source}"], "--target-base-path": ["/lake/trips"]}
    given |= {f"--{name.replace('_', '-')}": [value] for name, value in options.items()}
    text = job_text(properties, given)
    document = tomllib.loads(text)
    job_of(document, folder="/jobs", environment=ENVIRONMENT)
    return document, text


def source(name: str, properties: str, **options: str) -> dict[str, Any]:
    found: dict[str, Any] = made(name, properties, **options)[0]["flow"][0]["source"]
    return found


def comments(text: str) -> list[str]:
    return [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")]


@pytest.mark.parametrize("kind", ["Parquet", "Json", "Csv", "Avro", "ORC"])
@pytest.mark.parametrize("prefix", ["hoodie.streamer", "hoodie.deltastreamer"])
def test_files(kind: str, prefix: str) -> None:
    found = source(f"{kind}DFSSource", f"{prefix}.source.dfs.root=/landing\n", source_limit="5000")
    assert found == {"kind": "files", "path": "/landing", "format": kind.lower(), "bytes_max": 5000}


def test_options_of_csv() -> None:
    properties = "hoodie.streamer.source.dfs.root=/l\nhoodie.streamer.csv.sep=;\nhoodie.streamer.csv.header=true"
    assert source("CsvDFSSource", properties)["options"] == {"sep": ";"}


def test_kafka_with_a_flow_of_transforms() -> None:
    document, text = made(
        "JsonKafkaSource",
        """
        hoodie.streamer.source.kafka.topic=trips
        bootstrap.servers=a:9092,b:9092
        auto.offset.reset=earliest
        hoodie.streamer.source.kafka.enable.failOnDataLoss=false
        sasl.password=hidden
        sasl.jaas.config=also hidden
        hoodie.streamer.transformer.sql=SELECT a, "b" FROM <SRC> WHERE c = 'x=y'
        """,
        source_limit="500",
        transformer_class=f"{UTILITIES}transform.SqlQueryBasedTransformer,"
        f"{UTILITIES}transform.FlatteningTransformer,com.example.Own",
    )
    (flow,) = document["flow"]
    assert flow["source"] == {
        "kind": "kafka",
        "servers": "a:9092,b:9092",
        "topic": "trips",
        "format": "json",
        "start": "earliest",
        "gone": "skip",
        "options": {"sasl.password": "${SASL_PASSWORD}"},
    }
    query = "SELECT a, \"b\" FROM <SRC> WHERE c = 'x=y'"
    assert flow["transform"] == [{"kind": "sql", "query": query}, {"kind": "flatten"}]
    assert (flow["limit"], document["spark"]) == (500, True)
    assert "hidden" not in text
    named = "\n".join(comments(text))
    assert "sasl.jaas.config: " in named
    assert "Own: a class of the JVM" in named


def test_other_kinds_of_kafka() -> None:
    topic = "hoodie.streamer.source.kafka.topic=t\nbootstrap.servers=a:9\n"
    url = "hoodie.streamer.schemaprovider.registry.url=http://r:8081/subjects/t-value/versions/latest\n"
    avro = source("AvroKafkaSource", topic + url)
    assert (avro["format"], avro["registry"], avro["start"]) == ("avro", "http://r:8081", "latest")
    postgres = source("debezium.PostgresDebeziumSource", topic)
    assert (postgres["format"], postgres["debezium_columns"]) == ("debezium", ["_event_lsn"])
    mysql = source("debezium.MysqlDebeziumSource", topic)
    assert mysql["debezium_columns"] == ["_event_bin_file", "_event_pos"]


def test_hudi_tables() -> None:
    document, _ = made(
        "HoodieIncrSource",
        """
        hoodie.deltastreamer.source.hoodieincr.path=s3://lake/raw
        hoodie.deltastreamer.source.hoodieincr.num_instants=3
        hoodie.streamer.source.hoodieincr.missing.checkpoint.strategy=READ_LATEST
        hoodie.datasource.read.incr.fallback.fulltablescan.enable=true
        """,
    )
    (flow,) = document["flow"]
    assert flow["source"] == {"kind": "hudi", "path": "s3://lake/raw", "start": "latest", "restart": "snapshot"}
    assert flow["limit"] == 3


def test_databases() -> None:
    properties = """
        hoodie.streamer.jdbc.url=jdbc:postgresql://db/x
        hoodie.streamer.jdbc.user=me
        hoodie.streamer.jdbc.password=hidden
        hoodie.streamer.jdbc.driver.class=org.postgresql.Driver
        hoodie.streamer.jdbc.table.name=trips
        hoodie.streamer.jdbc.table.incr.column.name=changed
        hoodie.streamer.jdbc.incr.pull=true
        hoodie.streamer.jdbc.extra.options.fetchsize=1000
        hoodie.streamer.jdbc.extra.options.partitionColumn=id
        hoodie.streamer.jdbc.extra.options.numPartitions=4
        hoodie.streamer.jdbc.extra.options.lowerBound=0
        hoodie.streamer.jdbc.incr.fallback.to.full.fetch=true
    """
    document, text = made("JdbcSource", properties)
    assert document["flow"][0]["source"] == {
        "kind": "jdbc",
        "url": "jdbc:postgresql://db/x",
        "table": "trips",
        "user": "me",
        "driver": "org.postgresql.Driver",
        "partition_column": "id",
        "partitions": 4,
        "fetch_size": 1000,
        "column": "changed",
        "password": "${JDBC_PASSWORD}",
    }
    assert "hidden" not in text
    assert [line.partition(":")[0] for line in comments(text)[2:]] == [
        "hoodie.streamer.jdbc.password",
        "hoodie.streamer.jdbc.incr.fallback.to.full.fetch",
        "hoodie.streamer.jdbc.extra.options.lowerBound",
    ]


def test_comments_have_the_keys_of_the_file() -> None:
    prefix = "hoodie.deltastreamer."
    keys = [f"{prefix}{name}" for name in ("jdbc.password", "jdbc.storage.level", "jdbc.extra.options.upperBound")]
    text = job_text("".join(f"{key}=x\n" for key in keys), {"--source-class": ["JdbcSource"]})
    assert [line.partition(":")[0] for line in comments(text)[2:]] == keys
    key = f"{prefix}source.kafka.append.offsets"
    assert f"# {key}: " in job_text(f"{key}=true", {"--source-class": ["JsonKafkaSource"]})


def test_a_query() -> None:
    found = source("SqlSource", "hoodie.streamer.source.sql.sql.query=SELECT 1 AS id")
    assert found == {"kind": "query", "query": "SELECT 1 AS id"}


def test_the_table_and_its_writes() -> None:
    document, text = made(
        "ParquetDFSSource",
        """
        hoodie.streamer.source.dfs.root=/l
        hoodie.datasource.write.recordkey.field=id,city
        hoodie.datasource.write.partitionpath.field=city
        hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.ComplexKeyGenerator
        hoodie.datasource.write.hive_style_partitioning=true
        hoodie.cleaner.commits.retained=4
        hoodie.upsert.shuffle.parallelism=200
        hoodie.datasource.hive_sync.enable=true
        hoodie.index.type=GLOBAL_SIMPLE
        hoodie.streamer.unheard.of=1
        hoodie.unheard.of=secret
        other=1
        """,
        table_type="MERGE_ON_READ",
        target_table="rides",
        source_ordering_field="ts",
        op="BULK_INSERT",
        continuous="true",
        min_sync_interval_seconds="60",
        checkpoint="17",
        ignore_checkpoint="again",
        commit_on_errors="true",
        enable_sync="true",
        max_pending_compactions="3",
        hoodie_conf="hoodie.parquet.max.file.size=5000",
        schemaprovider_class="x",
        retry_on_source_failures="true",
        max_retry_count="5",
    )
    (flow,) = document["flow"]
    assert (document["continuous"], document["interval"], document["services"]) == (True, 60, "beside")
    assert (document["retries"], document["back_off"]) == (5, 30)
    assert flow["table"] == {
        "path": "/lake/trips",
        "create": {
            "record_key": ["id", "city"],
            "partition_by": "city",
            "ordering": "ts",
            "type": "merge_on_read",
            "name": "rides",
            "key_generator": "complex",
            "index": "global_simple",
            "properties": {"hoodie.datasource.write.hive_style_partitioning": "true"},
        },
    }
    assert flow["properties"] == {"hoodie.clean.commits.retained": "4", "hoodie.parquet.max.file.size": "5000"}
    assert (flow["name"], flow["operation"], flow["bad_rows"]) == ("rides", "bulk_insert", "skip")
    assert (flow["checkpoint"], flow["ignore_checkpoint"]) == ("17", "again")
    named = {line.partition(":")[0] for line in comments(text)[2:]}
    assert named == {
        "hoodie.upsert.shuffle.parallelism",
        "hoodie.datasource.hive_sync.enable",
        "hoodie.streamer.unheard.of",
        "hoodie.unheard.of",
        "other",
        "--enable-sync",
        "--max-pending-compactions",
        "--schemaprovider-class",
    }
    assert "secret" not in text


def test_payloads_and_batches_without_end() -> None:
    root = "hoodie.streamer.source.dfs.root=/l\nhoodie.datasource.write.recordkey.field=id\n"
    document, _ = made(
        "JsonDFSSource",
        root + "hoodie.deltastreamer.multiwriter.source.checkpoint.id=job1",
        table_type="MERGE_ON_READ",
        payload_class="org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
    )
    (flow,) = document["flow"]
    assert flow["table"]["create"]["merge_mode"] == "commit_time"
    assert flow["properties"] == {"hoodie.compact.inline": "true"}
    assert (flow["name"], flow["is_named"], document["continuous"]) == ("job1", True, False)


def test_what_no_job_can_be_made_of() -> None:
    given = {"--source-class": ["com.example.Own"], "--target-base-path": ["/lake/t"], "--op": ["DELETE_PARTITION"]}
    text = job_text("include=base.properties\n# a comment\nno value\n", given)
    (flow,) = tomllib.loads(text)["flow"]
    assert "source" not in flow
    named = "\n".join(comments(text))
    for part in (
        "include=base.properties: not read",
        "no: the line is not read",
        "Own: write",
        "--op: delete_partition",
    ):
        assert part in named


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("JsonDFSSource", "--min-sync-interval-seconds"),
        ("JsonDFSSource", "--max-retry-count"),
        ("JsonDFSSource", "--retry-interval-seconds"),
        ("JsonDFSSource", "--source-limit"),
        ("JsonKafkaSource", "--source-limit"),
        ("JsonKafkaSource", "hoodie.streamer.kafka.source.maxEvents"),
        ("JsonKafkaSource", "hoodie.deltastreamer.kafka.source.maxEvents"),
        ("HoodieIncrSource", "hoodie.streamer.source.hoodieincr.num_instants"),
        ("HoodieIncrSource", "hoodie.deltastreamer.source.hoodieincr.num_instants"),
        ("JdbcSource", "hoodie.streamer.jdbc.extra.options.numpartitions"),
        ("JdbcSource", "hoodie.deltastreamer.jdbc.extra.options.numPartitions"),
        ("JdbcSource", "hoodie.streamer.jdbc.extra.options.fetchsize"),
    ],
)
def test_a_text_that_is_no_number_is_refused_with_its_key(name: str, key: str) -> None:
    given = {"--source-class": [name], "--target-base-path": ["/lake/t"], "--retry-on-source-failures": ["true"]}
    properties = "" if key.startswith("--") else f"{key}=many"
    given |= {key: ["many"]} if key.startswith("--") else {}
    with pytest.raises(InvalidConfigError) as raised:
        job_text(properties, given)
    assert str(raised.value) == f"{key}: expected a whole number, found 'many' (str)"
