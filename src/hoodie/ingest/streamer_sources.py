"""Sources and transformers of HoodieStreamer as options of a job file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

STREAMER: Final = "hoodie.streamer."
OLD: Final = "hoodie.deltastreamer."
_OWN_CLASSES: Final = "a class of the JVM; write a function instead (docs/ingest/README.md)"
_TRUE: Final = "true"


@dataclass(slots=True, kw_only=True)
class Given:
    """What a user of HoodieStreamer gave: properties and options of the command line; what is used is taken out.

    `comments`: what has no equivalent, with reasons. `flow` and `job`: keys of the job file that a source sets.
    """

    properties: dict[str, str]
    options: dict[str, list[str]]
    comments: list[str] = field(default_factory=list)
    flow: dict[str, Any] = field(default_factory=dict)
    job: dict[str, Any] = field(default_factory=dict)

    def take(self, name: str) -> str | None:
        """Take a property by its name behind `hoodie.streamer.`; the older name of it is read too."""
        found = [self.properties.pop(f"{prefix}{name}", None) for prefix in (STREAMER, OLD)]
        return next((value for value in found if value is not None), None)

    def take_all(self, prefix: str) -> dict[str, str]:
        """Take the properties that begin so behind `hoodie.streamer.`, by the rest of their names."""
        rests = [
            key[len(first) + len(prefix) :]
            for first in (STREAMER, OLD)
            for key in self.properties
            if key.startswith(f"{first}{prefix}")
        ]
        return {rest: value for rest in rests if (value := self.take(f"{prefix}{rest}")) is not None}

    def option(self, name: str) -> str | None:
        """Take an option of the command line; of several values the last one."""
        return self.options.pop(f"--{name}", [None])[-1]

    def comment(self, key: str, reason: str) -> None:
        """Take down that a property or option has no equivalent. Its value stays out, as it may be a password."""
        self.comments.append(f"{key}: {reason}")


def source_options(given: Given) -> dict[str, Any]:
    """Return the options of the source that `--source-class` names; none if it has no equivalent."""
    name = (given.option("source-class") or "JsonDFSSource").rpartition(".")[2]
    if name not in _SOURCES:
        given.comment("--source-class", f"{name}: write [flow.source] by hand, with a function or another kind")
        return {}
    return _SOURCES[name](given, name)


def _files(given: Given, name: str) -> dict[str, Any]:
    kind = name.removesuffix("DFSSource").lower()
    source: dict[str, Any] = {"kind": "files", "path": given.take("source.dfs.root") or "", "format": kind}
    csv = given.take_all("csv.")
    if kind == "csv":
        if csv.pop("header", "false").lower() != _TRUE:
            given.comment(f"{STREAMER}csv.header", "files of CSV need a line with the names of the columns")
        source["options"] = csv
    if limit := given.option("source-limit"):
        source["bytes_max"] = int(limit)
    if given.take("source.parquet.dfs.merge_schema.enable"):
        given.comment(
            f"{STREAMER}source.parquet.dfs.merge_schema.enable", "files of one batch are read by their columns"
        )
    return _without_empty(source)


def _kafka(given: Given, name: str) -> dict[str, Any]:
    kind = {"JsonKafkaSource": "json", "AvroKafkaSource": "avro"}.get(name, "debezium")
    reset = given.properties.pop("auto.offset.reset", "latest").lower()
    source: dict[str, Any] = {
        "kind": "kafka",
        "servers": given.properties.pop("bootstrap.servers", ""),
        "topic": given.take("source.kafka.topic") or "",
        "format": kind,
        "start": "earliest" if reset in ("earliest", "smallest") else "latest",
    }
    if (given.take("source.kafka.enable.failOnDataLoss") or _TRUE).lower() != _TRUE:
        source["gone"] = "skip"
    if (given.take("source.kafka.append.offsets") or "").lower() == _TRUE:
        source["metadata_columns"] = True
        given.comment(f"{STREAMER}source.kafka.append.offsets", "metadata_columns has other names than JVM Hudi's")
    limit = given.option("source-limit") or given.take("kafka.source.maxEvents")
    if limit:
        given.flow["limit"] = int(limit)
    _schema_of_kafka(given, source)
    if kind == "debezium":
        source["debezium_columns"] = _DEBEZIUM_ORDER[name]
    source["options"] = _client_options(given)
    for key in ("source.kafka.value.deserializer.class", "source.kafka.minPartitions"):
        if given.take(key):
            given.comment(
                f"{STREAMER}{key}", "the format decides how values are decoded, the limit how they are divided"
            )
    return _without_empty(source)


def _schema_of_kafka(given: Given, source: dict[str, Any]) -> None:
    registry = given.take("schemaprovider.registry.url")
    file = given.take("schemaprovider.source.schema.file")
    if file:
        source["schema_file"] = file
    if registry and source["format"] == "avro":
        source["registry"] = registry.partition("/subjects/")[0]
    elif registry:
        given.comment(f"{STREAMER}schemaprovider.registry.url", "a registry is used for Avro only; give schema_file")


_DEBEZIUM_ORDER: Final[Mapping[str, list[str]]] = {
    "PostgresDebeziumSource": ["_event_lsn"],
    "MysqlDebeziumSource": ["_event_bin_file", "_event_pos"],
}
"""Columns by which JVM Hudi orders the events of a database."""


def _debezium(given: Given, name: str) -> dict[str, Any]:
    given.comment("--source-class", f"{name}: events are read as JSON; events in Avro need Debezium's JSON converter")
    return _kafka(given, name)


def _client_options(given: Given) -> dict[str, str]:
    """Take the options of Kafka's Java client that librdkafka has under the same name."""
    found = {}
    for key in [key for key in given.properties if not key.startswith("hoodie.")]:
        value = given.properties.pop(key)
        if key in _JAVA_CLIENT or key.startswith(("ssl.truststore", "ssl.keystore", "key.", "value.", "schema.")):
            given.comment(key, _JAVA_CLIENT.get(key, "an option of the Java client that librdkafka lacks"))
        elif "password" in key or "secret" in key:
            found[key] = _variable(key)
            given.comment(key, f"set the environment variable {_variable(key)[2:-1]}")
        else:
            found[key] = value
    return found


