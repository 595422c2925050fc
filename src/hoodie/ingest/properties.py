"""Job files made of properties files and command lines of HoodieStreamer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hoodie.config.translation import translated
from hoodie.errors import HoodieError
from hoodie.format.table import table_keys
from hoodie.format.table.call_options import check_call_options, is_table_property
from hoodie.ingest.streamer_sources import Given, source_options, transform_options, whole_number

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_MERGE_MODES: Final = {"EVENT_TIME_ORDERING": "event_time", "COMMIT_TIME_ORDERING": "commit_time"}
_INDEXES: Final = {"RECORD_INDEX": "record", "GLOBAL_RECORD_LEVEL_INDEX": "record"}
_OPERATIONS: Final = ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table")
_FLAGS: Final = ("true", "")
_REASONS: Final[Mapping[str, str]] = {
    "--enable-hive-sync": "no catalog is synchronised; run a sync tool of Hudi after the job",
    "--enable-sync": "no catalog is synchronised; run a sync tool of Hudi after the job",
    "--sync-tool-classes": "no catalog is synchronised; run a sync tool of Hudi after the job",
    "--schemaprovider-class": "schemas come from schema, schema_file or registry of the source, else from the table",
    "--payload-class": "give create.merge_mode, or the property hoodie.datasource.write.payload.class",
    "--base-file-format": "base files are Parquet",
    "--max-pending-compactions": "compactions never wait for a batch, nor a batch for them",
    "--max-pending-clustering": "clusterings never wait for a batch, nor a batch for them",
    "--run-bootstrap": "use `hoodie adopt`",
    "--post-write-termination-strategy-class": "use --once, or --max-batches",
    "--initial-checkpoint-provider": "give checkpoint a place",
    "--props": "it is the file that was read",
    "--allow-commit-on-no-checkpoint-change": "a batch without rows is not committed",
    "--disable-compaction": "tables of the type copy_on_write have nothing to compact",
}
_SCHEDULING: Final = re.compile(r"--.*-(weight|minshare)|--spark-.*|--.*hot-update.*|--.*metrics.*")


def job_text(text: str, options: Mapping[str, Sequence[str]]) -> str:
    """Return a job file for a properties file of HoodieStreamer and options of its command line.

    `options` have a list of values by names such as `--source-class`. Each property or option that has no equivalent is
    a comment with the reason; its value is left out, as it may be a password.

    Raises: InvalidConfigError if a value that is used is no whole number where one is expected.

    >>> made = job_text("hoodie.streamer.source.dfs.root=/landing", {"--target-base-path": ["/lake/trips"]})
    >>> print(made.partition("[flow.source]")[2].partition("[flow.table]")[0].strip())
    kind = "files"
    path = "/landing"
    format = "json"
    """
    given = Given(properties={}, options={name: list(values) for name, values in options.items()})
    _read(text.splitlines(), given)
    _read(given.options.pop("--hoodie-conf", []), given)
    source, transforms = source_options(given), transform_options(given)
    _set_pace(given)
    flow = {"name": _flow_name(given), **given.flow, **_flow(given)}
    if transforms:
        flow["transform"] = transforms
    table, properties = _table(given)
    _comment_rest(given)
    return "\n".join(_lines(given, flow, {"source": source, "table": table, "properties": properties}))


def _read(lines: Sequence[str], given: Given) -> None:
    """Add lines of properties; HoodieStreamer divides them at the first `=`."""
    for line in map(str.strip, lines):
        name, has_value, value = line.partition("=")
        if not line or line.startswith("#"):
            continue
        if name.strip() == "include":
            given.comment(line, "not read: copy the properties of that file into this one")
        elif not has_value:
            given.comment(re.split(r"[\s:]", line)[0], "the line is not read, because it has no `=`")
        else:
            given.properties[name.strip()] = value.strip()


def _set_pace(given: Given) -> None:
    given.job["continuous"] = given.option("continuous") in _FLAGS
    if seconds := given.option("min-sync-interval-seconds"):
        given.job["interval"] = whole_number("--min-sync-interval-seconds", seconds)
    if given.option("retry-on-source-failures") in _FLAGS:
        given.job["retries"] = whole_number("--max-retry-count", given.option("max-retry-count") or "3")
        seconds = given.option("retry-interval-seconds") or "30"
        given.job["back_off"] = max(whole_number("--retry-interval-seconds", seconds), 1)
    master = given.option("spark-master")
    given.job["spark"] = {"spark.master": master} if master else True


def _flow_name(given: Given) -> str:
    name = given.properties.pop("hoodie.deltastreamer.multiwriter.source.checkpoint.id", None)
    if name:
        given.flow["is_named"] = True
    path = (given.options.get("--target-base-path") or ["ingest"])[-1].rstrip("/")
    return name or (given.options.get("--target-table") or [path.rpartition("/")[2]])[-1]


def _flow(given: Given) -> dict[str, Any]:
    """Return keys of the flow that do not depend on its source."""
    operation = (given.option("op") or given.properties.pop("hoodie.datasource.write.operation", "upsert")).lower()
    found: dict[str, Any] = {"operation": operation}
    if operation not in _OPERATIONS:
        given.comment("--op", f"{operation}: expected one of {', '.join(_OPERATIONS)}; the flow upserts")
        found["operation"] = "upsert"
    for option, key in (("checkpoint", "checkpoint"), ("ignore-checkpoint", "ignore_checkpoint")):
        if value := given.option(option):
            found[key] = value
    if given.option("commit-on-errors") in _FLAGS:
        found["bad_rows"] = "skip"
    if given.properties.pop("hoodie.errortable.enable", "false").lower() == "true":
        found["bad_rows"] = given.properties.pop("hoodie.errortable.base.path", "skip")
    if given.option("filter-dupes") in _FLAGS:
        given.properties.setdefault("hoodie.datasource.write.insert.drop.duplicates", "true")
    return found


def _table(given: Given) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the table, and the options of its writes."""
    kind = (given.option("table-type") or "COPY_ON_WRITE").lower()
    name, payload = given.option("target-table"), given.option("payload-class")
    ordering = given.option("source-ordering-field") or given.option("source-ordering-fields")
    if payload:
        given.properties.setdefault("hoodie.datasource.write.payload.class", payload)
    if ordering:
        given.properties.setdefault("hoodie.datasource.write.precombine.field", ordering)
    mode = given.option("merge-mode") or given.option("record-merge-mode")
    if mode:
        given.properties.setdefault("hoodie.record.merge.mode", mode)
    properties = _write_options(given)
    create: dict[str, Any] = {
        "record_key": _names(properties.pop(table_keys.RECORD_KEY_FIELDS, "")),
        "partition_by": _names(properties.pop(table_keys.PARTITION_FIELDS, "")),
        "ordering": _names(properties.pop(table_keys.ORDERING_FIELDS, "")),
        "type": properties.pop(table_keys.TYPE, kind).lower(),
        "name": properties.pop(table_keys.NAME, name),
        "key_generator": properties.pop("hoodie.table.keygenerator.type", "").lower(),
        "merge_mode": _MERGE_MODES.get(properties.pop(table_keys.MERGE_MODE, "").upper(), ""),
    }
    index = properties.pop("hoodie.index.type", "").upper()
    create["index"] = _INDEXES.get(index, index.lower())
    create["properties"] = {key: properties.pop(key) for key in [*properties] if is_table_property(key)}
    if create["type"] == "merge_on_read" and given.option("disable-compaction") not in _FLAGS:
        if given.job["continuous"]:
            given.job["services"] = "beside"
        else:
            properties.setdefault("hoodie.compact.inline", "true")
    path = given.option("target-base-path") or given.properties.pop("hoodie.base.path", "")
    return {"path": path, "create": {key: value for key, value in create.items() if value}}, properties


