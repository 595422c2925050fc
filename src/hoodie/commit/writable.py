"""Which tables this release changes, and when: their version, the features of their data files, pending services.

An exclusive service is one during which the table must not change.
"""

from __future__ import annotations

from hoodie.errors import CorruptFileError, UnsupportedError
from hoodie.format.instants.service_metadata import RestorePlan
from hoodie.format.table.key_generator import KeyGeneratorType
from hoodie.format.table.table_config import BaseFileFormat, TableConfig, TableType
from hoodie.index import BLOOM, GLOBAL_BLOOM, GLOBAL_SIMPLE, SIMPLE, table_index
from hoodie.index.record.building.plan import build_of
from hoodie.timeline import Action, Instant
from hoodie.view.table_view import TableView

_VIRTUAL_KEYS = frozenset({KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.NON_PARTITION})
"""The key generators that JVM Hudi accepts in tables without meta fields."""
_PATHS_OF_TEXTS = _VIRTUAL_KEYS - {KeyGeneratorType.NON_PARTITION}
"""The key generators whose partition paths are the texts of the columns."""
_SEARCHED = frozenset({SIMPLE.name, GLOBAL_SIMPLE.name})
"""Indexes that search the files, where keys are made of the key columns."""


def check_writable(view: TableView, verb: str = "write", *, reads_skeletons: bool = False) -> None:
    """Refuse a table whose features this release does not write. `verb` names the caller's action: `write`, `compact`.

    `reads_skeletons`: the rows of a skeleton slice are merged into ordinary files.

    Raises: UnsupportedError; its message names the unsupported feature and an engine that supports it.
    """
    check_features(view.config, view.store.uri(""), verb, reads_skeletons=reads_skeletons)


def check_features(config: TableConfig, where: str, verb: str, *, reads_skeletons: bool = False) -> None:
    """Refuse the properties of a table, also of a new one. Raises: as `check_writable`."""
    missing = {
        **_without_meta_fields(config),
        **_without_partition_columns(config, verb),
        **_bootstrapped(config, reads_skeletons=reads_skeletons),
        f"{config.base_file_format} base files": config.base_file_format is not BaseFileFormat.PARQUET,
    }
    for what, found in missing.items():
        if found:
            raise UnsupportedError(f"{where}: this release does not {verb} {what}; {verb} it with JVM Hudi")


def _without_meta_fields(config: TableConfig) -> dict[str, bool]:
    """Return what a table without meta fields must not have, and whether it has it."""
    if config.populates_meta_fields:
        return {}
    kind, index = config.key_generator, table_index(config).name
    return {
        "merge-on-read tables without meta fields": config.table_type is TableType.MERGE_ON_READ,
        "tables without meta fields and without a record key": not config.record_key_fields,
        f"tables without meta fields with the key generator {kind}": kind not in _VIRTUAL_KEYS,
        f"tables without meta fields with the index {index!r}": index not in _SEARCHED,
        "change data of tables without meta fields": config.is_cdc_enabled,
    }


def _without_partition_columns(config: TableConfig, verb: str) -> dict[str, bool]:
    """Return what a table whose data files lack the partition columns must not have, and whether it has it."""
    if not config.drops_partition_columns:
        return {}
    what, kind = "tables whose data files lack the partition columns", config.key_generator
    is_nested = any("." in name for name in config.partition_fields)
    return {
        what: verb == "alter",
        f"merge-on-read {what}": config.table_type is TableType.MERGE_ON_READ,
        f"{what}, with the key generator {kind}": kind not in _PATHS_OF_TEXTS or config.has_slash_separated_dates,
        f"{what}, which are inside structs": is_nested,
        f"change data of {what}": config.is_cdc_enabled,
    }


def _bootstrapped(config: TableConfig, *, reads_skeletons: bool) -> dict[str, bool]:
    """Return what a bootstrapped table must not have, and whether it has it."""
    if config.bootstrap_base_path is None:
        return {}
    index = table_index(config).name
    return {
        "bootstrapped tables": not reads_skeletons,
        f"bootstrapped tables with the index {index!r}": index not in _SEARCHED | {BLOOM.name, GLOBAL_BLOOM.name},
        "change data of bootstrapped tables": config.is_cdc_enabled,
    }


def check_no_exclusive_service(view: TableView) -> None:
    """Refuse to write while a restore or an index build of the JVM is pending.

    Writes are allowed while this library builds an index. Raises: UnsupportedError, naming the instant.
    """
    for instant in view.timeline.pending().instants:
        if instant.action in (Action.RESTORE, Action.INDEXING) and build_of(view, instant) is None:
            raise UnsupportedError(
                f"{view.store.uri('')} has a pending {instant.action} ({instant.requested_time}), during which nothing "
                f"else can be written; {_remedy(view, instant)}, then try again"
            )


def restore_plan(view: TableView, restore: Instant) -> RestorePlan | None:
    """Return the plan of a pending restore; None if its process died before it stored the plan.

    Raises: CorruptFileError if the plan does not parse.
    """
    content = view.pending_content(restore)
    return RestorePlan.parse(content, path=str(restore)) if content else None


def restored_to(plan: RestorePlan) -> str:
    """Return the commit to which a plan restores the table; empty if a plan of version 1 names none."""
    return plan.savepoint_to_restore_timestamp or ""


def target_of_restore(view: TableView, restore: Instant) -> str:
    """Return the commit to which a pending restore goes back; empty if its plan is missing, damaged, or names none."""
    try:
        plan = restore_plan(view, restore)
    except CorruptFileError:
        return ""
    return "" if plan is None else restored_to(plan)


def _remedy(view: TableView, instant: Instant) -> str:
    if instant.action is not Action.RESTORE:
        return "complete it with the engine that started it"
    if commit := target_of_restore(view, instant):
        return f"if its process does not run any more, complete it with t.restore('{commit}')"
    return "complete it with the engine that started it, or if that does not run any more, with t.restore(COMMIT)"
