"""Table services beside the batches of flows: each table of a job is served by rounds on a few threads of their own."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import PriorityQueue
from typing import Any, Final, Self

from hoodie.config import clustering, compaction, retention
from hoodie.errors import InvalidConfigError
from hoodie.ingest.flow import Flow
from hoodie.results import ServiceResult
from hoodie.storage import open_store

_AFTER_WRITES: Final = (
    retention.CLEAN_AUTOMATIC,
    retention.ARCHIVE_AUTOMATIC,
    retention.TTL_INLINE,
    compaction.COMPACT_INLINE,
    compaction.COMPACT_SCHEDULE_INLINE,
    compaction.LOG_COMPACTION_INLINE,
    clustering.CLUSTER_INLINE,
    clustering.CLUSTER_SCHEDULE_INLINE,
)
"""The options by which a service follows a write."""
_THREADS: Final = 2
_LOOK_SECONDS: Final = 2.0
"""How often a thread looks for a table that no batch has opened yet."""


def switch_off(flows: Sequence[Flow]) -> None:
    """Let no service follow the writes of these flows, whatever their options and tables have."""
    for flow in flows:
        flow.properties = {**flow.properties, **{option.key: "false" for option in _AFTER_WRITES}}


@dataclass(slots=True, kw_only=True, eq=False)
class _Served:
    """A table: a flow that writes it, the options of the rounds, and the runner, once the table exists."""

    flow: Flow
    properties: dict[str, str]
    runner: Any = None


@dataclass(slots=True, kw_only=True)
class ServicesBeside:
    """Serves the tables of flows by rounds of `Table.services`, every `interval` seconds, on two threads.

    The writes of the flows are followed by no service; a round runs the services that the table's properties and the
    `properties` of its first flow turn on. Use it as a context manager: at the end, rounds that run are finished.
    `report` and `on_error` get the path of the table, and a result or the error of a service; threads call them.
    """

    flows: Sequence[Flow]
    interval: float = 60.0
    report: Callable[[str, ServiceResult], None] = lambda _path, _result: None
    on_error: Callable[[str, Exception], None] = lambda _path, _error: None
    _tables: list[_Served] = field(default_factory=list, init=False)
    _threads: list[threading.Thread] = field(default_factory=list, init=False)
    _waiting: PriorityQueue[tuple[float, int]] = field(default_factory=PriorityQueue, init=False)
    """When the next round of a table is due, and its place in `_tables`."""
    _is_stopped: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        """Raises: InvalidConfigError for an interval that is not above 0."""
        if not 0 < self.interval <= threading.TIMEOUT_MAX:
            raise InvalidConfigError(f"services_interval={self.interval}: expected seconds above 0")
        found: dict[str, _Served] = {}
        for flow in self.flows:
            uri = open_store(flow.target.path, flow.target.storage_options).uri("")
            found.setdefault(uri, _Served(flow=flow, properties=dict(flow.properties)))
        self._tables = list(found.values())
        switch_off(self.flows)

    def run_once(self) -> None:
        """Run one round for each table that exists, in the caller's thread."""
        for table in self._tables:
            self._round(table)

    def __enter__(self) -> Self:
        for number in range(len(self._tables)):
            self._waiting.put((0.0, number))
        for _ in range(min(_THREADS, len(self._tables))):
            # A new context, so that the progress of services is not shown as progress of a batch.
            work = contextvars.Context().run
            self._threads.append(
                threading.Thread(target=work, args=(self._serve,), name="hoodie-ingest-services", daemon=True)
            )
            self._threads[-1].start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_stopped.set()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while True:
            due, number = self._waiting.get()  # never empty: there are at least as many tables as threads
            if self._is_stopped.wait(max(0.0, due - time.monotonic())):
                return
            is_there = self._round(self._tables[number])
            pause = self.interval if is_there else min(self.interval, _LOOK_SECONDS)
            self._waiting.put((time.monotonic() + pause, number))

    def _round(self, table: _Served) -> bool:
        """Run a round, and return whether the table exists. An error is reported: the next round tries again."""
        path = table.flow.target.path
        handle = table.flow.target.table
        if handle is None:
            return False
        try:
            if table.runner is None:
                table.runner = handle.services(
                    interval=self.interval,
                    properties=table.properties,
                    report=lambda result: self.report(path, result),
                    on_error=lambda name, error: self.on_error(f"{path}: {name}", error),
                )
            table.runner.run_once()
        except Exception as error:
            self.on_error(path, error)
        return True
