"""Sources and transformers of HoodieStreamer as options of a job file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hoodie.arguments import shown
from hoodie.config.option import whole
from hoodie.errors import InvalidConfigError

STREAMER: Final = "hoodie.streamer."
OLD: Final = "hoodie.deltastreamer."
_OWN_CLASSES: Final = "a class of the JVM; write a function instead (docs/ingest/README.md)"
_TRUE: Final = "true"
_EXTRA: Final = "jdbc.extra.options."


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
    _keys: dict[str, str] = field(default_factory=dict, init=False)
    """Keys of the properties that were taken, by their names behind the prefix."""

    def take(self, name: str) -> str | None:
        """Take a property by its name behind `hoodie.streamer.`; the older name of it is read too."""
        keys = [key for key in (f"{STREAMER}{name}", f"{OLD}{name}") if key in self.properties]
        values = [self.properties.pop(key) for key in keys]
        if not keys:
            return None
        self._keys[name] = keys[0]
        return values[0]

    def key(self, name: str) -> str:
        """Return the key of a property that was taken, as the user wrote it; the newer key if it was not given."""
        return self._keys.get(name, f"{STREAMER}{name}")

    def take_all(self, prefix: str) -> dict[str, str]:
        """Take the properties that begin so behind `hoodie.streamer.`, by the rest of their names."""
        rests = [
            key[len(first) + len(prefix) :]
            for first in (STREAMER, OLD)
            for key in self.properties
            if key.startswith(f"{first}{prefix}")
        ]
        return {rest: value for rest in rests if (value := self.take(f"{prefix}{rest}")) is not None}

    def is_true(self, name: str, default: str = "false") -> bool:
        """Take a property, and return whether it is `true`."""
        return (self.take(name) or default).lower() == _TRUE

    def take_each(self, names: Mapping[str, str]) -> dict[str, Any]:
        """Take properties, and return their values by the names of options; without a value, an empty text."""
        return {option: self.take(name) or "" for option, name in names.items()}

    def refuse(self, reason: str, *names: str) -> None:
        """Take properties that have no equivalent, and take down those that are given."""
        for name in names:
            if self.take(name):
                self.comment(self.key(name), reason)

    def set_limit(self, *names: str) -> None:
        """Take the limit of a batch: an option of the command line, or one of the properties.

        Raises: InvalidConfigError if it is no whole number.
        """
        limits = [("--source-limit", self.option("source-limit"))]
        limits += [(self.key(name), text) for name in names if (text := self.take(name))]
        if given := [(key, text) for key, text in limits if text]:
            self.flow["limit"] = whole_number(*given[0])

    def option(self, name: str) -> str | None:
        """Take an option of the command line; of several values the last one."""
        return self.options.pop(f"--{name}", [None])[-1]

    def comment(self, key: str, reason: str) -> None:
        """Take down that a property or option has no equivalent. Its value stays out, as it may be a password."""
        self.comments.append(f"{key}: {reason}")


def whole_number(key: str, text: str) -> int:
    """Return the number of a property or option. Raises: InvalidConfigError for another text.

    >>> whole_number("--source-limit", "5000")
    5000
    """
    try:
        return whole(text)
    except ValueError as error:
        raise InvalidConfigError(f"{key}: {error}, found {shown(text)}") from error


def source_options(given: Given) -> dict[str, Any]:
    """Return the options of the source that `--source-class` names; none if it has no equivalent."""
    name = (given.option("source-class") or "JsonDFSSource").rpartition(".")[2]
    if name not in _SOURCES:
        given.comment("--source-class", f"{name}: write [flow.source] by hand, with a function or another kind")
        return {}
    # Of needed options, an empty text makes the job file incomplete, with an error.
    return {key: value for key, value in _SOURCES[name](given, name).items() if value or key in _NEEDED}


def _files(given: Given, name: str) -> dict[str, Any]:
    kind = name.removesuffix("DFSSource").lower()
    source: dict[str, Any] = {"kind": "files", "path": given.take("source.dfs.root") or "", "format": kind}
    csv = given.take_all("csv.")
    if kind == "csv":
        if csv.pop("header", "false").lower() != _TRUE:
            given.comment(given.key("csv.header"), "files of CSV need a line with the names of the columns")
        source["options"] = csv
    if limit := given.option("source-limit"):
        source["bytes_max"] = whole_number("--source-limit", limit)
    given.refuse("files of one batch are read by their columns", "source.parquet.dfs.merge_schema.enable")
    return source


def _kafka(given: Given, name: str) -> dict[str, Any]:
    kind = {"JsonKafkaSource": "json", "AvroKafkaSource": "avro"}.get(name, "debezium")
    if kind == "debezium":
        about = "events are read as JSON; events in Avro need Debezium's JSON converter"
        given.comment("--source-class", f"{name}: {about}")
    reset = given.properties.pop("auto.offset.reset", "latest").lower()
    source: dict[str, Any] = {
        "kind": "kafka",
        "servers": given.properties.pop("bootstrap.servers", ""),
        "topic": given.take("source.kafka.topic") or "",
        "format": kind,
        "start": "earliest" if reset in ("earliest", "smallest") else "latest",
        "gone": "" if given.is_true("source.kafka.enable.failOnDataLoss", _TRUE) else "skip",
    }
    if given.is_true("source.kafka.append.offsets"):
        source["metadata_columns"] = True
        about = "metadata_columns has other names than JVM Hudi's"
        given.comment(given.key("source.kafka.append.offsets"), about)
    given.set_limit("kafka.source.maxEvents")
    source["schema_file"] = given.take("schemaprovider.source.schema.file")
    if kind == "avro":
        source["registry"] = (given.take("schemaprovider.registry.url") or "").partition("/subjects/")[0]
    given.refuse("a registry is used for Avro only; give schema_file", "schemaprovider.registry.url")
    source["debezium_columns"] = _DEBEZIUM_ORDER.get(name)
    source["options"] = _client_options(given)
    given.refuse(
        "the format decides how values are decoded, the limit how they are divided",
        "source.kafka.value.deserializer.class",
        "source.kafka.minPartitions",
    )
    return source


_DEBEZIUM_ORDER: Final[Mapping[str, list[str]]] = {
    "PostgresDebeziumSource": ["_event_lsn"],
    "MysqlDebeziumSource": ["_event_bin_file", "_event_pos"],
}
"""Columns by which JVM Hudi orders the events of a database."""
_JAVA_CLIENT: Final[Mapping[str, str]] = {
    "sasl.jaas.config": 'librdkafka has options = { "sasl.username" = "…", "sasl.password" = "${KAFKA_PASSWORD}" }',
    "include": "copy the properties of that file into this one first",
}


def _client_options(given: Given) -> dict[str, str]:
    """Take the options of Kafka's Java client that librdkafka has under the same name."""
    found = {}
    for key in [key for key in given.properties if not key.startswith("hoodie.")]:
        value = given.properties.pop(key)
        if key in _JAVA_CLIENT or key.startswith(("ssl.truststore", "ssl.keystore", "key.", "value.", "schema.")):
            given.comment(key, _JAVA_CLIENT.get(key, "an option of the Java client that librdkafka lacks"))
        elif "password" in key or "secret" in key:
            variable = key.upper().replace(".", "_").replace("-", "_")
            found[key] = f"${{{variable}}}"
            given.comment(key, f"set the environment variable {variable}")
        else:
            found[key] = value
    return found


