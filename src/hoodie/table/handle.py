"""The handle of one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hoodie.arguments import check_methods
from hoodie.display import html_facts
from hoodie.table.context import TableContext
from hoodie.table.frames import TableFrames
from hoodie.table.reads import TableReads
from hoodie.table.services import TableServices
from hoodie.table.streams import TableStreams
from hoodie.table.writes import TableWrites

if TYPE_CHECKING:
    import pyarrow as pa

    from hoodie.read.inspect import Inspection
    from hoodie.storage import Store, StoreSpec
    from hoodie.table.alter import TableAlter
    from hoodie.table.indexes import TableIndex
    from hoodie.timeline import Timeline
    from hoodie.view.table_view import TableView


@check_methods
class Table(TableReads, TableFrames, TableWrites, TableStreams, TableServices):
    """A handle of one Hudi table: cheap to create, safe to share between threads. Calls use the newest commit.

    Each write is one commit: all of it, or nothing. All errors are `hoodie.HoodieError`.
    """

    def __init__(self, store: Store, *, spark: Any = None, lock: Mapping[str, str] | None = None) -> None:
        self._context = TableContext(store, spark, lock)

    def __repr__(self) -> str:
        """Return the card of the table: its type, rows, size, newest commit and findings. It opens no data file."""
        from hoodie.table.card import card_text

        return card_text(f"hoodie.open({self.path!r})", self._card())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle where the table is; the copy uses the active Spark session, or none if this handle uses none.

        The pickled bytes contain the storage options, which may be secret.

        Raises: UnsupportedError for a table that only this process can open.
        """
        return _opened, self._context.place()

    def _repr_html_(self) -> str:
        """Return the card of the table as HTML, for notebooks."""
        return html_facts({"path": self.path, **self._card()})

    def _card(self) -> dict[str, str]:
        from hoodie.table.card import card_of

        try:
            return card_of(self.view())
        except Exception as error:
            # Debuggers and logs request the text: an error would hide what they show.
            return {"error": str(error) or type(error).__name__}

    @property
    def path(self) -> str:
        """URI of the table.

        >>> import hoodie
        >>> hoodie.create("memory://doc-path", {"id": ["a"]}, record_key="id").path
        'memory://doc-path'
        """
        return self._context.state.store.uri("")

    def view(self) -> TableView:
        """Load a view of the table as of the newest completed instant.

        Raises: as `hoodie.open`.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-view", {"id": ["a"]}, record_key="id")
        >>> t.view().config.record_key_fields
        ('id',)
        """
        return self._context.view()

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the table as of the newest commit, without the meta columns.

        Raises: as `hoodie.open`.

        >>> import hoodie
        >>> hoodie.create("memory://doc-schema", {"id": ["a"], "x": [1]}, record_key="id").schema.names
        ['id', 'x']
        """
        return self.view().schema().arrow

    @property
    def timeline(self) -> Timeline:
        """The active timeline, newest instant last; `.completed()`, `.pending()`, `.latest()`.

        Raises: as `hoodie.open`.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-timeline", {"id": ["a"]}, record_key="id")
        >>> written = t.upsert({"id": ["a"]})
        >>> [found.requested_time for found in t.timeline.completed().instants] == [written.instant]
        True
        """
        return self.view().timeline

    def history(self, limit: int | None = None, *, archived: bool = False) -> pa.Table:
        """Return the instants of the active timeline, newest first, at most `limit`; columns as `HISTORY_SCHEMA`.

        With `archived` the instants of the archived timeline follow.

        Raises: as `hoodie.open`; CorruptFileError if a commit, or the archive, is damaged.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"]})
        >>> t = hoodie.create("memory://doc-history", rows.schema, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.history().select(["operation", "state", "inserted"]).to_pylist()
        [{'operation': 'upsert', 'state': 'completed', 'inserted': 2}]
        """
        from hoodie.read.history import history

        return history(self.view(), limit, archived=archived)

    @property
    def inspect(self) -> Inspection:
        """Contents of the table as pyarrow Tables: `.files()`, `.slices()`, `.partitions()`, `.statistics()`.

        Raises: as `hoodie.open`.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-inspect", {"id": ["a"]}, record_key="id")
        >>> written = t.upsert({"id": ["a"]})
        >>> t.inspect.slices()["base_rows"].to_pylist()
        [1]
        """
        from hoodie.read.inspect import Inspection

        return Inspection(self.view(), _timeline_findings)

    @property
    def index(self) -> TableIndex:
        """The table's indexes: `.build("record")`, `.drop("record")`, `.verify()`, `.compare("record", "simple")`.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-index", {"id": ["a"]}, record_key="id")
        >>> written = t.upsert({"id": ["a"]})
        >>> t.index.verify().ok
        True
        """
        from hoodie.table.indexes import TableIndex

        return TableIndex(self._context.state, self._context.engine)

    @property
    def alter(self) -> TableAlter:
        """The table's columns: `.add_column("x", "int")`, `.rename_column("x", "y")`, `.drop_column("y")` and more.

        >>> import hoodie
        >>> t = hoodie.create("memory://doc-alter", {"id": ["a"]}, record_key="id")
        >>> added = t.alter.add_column("tip", "double")
        >>> t.schema.names
        ['id', 'tip']
        """
        from hoodie.table.alter import TableAlter

        return TableAlter(self._context)


def _timeline_findings(view: TableView) -> Sequence[Mapping[str, str]]:
    """Return what is wrong on the timeline of a view; `read/` cannot import the checks, which are beside it."""
    from hoodie.table.card import timeline_findings

    return timeline_findings(view)


def _opened(spec: StoreSpec, spark: bool | None, lock: Mapping[str, str]) -> Table:
    """Return the handle that was pickled."""
    from hoodie.storage import open_store

    return Table(open_store(spec), spark=spark, lock=lock)
