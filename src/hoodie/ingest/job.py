"""A job: flows of one job file, the pace of their batches, and what runs beside them. docs/ingest/README.md."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, get_type_hints

import pyarrow as pa

from hoodie.config.known import hint
from hoodie.config.translation import translated
from hoodie.errors import HoodieError, InvalidConfigError
from hoodie.format.avro.schema import avro_to_arrow
from hoodie.format.table.call_options import check_call_options
from hoodie.ingest.bad_rows import REFUSE, SKIP, BadRowsPolicy
from hoodie.ingest.flow import Flow, Pace, Start
from hoodie.ingest.job_values import beside, check_keys, flat, texts_of, with_variables
from hoodie.ingest.metrics import LOCAL
from hoodie.ingest.options import fits, require
from hoodie.ingest.runner import missing_table
from hoodie.ingest.source import Source
from hoodie.ingest.sources.registry import KINDS as SOURCES
from hoodie.ingest.sources.registry import class_of, source_of
from hoodie.ingest.target import CREATE, Target, options_for
from hoodie.ingest.transforms import Transform, transforms_of
from hoodie.records.sql.types import type_named
from hoodie.storage import open_store

INLINE, BESIDE, OFF = "inline", "beside", "off"
SERVICES: Final = (INLINE, BESIDE, OFF)
_TABLE_OF_KEYS: Final = Mapping[str, Any]
_PACE: Final[Mapping[str, Any]] = get_type_hints(Pace)
_JOB: Final[Mapping[str, Any]] = {
    **_PACE,
    "services": str,
    "services_interval": float,
    "metrics_port": int,
    "metrics_host": str,
    "spark": Any,
    "defaults": _TABLE_OF_KEYS,
    "flow": Any,
}
_BACK_OFF_LEAST: Final = 0.1
_PACE_OF_FLOW: Final = ("interval", "batches_max", "retries")
_DEFAULTS: Final[Mapping[str, Any]] = {
    **{key: _PACE[key] for key in _PACE_OF_FLOW},
    "operation": str,
    "limit": int,
    "bad_rows": str,
    "bad_rows_max": int,
    "evolve": str,
    "spark": bool,
    "properties": _TABLE_OF_KEYS,
    "storage_options": _TABLE_OF_KEYS,
}
_FLOW: Final[Mapping[str, Any]] = {
    "name": str,
    "source": _TABLE_OF_KEYS,
    "transform": Any,
    "table": Any,
    "after": str | Sequence[str],
    "is_named": bool,
    "schema": Any,
    "checkpoint": str,
    "ignore_checkpoint": str,
    **_DEFAULTS,
}
_TABLE: Final[Mapping[str, Any]] = {"path": str, "create": _TABLE_OF_KEYS, "storage_options": _TABLE_OF_KEYS}
_PATHS: Final[Mapping[str, Sequence[str]]] = {
    **{"files": ("path",), "hudi": ("path",), "adbc": ("uri",)},
    "stream": ("path", "checkpoint"),
}
"""The options of each kind of source that are paths."""
_TEXT_FILES: Final = {"kafka": ("schema_file", "schema"), "query": ("file", "query")}
"""For kinds of sources: the key of a file beside the job file, and the option that its text is."""
_DATABASES: Final = ("sqlite:", "postgresql:", "postgres:")
_NEED_SPARK: Final = frozenset({"jdbc", "stream"})


@dataclass(slots=True, kw_only=True)
class Job:
    """What a job file defines.

    `spark`: settings of the session of the flows that need one. `notes`: what has no effect in the file.
    """

    flows: Sequence[Flow]
    pace: Pace
    services: str = INLINE
    services_interval: float = 60.0
    metrics_port: int | None = None
    metrics_host: str = LOCAL
    spark: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def only(self, names: Sequence[str]) -> Job:
        """Return the job with some of its flows. Raises: InvalidConfigError for an unknown name."""
        known = [flow.name for flow in self.flows]
        for name in names:
            if name not in known:
                similar = hint(name, known) or f"; it has {', '.join(known)}"
                raise InvalidConfigError(f"no flow {name!r} in the job{similar}")
        return replace(self, flows=[flow for flow in self.flows if flow.name in names])

    def set_pace(self, **changes: Any) -> None:
        """Change the pace of the job and of all its flows."""
        self.pace = replace(self.pace, **changes)
        for flow in self.flows:
            flow.pace = replace(flow.pace or self.pace, **changes)

    def missing_table(self, flow: Flow) -> str | None:
        """Return a table that the flow reads, and that another flow of the job has not created yet; None without."""
        return missing_table([other for other in self.flows if other.name in flow.after])

    def use_session(self, session: Any) -> None:
        """Let the flows that use Spark run in this session."""
        for flow in self.flows:
            if flow.needs_spark:
                flow.spark = flow.target.spark = session


def job_of(
    document: Mapping[str, Any],
    *,
    folder: str,
    environment: Mapping[str, str],
    all_in_spark: bool = False,
) -> Job:
    """Return the job of a parsed job file; no source and no table is read.

    `folder`: of the file, to which paths are relative. `environment`: values of `${NAME}`. `all_in_spark`: every flow
    uses Spark, whatever the file has.

    Raises: InvalidConfigError, which names the flow and the key.
    """
    given = with_variables({key: value for key, value in document.items() if key != "flow"}, environment, "job")
    given["flow"] = document.get("flow", [])
    check_keys(given, _JOB, "job", elsewhere=dict.fromkeys(_FLOW.keys() - _JOB.keys(), "in [defaults] or a [[flow]]"))
    services, defaults, spark = given.get("services", INLINE), given.get("defaults", {}), given.get("spark", False)
    require(services in SERVICES, "job, services", ", ".join(SERVICES), services)
    in_job = "to the job: write it above the first line in square brackets"
    check_keys(defaults, _DEFAULTS, "defaults", elsewhere=dict.fromkeys(_JOB.keys() - _DEFAULTS.keys(), in_job))
    require(isinstance(spark, bool | dict), "job, spark", "true, false or settings of a session", spark)
    for key in {"back_off", "back_off_max"} & given.keys():
        # A source that fails would else be called again and again without a pause.
        least = f"seconds, {_BACK_OFF_LEAST} or more"
        require(given[key] >= _BACK_OFF_LEAST, f"job, {key}", least, given[key])
    pace = Pace(**{key: given[key] for key in _PACE if key in given})
    reader = _Flows(folder, environment, defaults, all_in_spark or spark is not False, pace)
    flows = reader.flows(given["flow"])
    for flow in flows:
        flow.needs_spark |= all_in_spark
    others = ("services", "services_interval", "metrics_port", "metrics_host")
    return Job(
        flows=flows,
        pace=pace,
        **{key: given[key] for key in others if key in given},
        spark=texts_of(spark, "job, spark") if isinstance(spark, dict) else {},
        notes=reader.notes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A flow of the file; `uri`: of its table; `reads`: URIs of the tables that its source reads."""

    flow: Flow
    uri: str
    reads: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Flows:
    """Reads the flows of a job file."""

    folder: str
    environment: Mapping[str, str]
    defaults: Mapping[str, Any]
    is_spark: bool
    pace: Pace
    notes: list[str] = field(default_factory=list)

    def flows(self, given: Any) -> list[Flow]:
        """Return all flows. Raises: InvalidConfigError: there is none, or a flow is wrong."""
        if not isinstance(given, list) or not given or not all(isinstance(one, Mapping) for one in given):
            raise InvalidConfigError("job: expected at least one [[flow]] with name, source and table, found none")
        found: list[_Found] = []
        for number, one in enumerate(given, 1):
            name = one.get("name")
            where = f"flow {name!r}" if isinstance(name, str) and name else f"flow {number}"
            if any(flow.flow.name == name for flow in found):
                raise InvalidConfigError(f"{where}: two flows have this name; give each a name of its own")
            try:
                found.append(self._flow({**one}, where))
            except HoodieError as error:
                raise _named(error, where) from error
            except (TypeError, ValueError, AttributeError) as error:
                raise InvalidConfigError(f"{where}: a value has a wrong type: {error}") from error
        several = [one.uri for one in found]
        for one in found:
            one.flow.is_named = one.flow.is_named or several.count(one.uri) > 1
        _set_after(found)
        return [one.flow for one in found]

    def _flow(self, one: dict[str, Any], where: str) -> _Found:
        one = with_variables(one, self.environment, where)
        check_keys(one, _FLOW, where, elsewhere=dict.fromkeys(_JOB.keys() - _FLOW.keys(), "to the job, not to a flow"))
        for key in ("name", "source", "table"):
            if not one.get(key):
                raise InvalidConfigError(f"{where}: {key} is missing")
        properties = {**flat(self.defaults.get("properties", {})), **flat(one.get("properties", {}))}
        stores = {**flat(self.defaults.get("storage_options", {})), **flat(one.get("storage_options", {}))}
        one = {**self.defaults, **one, "storage_options": texts_of(stores, "storage_options")}
        target = self._target(one, where)
        source, reads = self._source(one, where)
        after = one.get("after", ())
        flow = Flow(
            name=one["name"],
            is_named=one.get("is_named", False),
            source=source,
            target=target,
            transforms=self._transforms(one.get("transform"), where),
            schema=self._schema(one.get("schema"), where),
            start=Start(place=one.get("checkpoint"), ignore=one.get("ignore_checkpoint")),
            bad_rows=self._bad_rows(one),
            properties=self._properties(properties, where),
            pace=replace(self.pace, **{key: one[key] for key in _PACE_OF_FLOW if key in one}),
            after=(after,) if isinstance(after, str) else after,
            needs_spark=one.get("spark", self.is_spark or one["source"]["kind"] in _NEED_SPARK),
            **{key: one[key] for key in ("operation", "limit", "evolve") if key in one},
        )
        return _Found(flow=flow, uri=_uri(target.path, target.storage_options), reads=reads)

    def _target(self, one: Mapping[str, Any], where: str) -> Target:
        given = one["table"]
        table: Mapping[str, Any] = {"path": given} if isinstance(given, str) else given
        check_keys(table, _TABLE, f"{where}, table")
        if not table.get("path"):
            raise InvalidConfigError(f"{where}, table: path is missing")
        create = table.get("create")
        if create is not None:
            check_keys(create, dict.fromkeys(CREATE, Any), f"{where}, table, create")
            if "properties" in create:
                create = {**create, "properties": self._properties(create["properties"], f"{where}, create")}
        path = beside(table["path"], self.folder)
        options = texts_of(table.get("storage_options"), f"{where}, storage_options")
        return Target(
            path=path, create=create, storage_options={**options_for(path, one["storage_options"]), **options}
        )

    def _source(self, one: Mapping[str, Any], where: str) -> tuple[Source, frozenset[str]]:
        """Return the source, and the URIs of the tables that it reads."""
        given = dict(one["source"])
        kind: Any = given.get("kind")
        if kind not in SOURCES:
            return source_of(given), frozenset()
        file, option = _TEXT_FILES.get(kind, ("", ""))
        if file in given and option not in given:
            given[option] = self._text(given.pop(file), f"{where}, source, {file}")
        tables = self._beside(kind, given)
        if "storage_options" in inspect.signature(class_of(kind)).parameters:
            path = str(given.get("path") or next(iter(tables), ""))
            own = texts_of(given.get("storage_options"), where)
            given["storage_options"] = {**options_for(path, one["storage_options"]), **own}
        return source_of(given), frozenset(_uri(path, given.get("storage_options", {})) for path in tables)

    def _beside(self, kind: str, given: dict[str, Any]) -> list[str]:
        """Make the paths of a source relative to the job file; return those of the tables that it reads."""
        for name in _PATHS.get(kind, ()):
            if isinstance(path := given.get(name), str) and not path.startswith(_DATABASES):
                given[name] = beside(path, self.folder)
        if kind == "query" and isinstance(given.get("tables"), Mapping):
            given["tables"] = {name: beside(path, self.folder) for name, path in given["tables"].items()}
            return list(given["tables"].values())
        return [given["path"]] if kind == "hudi" and isinstance(given.get("path"), str) else []

    def _transforms(self, given: Any, where: str) -> tuple[Transform, ...]:
        """Return the transforms; a file of SQL is read."""
        found = []
        for one in given if isinstance(given, list) else [given] if given is not None else []:
            example = 'SQL, or options such as { kind = "cast", to_table = true }'
            require(isinstance(one, str | Mapping), f"{where}, transform", example, one)
            if isinstance(one, Mapping) and one.get("kind") == "sql" and "file" in one and "query" not in one:
                one = dict(one)
                one["query"] = self._text(one.pop("file"), f"{where}, transform, file")
            found.append(one)
        return transforms_of(found)

    def _schema(self, given: Any, where: str) -> pa.Schema | None:
        """Return the columns of the source: of an Avro schema file, or of types of Spark SQL by column."""
        if given is None:
            return None
        if isinstance(given, str):
            return avro_to_arrow(self._text(given, f"{where}, schema"), path=given)
        example = 'an Avro schema file, or types by column as in { id = "string" }'
        require(fits(given, Mapping[str, str]), f"{where}, schema", example, given)
        return pa.schema([(name, type_named(kind)) for name, kind in given.items()])

    def _bad_rows(self, one: Mapping[str, Any]) -> BadRowsPolicy:
        mode = one.get("bad_rows", REFUSE)
        mode = mode if mode in (REFUSE, SKIP) else beside(mode, self.folder)
        options = options_for(mode, one["storage_options"])
        return BadRowsPolicy(mode=mode, max=one.get("bad_rows_max"), storage_options=options)

    def _properties(self, given: Mapping[str, Any], where: str) -> dict[str, str]:
        """Return options of writes in the names of this library, and note options of JVM Hudi without effect."""
        found = translated(texts_of(given, f"{where}, properties"))
        check_call_options(found.properties)
        self.notes.extend(f"{where}: {note}" for note in found.notes)
        return dict(found.properties)

    def _text(self, path: Any, where: str) -> str:
        """Return the text of a file beside the job file. Raises: InvalidConfigError if it cannot be read."""
        parent, _, name = beside(str(path), self.folder).rpartition("/")
        try:
            return open_store(parent).read(name).decode()
        except (HoodieError, OSError, UnicodeDecodeError) as error:
            raise InvalidConfigError(f"{where}: {path!r} cannot be read: {error}") from error


def _named(error: HoodieError, where: str) -> HoodieError:
    """Return the error with the name of the flow."""
    text = str(error)
    if text.startswith(where):
        return error
    is_of_key = text.startswith(("source: ", "source, ", "transform: ", "transform, "))
    return InvalidConfigError(f"{where}{', ' if is_of_key else ': '}{text}")


def _uri(path: str, options: Mapping[str, str]) -> str:
    return open_store(path, options).uri("").rstrip("/")


def _set_after(found: Sequence[_Found]) -> None:
    """Add the flows that write what each flow reads. Raises: InvalidConfigError for an unknown name in `after`."""
    names = [one.flow.name for one in found]
    for flow, uri, reads in ((one.flow, one.uri, one.reads) for one in found):
        for name in flow.after:
            if name not in names:
                raise InvalidConfigError(f"flow {flow.name!r}, after: no flow {name!r}{hint(name, names)}")
        if uri in reads:
            raise InvalidConfigError(f"flow {flow.name!r}: it reads the table that it writes")
        writers = [other.flow.name for other in found if other.uri in reads]
        flow.after = tuple(dict.fromkeys((*flow.after, *writers)))
