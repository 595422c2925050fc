"""The options of `spark.read.format("hoodie")`: the table and its rows; the names of JVM Hudi are accepted too.

docs/data-source.md has the list. Bounds of JVM Hudi's incremental queries are completion times, whatever instant has
such a requested time, as in JVM Hudi.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from hoodie.config.hudi_options import hudi_options
from hoodie.config.known import OPTIONS, did_you_mean
from hoodie.config.translation import translated
from hoodie.engine.inputs import table_in_memory
from hoodie.errors import HoodieWarning, InvalidConfigError, SchemaMismatchError
from hoodie.format.table.call_options import is_table_property
from hoodie.read.cdc import cdc_schema, with_json_images
from hoodie.read.cdc_plan import CdcPlan, plan_cdc
from hoodie.read.changes import plan_batch
from hoodie.read.lookup import plan_lookup
from hoodie.read.plan import SNAPSHOT, ScanPlan, plan_scan
from hoodie.read.times import as_of_jvm, jvm_bound
from hoodie.records.condition import Condition
from hoodie.records.sql.clock import names_today
from hoodie.spark.merged import SlicesPartition, change_partitions, slice_partitions
from hoodie.spark.stream_source import EARLIEST, JVM_BOUNDS, OF_STREAMS, QUERY, START, mode_of, names_of, stream_schema
from hoodie.spark.types import arrow_schema_of, spark_schema_of
from hoodie.storage import StoreSpec, open_store
from hoodie.table.context import TableContext
from hoodie.view.table_view import TableView

AS_OF: Final = "as.of.instant"
_QUERY: Final = (QUERY, "hoodie.datasource.view.type")
_FORMAT: Final = "hoodie.datasource.query.incremental.format"
_READS: Final = ("hoodie.datasource.read.", "hoodie.datasource.query.", "hoodie.datasource.merge.")
_OF_SNAPSHOTS: Final = ("as_of", "where", "view")
_OF_CHANGES: Final = ("since", "until", "mode", "flat", *JVM_BOUNDS)
_OF_READS: Final = (*_OF_SNAPSHOTS, "columns", "keys", *_OF_CHANGES, QUERY)
_HUDI: Final = "hoodie."
_OF_CATALOGS: Final = ("location", "owner", "provider", "comment", "external", "is_managed_location", "collation")
"""Properties that Spark's catalog adds to the options of a table; it repeats the others as `option.<name>`."""
_STORAGE: Final = "storage."
_NO_PATH: Final = (
    "no path: call load(path) or save(path); saveAsTable, insertInto and SQL on tables of the catalog need "
    "hoodie.register(spark), or in the statement WITH (path = '...')"
)
"""Spark hands over no path for a table of its catalog; a registered session finds it."""
_WIDER: Final = frozenset({(pa.int32(), pa.int64()), (pa.float32(), pa.float64())})


@dataclass(frozen=True, slots=True)
class Span:
    """The options of a read of changes. `cdc`: each change of each commit, otherwise each changed row once.

    `is_jvm`: the options are those of JVM Hudi: `since` and `until` are its bounds, and the images are JSON texts.
    """

    since: str | None
    until: str | None
    cdc: bool
    flat: bool
    is_jvm: bool

    @classmethod
    def parse(cls, found: Mapping[str, str], columns: Sequence[str] | None) -> Span:
        """Parse the options.

        Raises: as `mode_of`; InvalidConfigError without a bound of the JVM's, and for bounds of both kinds.
        """
        cdc, flat = mode_of(found, columns)
        is_jvm = found.get(QUERY) == "incremental"
        if is_jvm and (given := [name for name in ("since", "until") if name in found]):
            raise InvalidConfigError(
                f"options {given} beside {QUERY}='incremental': expected its bounds {' and '.join(JVM_BOUNDS)}, or "
                "since and until without the query type"
            )
        if is_jvm and JVM_BOUNDS[0] not in found:
            raise InvalidConfigError(f"an incremental query needs {JVM_BOUNDS[0]}: '000' is before the first commit")
        since, until = (found.get(name) for name in (JVM_BOUNDS if is_jvm else ("since", "until")))
        return cls(since, until, cdc, flat, is_jvm)

    def bounds(self, view: TableView) -> tuple[str | None, str | None]:
        """Return `since` and `until` of a plan. Raises: InvalidConfigError for a text that is no time."""
        if not self.is_jvm:
            return self.since, self.until
        from_start = self.since is None or not self.since.strip("0") or self.since == EARLIEST
        since = None if from_start or self.since is None else jvm_bound(self.since, view)
        return since, None if self.until is None else jvm_bound(self.until, view)

    def plan_cdc(self, context: TableContext) -> CdcPlan:
        """Plan a read of change data. Raises: as `plan_cdc`."""
        return context.planned(lambda view: plan_cdc(view, *self.bounds(view)))

    def rows_of(self, plan: CdcPlan) -> pa.Schema:
        """Return the schema of change data of the plan."""
        schema = cdc_schema(plan.schema, flat=self.flat)
        return with_json_images(schema) if self.is_jvm else schema