def _write_options(given: Given) -> dict[str, str]:
    """Take the options of writes, in the names of this library."""
    found: dict[str, str] = {}
    for key in [key for key in given.properties if key.startswith("hoodie.") and not _is_of_streamer(key)]:
        value = given.properties.pop(key)
        try:
            translation = translated({key: value})
            check_call_options(translation.properties)
        except HoodieError as error:
            # In one line, without the value that follows the name of the option.
            given.comment(key, " ".join(str(error).replace(f"={value!r}", "").split()))
            continue
        found |= translation.properties
        if translation.idle:
            given.comment(key, "it has no effect here (docs/options.md)")
    return found


def _is_of_streamer(key: str) -> bool:
    return key.startswith("hoodie.streamer.") or (
        key.startswith("hoodie.deltastreamer.") and not key.startswith("hoodie.deltastreamer.keygen.")
    )


def _comment_rest(given: Given) -> None:
    for key in given.properties:
        about = "an option of HoodieStreamer without an equivalent" if _is_of_streamer(key) else "not an option of Hudi"
        given.comment(key, about)
    for name in given.options:
        reason = _REASONS.get(name)
        if reason is None:
            reason = "it belongs to Spark or the JVM" if _SCHEDULING.fullmatch(name) else "it has no equivalent"
        given.comment(name, reason)


def _names(text: str) -> str | list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    return names[0] if len(names) == 1 else names


def _lines(given: Given, flow: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "# Made of properties of HoodieStreamer. Show what it would do: hoodie ingest JOB --dry-run"
    yield from (f"{key} = {_toml(value)}" for key, value in given.job.items())
    if given.comments:
        yield "\n# Without an equivalent, or to be looked at:"
        yield from (f"# {' '.join(comment.split())}" for comment in given.comments)
    yield "\n[[flow]]"
    yield from (f"{_key(key)} = {_toml(value)}" for key, value in flow.items())
    for name, table in tables.items():
        if table:
            yield f"\n[flow.{name}]"
            yield from (f"{_key(key)} = {_toml(value)}" for key, value in table.items())
    yield ""


def _toml(value: Any) -> str:
    """Return a value as TOML on one line; a text has JSON's escapes, which TOML shares."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_toml(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)
