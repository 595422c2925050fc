"""All procedures by name, those of Hudi that are refused, and `help`, which lists the procedures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hoodie.config.known import hint
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.statements.procedures import (
    cleans,
    commits,
    copies,
    files,
    logs,
    maintenance,
    metadata,
    planned,
    recovery,
    timeline,
)
from hoodie.statements.procedures.operations import OWN
from hoodie.statements.procedures.procedure import KINDS, TYPES, Call, Procedure, Row, optional, procedure

_WIDTH: Final = 30
"""Width of a column of Hudi's own help text."""
_AUDIT: Final = "t.inspect.locks(); the audit of JVM Hudi's storage lock is not kept here"
_METADATA: Final = "t.repair(), which builds the metadata table anew if it is damaged or missing"
_BOOTSTRAP: Final = "hoodie.adopt makes a table of Parquet files"
_HIVE: Final = "the catalog of the Spark session: CREATE TABLE … LOCATION adds an entry; JVM Hudi synchronises Hive"
REFUSED: Final[Mapping[str, str]] = {
    "cleanup_audit_lock": _AUDIT,
    "create_metadata_table": _METADATA,
    "delete_metadata_table": _METADATA,
    "hdfs_parquet_import": _BOOTSTRAP,
    "hive_sync": _HIVE,
    "init_metadata_table": _METADATA,
    "partition_bucket_index_manager": "JVM Hudi: this release does not change the buckets of partitions",
    "repair_deduplicate": "MERGE INTO, or t.upsert, which keep one row of each key",
    "repair_migrate_partition_meta": "nothing instead: both kinds of partition metadata files are read",
    "repair_overwrite_hoodie_props": "t.repair() for damaged properties, hoodie.rebuild_properties for lost ones",
    "run_bootstrap": _BOOTSTRAP,
    "set_audit_lock": _AUDIT,
    "show_audit_lock_status": _AUDIT,
    "show_bootstrap_mapping": "JVM Hudi",
    "show_bootstrap_partitions": "JVM Hudi",
    "show_metadata_column_stats_overlap": "show_metadata_table_column_stats",
    "show_metadata_table_stats": "t.inspect, and t.verify() for what the metadata table lacks",
    "sync_validate": _HIVE,
    "validate_audit_lock": _AUDIT,
}
"""What to use instead of procedures of Hudi that this release does not have."""


def procedure_of(name: str) -> Procedure:
    """Return the procedure of a name. Raises: UnsupportedError if only Hudi has it; InvalidConfigError."""
    if name in REFUSED:
        raise UnsupportedError(f"CALL {name}: this release has no such procedure; use {REFUSED[name]}")
    found = PROCEDURES.get(name)
    if found is None:
        advice = hint(name, (*PROCEDURES, *REFUSED))
        raise InvalidConfigError(f"CALL {name}: no such procedure; CALL help() lists all procedures{advice}")
    return found


@procedure(parameters=(optional("cmd"),), columns="result string")
def help(call: Call) -> Iterable[Row]:
    """List the procedures, or the parameters and columns of one."""
    if call["cmd"] is not None:
        return [{"result": _described(procedure_of(call["cmd"]))}]
    found = (f"\t{one.name}\t{one.about}" for one in sorted(PROCEDURES.values(), key=lambda one: one.name))
    head = "synopsis\n\tcall [command]([key1]=>[value1],[key2]=>[value2])\ncommands and description"
    foot = "`call help(cmd => '[command]')` describes the parameters of a command"
    return [{"result": "\n".join((head, *found, foot, ""))}]


def _described(found: Procedure) -> str:
    names = {kind: name for name, kind in TYPES.items()}
    parameters = (
        (one.name, KINDS[one.kind], _default(one.default), str(one.is_required).lower()) for one in found.parameters
    )
    outputs = ((child.name, names[child.type], "true", "{}") for child in found.columns)
    lines = (
        "parameters:",
        *map(_line, (("param", "type_name", "default_value", "required"), *parameters)),
        "outputType:",
        *map(_line, (("name", "type_name", "nullable", "metadata"), *outputs)),
    )
    return "\n".join((*lines, ""))


def _default(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _line(parts: Iterable[str]) -> str:
    return "".join(f"\t{part:<{_WIDTH}}" for part in parts)


_MODULES: Final = (cleans, commits, copies, files, logs, maintenance, metadata, planned, recovery, timeline)
_OF_HUDI: Final = [found for module in _MODULES for found in vars(module).values() if isinstance(found, Procedure)]
PROCEDURES: Final[Mapping[str, Procedure]] = {found.name: found for found in (*_OF_HUDI, *OWN, help)}
"""All procedures by name."""
NAMES: Final = PROCEDURES.keys() | REFUSED.keys()
"""The names of all procedures, those of Hudi and ours."""