_JAVA_CLIENT: Final[Mapping[str, str]] = {
    "sasl.jaas.config": 'librdkafka has options = { "sasl.username" = "…", "sasl.password" = "${KAFKA_PASSWORD}" }',
    "include": "copy the properties of that file into this one first",
}


def _hudi(given: Given, name: str) -> dict[str, Any]:
    source: dict[str, Any] = {"kind": "hudi", "path": given.take("source.hoodieincr.path") or ""}
    latest = given.take("source.hoodieincr.read_latest_on_missing_ckpt")
    strategy = given.take("source.hoodieincr.missing.checkpoint.strategy")
    if strategy == "READ_LATEST" or (latest or "").lower() == _TRUE:
        source["start"] = "latest"
    if (given.properties.pop("hoodie.datasource.read.incr.fallback.fulltablescan.enable", "")).lower() == _TRUE:
        source["restart"] = "snapshot"
    if limit := given.take("source.hoodieincr.num_instants"):
        given.flow["limit"] = int(limit)
    for key in ("drop.all.meta.fields.from.source", "partition.fields", "partition.extractor.class"):
        if given.take(f"source.hoodieincr.{key}"):
            given.comment(f"{STREAMER}source.hoodieincr.{key}", "rows come without the metadata columns of their table")
    return _without_empty(source)


