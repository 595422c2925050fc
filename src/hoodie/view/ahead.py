"""Ask an object store for all that a view of a table is made of, in one wave of requests."""

from __future__ import annotations

from collections.abc import Collection

from hoodie.files.table_properties import PROPERTIES
from hoodie.format.schema.column_ids import SCHEMA_FOLDER
from hoodie.format.table.table_config import TableConfig
from hoodie.format.table.versions import TableVersion
from hoodie.metadata.kinds.registry import KINDS
from hoodie.metadata.paths import METADATA_FOLDER, metadata_layout, partition_folder
from hoodie.storage import ask, asks_ahead, forget_answers
from hoodie.storage.waves import UNORDERED
from hoodie.timeline import TableLock, layout_for, layout_of
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView, archive_folder

LISTING = tuple(kind.name for kind in KINDS.required)
"""The metadata partitions that list the files of the table."""
LOGGED = tuple(kind.name for kind in KINDS.named if kind.logs_before_commit)
"""The metadata partitions to which the tasks of a write add log files."""


def ask_for_view(
    state: TableState, partitions: Collection[str] = (), *, metadata_timelines: int = 0, columns: bool = False
) -> None:
    """Ask for the properties and the timeline, and for what is read next of the metadata table.

    `partitions`: the metadata partitions that are read, each with the timeline of the metadata table.
    `metadata_timelines` are further uses of this timeline. `columns`: `ask_for_columns` is called next. A read that
    must see all rows sends these requests under the lock: else a listing may be older than the timeline by which it is
    read. The properties that were read last choose the requests; changed ones cause more where the answers are needed.
    See `storage.ask`.
    """
    if asks_ahead(state.store):
        config = state.last_config()
        requests = _of_metadata_table(config, partitions, metadata_timelines)
        if state.is_new:
            requests.append(("list", archive_folder(config)))
            if not state.is_known_empty:
                requests.append(("folders", layout_of(config).instant_folder()))
            if columns and state.columns is None:
                requests.append(("list", SCHEMA_FOLDER))
        ask(state.store, ("read", PROPERTIES), ("list", layout_of(config).instant_folder()), *requests)


def ask_for_creation(state: TableState, lock: TableLock) -> None:
    """Ask under the lock for what a write reads before it creates the metadata table, if the table has none."""
    if asks_ahead(state.store) and not state.last_config().has_metadata_table:
        folders = [("folders", "")] if state.last_config().partition_fields else []
        ask(state.store, ("list", ""), *folders, ("list_all", METADATA_FOLDER))
        lock.ask()


def ask_for_files(state: TableState) -> None:
    """Ask for what a read needs to know its files, without the lock: properties, timeline, metadata table.

    The answers come in any order. `MetadataTable.listing` alone takes those about the metadata table: it sees whether
    they are older than the timeline, and repeats the request then. It could not see that in version 6.
    """
    if not asks_ahead(state.store):
        return
    forget_answers()
    config = state.last_config()
    requests = [("read", PROPERTIES), ("list", layout_of(config).instant_folder())]
    if config.version.has_completion_time_in_name:
        requests += [(f"{UNORDERED}{kind}", path) for kind, path in _of_metadata_table(config, LISTING, 0)]
    ask(state.store, *requests)


def ask_for_new_handle(state: TableState) -> None:
    """Ask for the properties and the timeline of an unknown table: the timeline is in its usual folder."""
    forget_answers()
    ask(state.store, ("read", PROPERTIES), ("list", layout_for(TableVersion.NINE).instant_folder()))


def ask_for_partitions(view: TableView, partitions: Collection[str]) -> None:
    """Ask for what is read next of the metadata table, as `ask_for_view`, after the view was loaded."""
    if asks_ahead(view.store):
        ask(view.store, *_of_metadata_table(view.config, partitions, 0))


def ask_for_columns(view: TableView, *, metadata_timelines: int = 0) -> None:
    """Ask for the history of the columns, and for the timeline of the metadata table, after the view was loaded.

    Without a completed write there is no history: the answer may be older, and `ask_for_view` has requested it.
    """
    if asks_ahead(view.store):
        columns: list[tuple[str, str]] = []
        if view.state.has_archive or view.timeline.writes().completed().instants:
            forget_answers(SCHEMA_FOLDER)
            columns += [("list", SCHEMA_FOLDER)] if view.state.columns is None else []
        ask(view.store, *columns, *_of_metadata_table(view.config, (), metadata_timelines))


def _of_metadata_table(config: TableConfig, partitions: Collection[str], timelines: int) -> list[tuple[str, str]]:
    if not config.has_metadata_table:
        return []
    has = [name for name in partitions if name in config.metadata_partitions]
    timeline = metadata_layout(config).instant_folder()
    return [("list", timeline)] * (len(has) + timelines) + [("list", partition_folder(name)) for name in has]
