"""Procedures that copy the rows of a read to a view or to another table of the session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.records.sql.quoting import quoted
from hoodie.statements.procedures.procedure import Call, Row, optional, procedure, required

_READ: Final = "hoodie.datasource"
_MODES: Final = ("overwrite", "append")
_QUERY: Final = (
    optional("begin_instance_time", ""),
    optional("end_instance_time", ""),
    optional("as_of_instant", ""),
)


def _source(call: Call) -> Any:
    """Return the rows of `query_type` as a DataFrame. Raises: UnsupportedError without a session."""
    if call.names.session is None:
        raise UnsupportedError("CALL of a copy needs a Spark session: hoodie.sql(spark, …); see t.to_arrow()")
    options = {
        f"{_READ}.query.type": call["query_type"],
        f"{_READ}.read.begin.instanttime": call["begin_instance_time"],
        f"{_READ}.read.end.instanttime": call["end_instance_time"],
        "as.of.instant": call["as_of_instant"],
    }
    return call.names.load(call.table, {name: text for name, text in options.items() if text})


@procedure(
    parameters=(
        required("table"),
        optional("query_type", "snapshot"),
        required("view_name"),
        *_QUERY,
        optional("replace", False),
        optional("global", False),
    ),
    columns="status integer",
)
def copy_to_temp_view(call: Call) -> Iterable[Row]:
    """Make the rows of a query of the table a temporary view; query_type as for reads."""
    name, is_global, replaces = call["view_name"], call["global"], call["replace"]
    frame = _source(call)
    if is_global:
        create = frame.createOrReplaceGlobalTempView if replaces else frame.createGlobalTempView
    else:
        create = frame.createOrReplaceTempView if replaces else frame.createTempView
    create(name)
    return [{"status": 0}]


@procedure(
    parameters=(
        required("table"),
        optional("query_type", "snapshot"),
        required("new_table"),
        *_QUERY,
        optional("save_mode", "overwrite"),
        optional("columns", ""),
    ),
    columns="status integer",
)
def copy_to_table(call: Call) -> Iterable[Row]:
    """Write the rows of a query of the table to another table of the catalog, in Spark's default format."""
    mode, name = call["save_mode"].lower(), call["new_table"]
    if mode not in _MODES:
        raise InvalidConfigError(f"CALL copy_to_table: save_mode => {mode!r}: expected {' or '.join(_MODES)}")
    frame = _source(call)
    wanted = call.names_in("columns")
    if call.names.session.catalog.tableExists(name):
        wanted = call.names.session.table(name).columns
    frame.select(*(quoted(column) for column in wanted or frame.columns)).write.mode(mode).saveAsTable(name)
    return [{"status": 0}]
