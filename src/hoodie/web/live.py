"""New instants as server-sent events: one watcher a table, which all its listeners share."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

import hoodie
from hoodie.format.json_values import to_json
from hoodie.web.api import error_of
from hoodie.web.work import Work

if TYPE_CHECKING:
    from hoodie.timeline import Timeline

_PAUSE_SECONDS: Final = 1.0
_VIEW_LISTINGS: Final = 30
"""Listings after which the properties are read again: an upgrade can move the timeline."""


def _timelines(open_table: Callable[[], hoodie.Table]) -> Iterator[Timeline]:
    """Yield the timeline of a table as it is now, again and again, by listing it only."""
    while True:
        view = open_table().view()
        timeline = view.timeline
        yield timeline
        for _ in range(_VIEW_LISTINGS):
            timeline = view.state.load_timeline(view.config, view.layout)
            if not timeline.instants:
                break  # The table may be gone.
            yield timeline


@dataclass(slots=True)
class _Watcher:
    """What the listeners of a table share: the last event, and the signal of the next one."""

    listeners: int = 0
    event: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def announce(self, event: str) -> None:
        self.event, before, self.changed = event, self.changed, asyncio.Event()
        before.set()


class Watchers:
    """The watchers of all tables with listeners. For one event loop."""

    def __init__(self, work: Work, open_table: Callable[[str], hoodie.Table]) -> None:
        self._work, self._open = work, open_table
        self._watchers: dict[str, _Watcher] = {}
        self._is_closed = False

    async def events(self, table_id: str) -> AsyncIterator[str]:
        """Yield the present state of the timeline, and again whenever it changed, until the server closes.

        While there is a listener the timeline is listed once a second; the last listener ends that.
        """
        watcher = self._watchers.setdefault(table_id, _Watcher())
        watcher.listeners += 1
        if watcher.task is None:
            watcher.task = asyncio.create_task(self._watch(table_id, watcher))
        try:
            seen = ""
            while not self._is_closed:
                changed = watcher.changed
                if watcher.event != seen:
                    seen = watcher.event
                    yield seen
                await changed.wait()
        finally:
            watcher.listeners -= 1
            if not watcher.listeners:
                watcher.task.cancel()
                self._watchers.pop(table_id, None)

    async def _watch(self, table_id: str, watcher: _Watcher) -> None:
        found = _timelines(lambda: self._open(table_id))
        last: Timeline | None = None
        for number in itertools.count():
            try:
                timeline = await self._work.run(table_id, "timeline", partial(next, found), "live")
            except Exception as error:
                found, last = _timelines(lambda: self._open(table_id)), None
                event = _event("trouble", error_of(error)[1])
                if event != watcher.event:
                    watcher.announce(event)
            else:
                if timeline is not last:
                    last = timeline
                    self._work.note_change(table_id)
                    watcher.announce(f"id: {number}\n{_event('timeline', _state(timeline))}")
            await asyncio.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        self._is_closed = True
        for watcher in self._watchers.values():
            watcher.changed.set()


def _state(timeline: Timeline) -> dict[str, Any]:
    newest = timeline.latest()
    time = None if newest is None else newest.requested_time
    return {"newest": time, "instants": len(timeline), "pending": len(timeline.pending())}


def _event(name: str, state: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {to_json(state)}\n\n"


class EventStream(Response):
    """An answer that goes on: each event is sent when it comes, until the listener leaves."""

    def __init__(self, events: AsyncIterator[str]) -> None:
        super().__init__(media_type="text/event-stream")
        del self.headers["content-length"]
        self._events: Any = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until they end, or the listener leaves."""
        tasks = [asyncio.create_task(self._send(send)), asyncio.create_task(left_by(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._events) as events:
            async for event in events:
                await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def left_by(receive: Receive) -> None:
    """Wait until the reader of an answer leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
