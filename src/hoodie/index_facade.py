"""`table.index`: build, drop, check and compare the indexes of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hoodie.engine import Engine
from hoodie.engine.selection import engine_and_dataset
from hoodie.errors import InvalidConfigError, UnsupportedError
from hoodie.index import RECORD, index_kind
from hoodie.metadata.services.context import EngineFor
from hoodie.read.changes import completion_of
from hoodie.read.plan import When
from hoodie.services.engine_choice import engine_by_size
from hoodie.services.indexing.build import IndexCall, build_record_index
from hoodie.services.indexing.drop import drop_record_index
from hoodie.services.indexing.verify import verify_changes, verify_record_index
from hoodie.services.report import Report
from hoodie.services.result import ServiceResult
from hoodie.view.table_state import TableState
from hoodie.view.table_view import TableView
from hoodie.write.index_compare import check_comparable, compare_batch
from hoodie.write.setup import WriteCall


class TableIndex:
    """The indexes of one table. Cheap to make; every call sees the newest commit."""

    def __init__(self, state: TableState, engine: Callable[[], Engine]) -> None:
        """`engine`: what large work runs on."""
        self._state = state
        self._engine = engine

    def build(self, name: str = "record", *, buckets: int | None = None, wait_seconds: float = 600.0) -> ServiceResult:
        """Build the record index of a table that has rows, whoever wrote them, while writers go on.

        `buckets`: how many; by default one for each million keys, after growth, as the Parquet footers count them. An
        index that is there stays, unless `buckets` asks for another number: then it is built anew beside the old one.
        A build that died goes on when it is called again. From the switch on the table finds records by the index
        (unless it stores another index type), and its properties make JVM writers keep it. `wait_seconds`: for JVM
        writes that began before.

        Raises: as `hoodie.services.indexing.build.build_record_index`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-index-build", rows.schema, record_key="id", index="simple")
        >>> written = t.upsert(rows)
        >>> t.index.build("record").counts["entries"]
        2
        """
        _only_record(name)
        call = IndexCall(state=self._state, engine_for=self._engine_for(), wait_seconds=wait_seconds)
        return build_record_index(call, buckets=buckets)

    def drop(self, name: str = "record") -> ServiceResult:
        """Drop the record index; afterwards records are found by `global_simple`. See `services.indexing.drop`.

        Raises: UnsupportedError, CommitConflictError.
        """
        _only_record(name)
        return drop_record_index(self._state)

    def verify(self) -> Report:
        """Prove that the record index is what the data says: every key and entry, both ways. Writers may go on.

        Raises: as `hoodie.services.indexing.verify.verify_record_index`.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-index-verify", rows.schema, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.index.verify().ok
        True
        """
        return verify_record_index(self._state, self._engine_for())

    def compare(
        self, first: str = "record", second: str = "simple", *, data: Any = None, since: When | None = None
    ) -> Report:
        """Dual run: report every difference between what two indexes say. Nothing is written; writers may go on.

        `data`: a batch with the key columns, as for `delete`; both indexes tell where its keys lie, `simple` by looking
        into the base files of the whole table. `since`: instead of a batch, the entries of the commits that completed
        after an instant or time are compared with the record index; a script may run that at intervals.

        Raises: InvalidConfigError unless one of the two is given, or if the table has no record index.

        >>> import hoodie, pyarrow as pa
        >>> rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
        >>> t = hoodie.create("memory://doc-index-compare", rows.schema, record_key="id")
        >>> written = t.upsert(rows)
        >>> t.index.compare("record", "simple", data=rows).ok
        True
        """
        names = check_comparable((first, second))
        if (data is None) == (since is None):
            raise InvalidConfigError("compare needs either data= (a batch to look up) or since= (commits to check)")
        if since is None:
            engine, dataset = engine_and_dataset(data)
            return compare_batch(WriteCall(state=self._state, engine=engine), dataset, names)
        if RECORD.name not in names:
            raise InvalidConfigError(f"since= checks the record index, which is none of {names}")
        return verify_changes(self._state, completion_of(TableView.load(self._state), since), self._engine_for())

    def _engine_for(self) -> EngineFor:
        """Threads of this process for small work, the session for the rest."""
        return engine_by_size(self._state, self._engine)


def _only_record(name: Any) -> None:
    if index_kind(str(name)) is not RECORD:
        raise UnsupportedError(f"index={name!r}: only the record index is built and dropped; others look at the data")