def _hudi(given: Given, _name: str) -> dict[str, Any]:
    prefix = "source.hoodieincr."
    is_latest = given.is_true(f"{prefix}read_latest_on_missing_ckpt")
    is_latest |= given.take(f"{prefix}missing.checkpoint.strategy") == "READ_LATEST"
    again = given.properties.pop("hoodie.datasource.read.incr.fallback.fulltablescan.enable", "").lower() == _TRUE
    if limit := given.take(f"{prefix}num_instants"):
        given.flow["limit"] = whole_number(given.key(f"{prefix}num_instants"), limit)
    names = ("drop.all.meta.fields.from.source", "partition.fields", "partition.extractor.class")
    given.refuse("rows come without the metadata columns of their table", *(f"{prefix}{name}" for name in names))
    return {
        "kind": "hudi",
        "path": given.take(f"{prefix}path") or "",
        "start": "latest" if is_latest else "",
        "restart": "snapshot" if again else "",
    }


def _jdbc(given: Given, _name: str) -> dict[str, Any]:
    options = given.take_all(_EXTRA)
    extra = {name.lower(): value for name, value in options.items()}
    keys = {name.lower(): given.key(f"{_EXTRA}{name}") for name in options}

    def number(name: str) -> int:
        return whole_number(keys.get(name, name), extra.pop(name, "0"))

    names = {"url": "jdbc.url", "table": "jdbc.table.name", "user": "jdbc.user", "driver": "jdbc.driver.class"}
    source: dict[str, Any] = {
        "kind": "jdbc",
        **given.take_each(names),
        "partition_column": extra.pop("partitioncolumn", ""),
        "partitions": number("numpartitions"),
        "fetch_size": number("fetchsize"),
    }
    if not source["partition_column"]:
        source["partitions"] = 0
    column = given.take("jdbc.table.incr.column.name")
    source["column"] = column if given.is_true("jdbc.incr.pull") else ""
    for name in ("jdbc.password", "jdbc.password.file"):
        if given.take(name) is not None:
            source["password"] = "${JDBC_PASSWORD}"
            given.comment(given.key(name), "set the environment variable JDBC_PASSWORD")
    about = "a flow goes on from its place or fails; rows are not cached"
    given.refuse(about, "jdbc.incr.fallback.to.full.fetch", "jdbc.storage.level")
    for name in ("lowerbound", "upperbound"):
        if extra.pop(name, None):
            given.comment(keys[name], "the bounds of each batch are taken from its rows")
    given.set_limit()
    return {**source, "options": extra}


def _sql(given: Given, name: str) -> dict[str, Any]:
    given.take("source.sql.checkpoint.emit")
    names = {"query": "source.sql.sql.query"} if name == "SqlSource" else {"file": "source.sql.file"}
    return {"kind": "query", **given.take_each(names)}


_NEEDED: Final = ("path", "servers", "topic", "url", "table", "query", "file")
_SOURCES: Final[Mapping[str, Callable[[Given, str], dict[str, Any]]]] = {
    **dict.fromkeys((f"{kind}DFSSource" for kind in ("Parquet", "Json", "Csv", "Avro", "ORC")), _files),
    **dict.fromkeys(("JsonKafkaSource", "AvroKafkaSource", *_DEBEZIUM_ORDER), _kafka),
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
        if name in ("SqlQueryBasedTransformer", "SqlFileBasedTransformer"):
            option, key = ("query", "transformer.sql") if "Query" in name else ("file", "transformer.sql.file")
            found.append({"kind": "sql", option: given.take(f"{key}{suffix}") or given.take(key) or ""})
        if name == "SqlFileBasedTransformer":
            given.comment(given.key("transformer.sql.file"), "of several statements in the file, a query alone is run")
        elif name == "FlatteningTransformer":
            found.append({"kind": "flatten"})
        elif name not in ("SqlQueryBasedTransformer", "ChainedTransformer"):
            given.comment("--transformer-class", f"{name}: {_OWN_CLASSES}")
    return found