def _condition(text: str, store: StoreSpec, session: Any) -> Condition:
    """Parse a condition that a session evaluates; without one Python workers do, in UTC."""
    condition = TableContext(open_store(store), spark=False).condition(text, session=session)
    assert condition is not None
    return condition


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a `spark.read` call. `keys` are the values of a list in JSON."""

    store: StoreSpec
    as_of: str | None = None
    where: Condition | None = None
    columns: tuple[str, ...] | None = None
    view: str = SNAPSHOT
    keys: tuple[Any, ...] | None = None
    changes: Span | None = None
    names_today: bool = False
    """Whether `where` has the date of the call."""

    @classmethod
    def of(cls, store: StoreSpec, found: Mapping[str, str], session: Any = None) -> ReadOptions:
        """Parse options that `read_options` returned. `session`: evaluates the condition; None: Python workers do.

        Raises: InvalidConfigError for an unknown option, options of different reads, or without a path.
        """
        if unknown := sorted(set(found) - set(_OF_READS)):
            raise InvalidConfigError(f"options {unknown} belong to streams: use spark.readStream")
        names = names_of(found)
        reads = [[name for name in own if name in found] for own in (_OF_SNAPSHOTS, ("keys",), _OF_CHANGES)]
        if len([own for own in reads if own]) > 1:
            given = " and ".join("/".join(own) for own in reads if own)
            raise InvalidConfigError(f"options {given} belong to different reads: filter the loaded DataFrame instead")
        return cls(
            store=store,
            as_of=found.get("as_of"),
            where=_condition(found["where"], store, session) if found.get("where") else None,
            columns=names,
            view=found.get("view", SNAPSHOT),
            keys=_keys(found["keys"]) if "keys" in found else None,
            changes=Span.parse(found, names) if reads[2] else None,
            names_today=names_today(found.get("where", "")),
        )

    def schema(self) -> pa.Schema:
        """Return the schema of the rows. Raises: as the plans of the reads of `Table`.

        For changes until now no changes are planned: a stream with a checkpoint behind `since` calls this method.
        """
        if self.changes is not None and self.changes.until is None:
            changes = self.changes
            schema = stream_schema(self._context(), cdc=changes.cdc, flat=changes.flat, columns=self.columns)
            return with_json_images(schema) if changes.is_jvm and changes.cdc else schema
        if self.changes is not None and self.changes.cdc:
            return self.changes.rows_of(self.changes.plan_cdc(self._context()))
        return self.plan().output_schema

    def partitions(self, schema: pa.Schema) -> list[SlicesPartition]:
        """Plan the read of rows of this schema: one Spark partition for about 64 MiB of files, at least one.

        Raises: as the plans of the reads of `Table`; as `check_schema`.
        """
        if self.changes is not None and self.changes.cdc:
            changes = self.changes.plan_cdc(self._context())
            check_schema(self.changes.rows_of(changes), schema)
            return change_partitions(changes, schema, flat=self.changes.flat, as_json=self.changes.is_jvm)
        # A field of a struct has another name in the option than in the rows.
        has_paths = any("." in name for name in self.columns or ())
        plan = self.plan(None if has_paths else schema.names)
        check_schema(plan.output_schema, schema)
        is_zoned = self.where is not None and (self.names_today or self.where.depends_on_zone(plan.schema))
        return slice_partitions(self.store, plan, schema, self.where.text if self.where and is_zoned else None)

    def _context(self) -> TableContext:
        return TableContext(open_store(self.store), spark=False)

    def plan(self, columns: Sequence[str] | None = None) -> ScanPlan:
        """Plan the scan on the newest commit, or `as_of`. Raises: as the plans of the reads of `Table`."""
        context = self._context()
        chosen = self.columns if columns is None else columns
        if self.changes is not None:
            bounds = self.changes.bounds
            plan = context.planned(lambda view: plan_batch(view, *bounds(view)).scan)
            return plan.with_columns(chosen)
        if self.keys is not None:
            view = context.view()
            wanted = table_in_memory(context.keys(list(self.keys), view))
            return context.planned(lambda view: plan_lookup(view, wanted), view).with_columns(chosen)
        return context.planned(
            lambda view: plan_scan(view, columns=chosen, where=self.where, as_of=self.as_of, kind=self.view)
        )


def read_options(options: Mapping[str, str]) -> tuple[StoreSpec, dict[str, str]]:
    """Return the store, and the options of a read or a stream in our names; those of JVM Hudi are translated.

    Options of writes have no effect on reads: a script can use one set of options for both.

    Raises: InvalidConfigError for an option that is not known, that is refused, or that contradicts another one.
    """
    store, found = store_and_options(options, (*_OF_READS, *OF_STREAMS, AS_OF))
    own = {name: value for name, value in found.items() if not name.startswith(_HUDI) or name == START}
    jvm = {name: value for name, value in found.items() if name not in own}
    if AS_OF in own:
        _set(own, "as_of", as_of_jvm(own[AS_OF]), AS_OF)
        del own[AS_OF]
    queries = {name: jvm.pop(name).lower() for name in _QUERY if name in jvm}
    if len(set(queries.values())) > 1:
        raise InvalidConfigError(f"options {' and '.join(queries)} are names of one option, found {queries}: give one")
    query = next(iter(queries.values()), "")
    images = jvm.pop(_FORMAT, "")
    bounds: dict[str, str] = {name: jvm.pop(name) for name in JVM_BOUNDS if name in jvm}
    own |= {QUERY: query} if query else {}
    if query == "incremental":
        own |= bounds
        if images or "mode" not in own:
            _set(own, "mode", "latest" if images in ("", "latest_state") else images, _FORMAT)
    elif query in ("snapshot", "read_optimized", ""):
        if query:
            _set(own, "view", query, next(iter(queries)))
        if bounds:
            raise InvalidConfigError(f"options {sorted(bounds)}: expected {_QUERY[0]}='incremental' beside them")
    else:
        raise InvalidConfigError(f"{_QUERY[0]}={query!r}: expected snapshot, read_optimized or incremental")
    _check_others(jvm)
    return store, own


def _set(own: dict[str, str], name: str, value: str, option: str) -> None:
    """Set one of our options by an option of JVM Hudi. Raises: InvalidConfigError if it has another value."""
    if own.setdefault(name, value) != value:
        raise InvalidConfigError(
            f"{name}={own[name]!r} contradicts the option {option}, which means {name}={value!r}: give one of them"
        )


def _check_others(jvm: Mapping[str, str]) -> None:
    """Check the other options of JVM Hudi. Warns: HoodieWarning for options without effect.

    Raises: InvalidConfigError for options that are unknown, or that would change which rows are read.
    """
    of_reads = {name: value for name, value in jvm.items() if name.startswith(_READS)}
    unknown = jvm.keys() - OPTIONS.keys() - hudi_options().keys()
    if found := sorted(name for name in unknown if not is_table_property(name)):
        near = did_you_mean(found, (*OPTIONS, *_QUERY, _FORMAT, *JVM_BOUNDS))
        raise InvalidConfigError(f"unknown options {found}; {near or 'docs/options.md has the list'}")
    for note in translated(of_reads).notes:
        warnings.warn(note, HoodieWarning, stacklevel=3)


def check_schema(found: pa.Schema, wanted: pa.Schema) -> None:
    """Check the schema of a read, which the caller may have given (`spark.read.schema`): no value may change by it.

    It may have some of the columns and nested fields, in any order, and int as long and float as double.

    Raises: SchemaMismatchError that names the first column that the rows do not have, or have with another type.
    """
    types = {field.name: field.type for field in arrow_schema_of(spark_schema_of(found))}
    for field in wanted:
        if field.name not in types or not _is_readable_as(types[field.name], field.type):
            there = f"has type {types[field.name]}" if field.name in types else f"is not in {', '.join(types)}"
            raise SchemaMismatchError(
                f"column {field.name!r} {there}, and the schema of this read expects {field.type}: load the table "
                "without a schema, or again if it was changed since, and cast the columns of the DataFrame"
            )


def _is_readable_as(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        known = {child.name: child.type for child in found.fields}
        return all(child.name in known and _is_readable_as(known[child.name], child.type) for child in wanted.fields)
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return _is_readable_as(found.value_type, wanted.value_type)
    if pa.types.is_map(found) and pa.types.is_map(wanted):
        return bool(found.key_type == wanted.key_type) and _is_readable_as(found.item_type, wanted.item_type)
    return bool(found == wanted) or (found, wanted) in _WIDER


def store_and_options(options: Mapping[str, str], known: Sequence[str]) -> tuple[StoreSpec, dict[str, str]]:
    """Return the store of the option `path`, and the other options with names in lower case.

    Raises: InvalidConfigError for an option that is neither in `known` nor `hoodie.<name>`, or without a path.
    """
    found = {name.lower(): value for name, value in options.items()}
    storage = {name.removeprefix(_STORAGE): value for name, value in found.items() if name.startswith(_STORAGE)}
    own = {
        name: value
        for name, value in found.items()
        if name not in ("path", *_OF_CATALOGS) and not name.startswith((_STORAGE, "option."))
    }
    unknown = sorted(name for name in own if name not in known and not name.startswith(_HUDI))
    if unknown or "path" not in found:
        what = f"unknown options {unknown}; {did_you_mean(unknown, ('path', *known))}".rstrip("; ")
        raise InvalidConfigError(
            f"{what if unknown else _NO_PATH}; the options are path, {', '.join(known)}, {_HUDI}<name> and "
            f"{_STORAGE}<name>"
        )
    return open_store(found["path"], storage).spec, own


def _keys(text: str) -> tuple[Any, ...]:
    """Parse the option `keys`. Raises: InvalidConfigError."""
    try:
        keys = json.loads(text)
    except ValueError:
        keys = None
    if not isinstance(keys, list) or not keys:
        raise InvalidConfigError(f'keys={text!r}: expected a list of record keys in JSON, such as ["a", "b"]')
    return tuple(keys)