def _jdbc(given: Given, name: str) -> dict[str, Any]:
    extra = {key.lower(): value for key, value in given.take_all("jdbc.extra.options.").items()}
    source: dict[str, Any] = {
        "kind": "jdbc",
        "url": given.take("jdbc.url") or "",
        "table": given.take("jdbc.table.name") or "",
        "user": given.take("jdbc.user") or "",
        "driver": given.take("jdbc.driver.class") or "",
        "partition_column": extra.pop("partitioncolumn", ""),
        "partitions": int(extra.pop("numpartitions", "0")),
        "fetch_size": int(extra.pop("fetchsize", "0")),
    }
    if source["partitions"] and not source["partition_column"]:
        del source["partitions"]
    column = given.take("jdbc.table.incr.column.name")
    if (given.take("jdbc.incr.pull") or "").lower() == _TRUE:
        source["column"] = column or ""
    for key in ("jdbc.password", "jdbc.password.file"):
        if given.take(key) is not None:
            source["password"] = "${JDBC_PASSWORD}"
            given.comment(f"{STREAMER}{key}", "set the environment variable JDBC_PASSWORD")
    for key in ("jdbc.incr.fallback.to.full.fetch", "jdbc.storage.level"):
        if given.take(key):
            given.comment(f"{STREAMER}{key}", "a flow goes on from its place or fails; rows are not cached")
    for key in ("lowerbound", "upperbound"):
        if extra.pop(key, None):
            given.comment(f"{STREAMER}jdbc.extra.options.{key}", "the bounds of each batch are taken from its rows")
    source["options"] = extra
    if limit := given.option("source-limit"):
        given.flow["limit"] = int(limit)
    return _without_empty(source)


def _sql(given: Given, name: str) -> dict[str, Any]:
    given.take("source.sql.checkpoint.emit")
    if name == "SqlSource":
        return {"kind": "query", "query": given.take("source.sql.sql.query") or ""}
    return {"kind": "query", "file": given.take("source.sql.file") or ""}


_SOURCES: Final[Mapping[str, Callable[[Given, str], dict[str, Any]]]] = {
    **dict.fromkeys((f"{kind}DFSSource" for kind in ("Parquet", "Json", "Csv", "Avro", "ORC")), _files),
    **dict.fromkeys(("JsonKafkaSource", "AvroKafkaSource"), _kafka),
    **dict.fromkeys(("PostgresDebeziumSource", "MysqlDebeziumSource"), _debezium),
    "HoodieIncrSource": _hudi,
    "JdbcSource": _jdbc,
    **dict.fromkeys(("SqlSource", "SqlFileBasedSource"), _sql),
}
"""The sources of JVM Hudi by the simple names of their classes."""


def transform_options(given: Given) -> list[dict[str, Any]]:
    """Return the options of the transforms that `--transformer-class` names, in their order."""
    found: list[dict[str, Any]] = []
    for text in filter(None, (given.option("transformer-class") or "").split(",")):
        identifier, _, name = text.strip().rpartition(":")
        name, suffix = name.rpartition(".")[2], f".{identifier}" if identifier else ""
        if name == "SqlQueryBasedTransformer":
            query = given.take(f"transformer.sql{suffix}") or given.take("transformer.sql")
            found.append({"kind": "sql", "query": query or ""})
        elif name == "SqlFileBasedTransformer":
            file = given.take(f"transformer.sql.file{suffix}") or given.take("transformer.sql.file")
            found.append({"kind": "sql", "file": file or ""})
            given.comment(f"{STREAMER}transformer.sql.file", "of several statements in the file, a query alone is run")
        elif name == "FlatteningTransformer":
            found.append({"kind": "flatten"})
        elif name != "ChainedTransformer":
            given.comment("--transformer-class", f"{name}: {_OWN_CLASSES}")
    return found


def _variable(key: str) -> str:
    return f"${{{key.upper().replace('.', '_').replace('-', '_')}}}"


def _without_empty(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are given; of needed ones, an empty text makes the job file incomplete, with an error."""
    return {
        key: value for key, value in options.items() if value or key in ("path", "servers", "topic", "url", "table")
    }
