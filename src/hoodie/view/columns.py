"""How the files of a table differ from its columns: `files.stored_columns`, as of a view.

On-disk format: docs/format/table.md §3.8.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from hoodie.errors import CorruptFileError
from hoodie.files.bootstrap import BootstrapSource
from hoodie.files.merged_slice import SliceRead
from hoodie.files.stored_columns import StoredColumns
from hoodie.format.schema.column_ids import (
    SCHEMA_FOLDER,
    IdSchema,
    StoredNames,
    instant_of_history,
    is_history,
    parse_history,
    stored_names,
)
from hoodie.records.change import RECORD_KEY
from hoodie.records.keys.key_generator import table_key_generator
from hoodie.records.merging.merge import RecordMerger
from hoodie.storage import StoreSpec
from hoodie.view.listing import with_archived_between
from hoodie.view.table_state import ColumnHistory
from hoodie.view.table_view import TableView


def stored_columns(view: TableView, schema: pa.Schema, *, as_of: str | None = None) -> StoredColumns:
    """Return how the files of the view differ from `schema`, the table's schema `as_of` a requested time.

    One listing of `.hoodie/.schema` by the first call for a table, and again after commits whose metadata this process
    did not read; one file is read if the columns of the table have ids.

    Raises: CorruptFileError if the history of the columns is missing or cannot be parsed.
    """
    config = view.config
    from_path = config.path_fields
    keys = () if config.populates_meta_fields else config.record_key_fields
    path = config.bootstrap_base_path
    key_columns = {name.partition(".")[0] for name in keys}
    return StoredColumns(
        names=_names(view, schema, as_of),
        path_columns=tuple(child for child in schema if child.name in from_path),
        key_columns=tuple(child for child in schema if child.name in key_columns and child.name != RECORD_KEY),
        source=bootstrap_source(view),
        source_path_columns=() if path is None else tuple(c for c in schema if c.name in config.partition_fields),
        key_generator=table_key_generator(config) if from_path or key_columns or path is not None else None,
    )


def whole_read(view: TableView, columns: pa.Schema | None = None, merger: RecordMerger | None = None) -> SliceRead:
    """Return the options to read the newest file slices with all columns, wherever and under what name they are stored.

    `columns`, `merger`: as for `TableView.slice_read`. Raises: as that, and `stored_columns`.
    """
    read = view.slice_read(columns, merger)
    return replace(read, stored=stored_columns(view, read.schema))


def bootstrap_source(view: TableView) -> BootstrapSource | None:
    """Return the folder for whose files skeleton files were made; the table's storage options open it too."""
    path = view.config.bootstrap_base_path
    if path is None:
        return None
    own = view.store.spec
    is_like_the_table = path.partition("://")[0] == own.uri.partition("://")[0]
    return BootstrapSource(StoreSpec(path, own.options if is_like_the_table else ()))


def _names(view: TableView, schema: pa.Schema, as_of: str | None) -> tuple[tuple[str, StoredNames], ...]:
    """Return the names that differ by the first instant whose files have them; empty if no name ever differed."""
    visible = visible_schemas(view, as_of)
    if not visible:
        return ()
    pairs = [(str(found.version), stored_names(found.columns, visible[-1].columns, list(schema))) for found in visible]
    return tuple(pairs) if any(names for _, names in pairs) else ()


def moved_columns(view: TableView) -> frozenset[str]:
    """Return the columns that older files have under another name, or whose name they have for another column."""
    if not visible_schemas(view):
        return frozenset()
    return frozenset(path for _, names in _names(view, view.schema().arrow, None) for path in names)


def visible_schemas(view: TableView, as_of: str | None = None) -> list[IdSchema]:
    """Return the schemas with ids that the table had by the time of the view, or by `as_of`, in ascending order."""
    return view.fact(_visible) if as_of is None else _visible(view, as_of)


def _visible(view: TableView, as_of: str | None = None) -> list[IdSchema]:
    schemas = column_history(view).schemas
    timeline = with_archived_between(view, view.timeline, [str(found.version) for found in schemas if found.version])
    return [
        found
        for found in schemas
        if found.version == 0
        or (timeline.contains_or_before_start(str(found.version)) and (as_of is None or str(found.version) <= as_of))
    ]


def column_history(view: TableView) -> ColumnHistory:
    """Return the schemas with ids that the table had; none if its columns never had ids.

    Cost and errors as `stored_columns`.
    """
    state = view.state
    with state.lock:
        commits = frozenset(instant.requested_time for instant in view.whole_timeline().writes().completed())
        known = state.columns
        # A rollback deletes the history of its commit.
        is_taken_back = known is not None and not known.commits <= commits
        if (
            known is None
            or is_taken_back
            or any([_may_change(view, known, commit) for commit in commits - known.commits])
        ):
            text, path = _read(view)
            known = ColumnHistory(text, parse_history(text, path=path) if text else (), commits)
            for commit in commits:
                _check(view, known, commit)
        state.columns = replace(known, commits=commits)
    return state.columns


def _may_change(view: TableView, known: ColumnHistory, commit: str) -> bool:
    """Return whether a commit may have changed the history: it is not known, or it has a version that is not."""
    facts = view.state.commits.facts(commit)
    return facts is None or not _has_version(known, facts.column_version)


def _has_version(known: ColumnHistory, version: int | None) -> bool:
    return version is None or any(found.version == version for found in known.schemas)


def _check(view: TableView, known: ColumnHistory, commit: str) -> None:
    facts = view.state.commits.facts(commit)
    if facts is not None and not _has_version(known, facts.column_version):
        raise CorruptFileError(
            f"the commit {commit} has version {facts.column_version} of the columns' ids, and the history of the ids "
            f"has {[found.version for found in known.schemas]}: without it, older files cannot be read; restore the "
            "files of this folder from a copy of the table",
            path=view.store.uri(SCHEMA_FOLDER),
        )


def _read(view: TableView) -> tuple[bytes, str]:
    """Read the newest history of a completed commit; return it and its path."""
    names = [name for name in view.store.names(SCHEMA_FOLDER) if is_history(name)]
    timeline = with_archived_between(view, view.whole_timeline(), list(map(instant_of_history, names)))
    committed = [name for name in names if timeline.contains_or_before_start(instant_of_history(name))]
    if not committed:
        return b"", ""
    path = f"{SCHEMA_FOLDER}/{max(committed)}"
    return view.store.read(path), view.store.uri(path)
