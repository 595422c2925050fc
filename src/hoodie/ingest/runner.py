"""Run many flows: fairly, each with its own state and retries, until their sources have nothing new, or for ever."""

from __future__ import annotations

import contextvars
import math
import threading
import time
import warnings
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Final

from hoodie.errors import HoodieError, HoodieWarning, InvalidConfigError
from hoodie.ingest.flow import Flow, Pace
from hoodie.ingest.result import BatchResult, IngestResult
from hoodie.table import exists

_NOTES_KEPT: Final = 20
_INSTANTS_KEPT: Final = 1000
_LOOK_SECONDS: Final = 0.5
"""How often the runner looks whether it shall stop, while all flows wait."""
_BACK_OFF_MIN: Final = 0.05
_IDLE_SHARE: Final = 0.1
"""Of one core: the most that the looks at all idle sources take together, until they wait for `idle_max`."""


@dataclass(slots=True, kw_only=True, eq=False)
class FlowState:
    """How far one flow is in this process. Its runner alone changes it.

    `pace`: of this flow; `continuous` and `threads` are the runner's. `after`: flows of the same runner that write what
    this flow reads. `due`: when the next batch begins, by the clock `time.monotonic`. `last_success`: when the
    last batch was committed, or the source had nothing new: seconds since the epoch.
    """

    flow: Flow
    pace: Pace
    result: IngestResult
    after: tuple[FlowState, ...] = ()
    due: float = 0.0
    began: float = 0.0
    failures: int = 0
    """Failures since the last success."""
    failures_total: int = 0
    batch_seconds: float | None = None
    """Of the last batch that was committed."""
    last_success: float | None = None
    last_error: str | None = None
    last_error_at: float | None = None
    raised: Exception | None = None
    """The last error, unless the flow is continuous: an error holds the rows of its batch."""
    is_done: bool = False

    @property
    def name(self) -> str:
        return self.flow.name


_Done = tuple[BatchResult | None, str | None, float]
"""What a thread did: a batch, or None; the missing table for which the flow waits; and the CPU seconds of it."""


@dataclass(slots=True, kw_only=True)
class Runner:
    """Runs flows on a few threads, the longest waiting first.

    `report` gets each batch, `on_error` each error, `on_change` the state of a flow after each of both, and when its
    source has nothing new; all on the thread of `run`. `pace`: of flows without a pace of their own; its `continuous`
    and `threads` count for all flows. A flow that reads what others write begins when those are done; with `continuous`
    it waits until their tables exist, and looks for new rows when they commit.
    """

    flows: Sequence[Flow]
    pace: Pace = field(default_factory=Pace)
    report: Callable[[str, BatchResult], None] = lambda _name, _result: None
    on_error: Callable[[str, Exception], None] = lambda _name, _error: None
    on_change: Callable[[FlowState], None] = lambda _state: None
    states: list[FlowState] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Raises: InvalidConfigError: two flows have one name, or flows wait for each other."""
        self.states = [
            FlowState(flow=flow, pace=flow.pace or self.pace, result=IngestResult(flow=flow.name))
            for flow in self.flows
        ]
        by_name = {state.name: state for state in self.states}
        if len(by_name) < len(self.states):
            raise InvalidConfigError("two flows have one name: expected a name of its own for each flow")
        for state in self.states:
            state.after = tuple(by_name[name] for name in state.flow.after if name in by_name)
        try:
            TopologicalSorter({one.name: [earlier.name for earlier in one.after] for one in self.states}).prepare()
        except CycleError as error:
            circle = " → ".join(error.args[1])
            raise InvalidConfigError(
                f"flows wait for each other: {circle}: each writes what the next one reads"
            ) from error

    def run(self, stop: threading.Event | None = None) -> list[IngestResult]:
        """Run until all flows are done, or `stop` is set: batches that run are then finished. Return the results.

        An error of a flow is in its result; the other flows go on.
        """
        stop = stop or threading.Event()
        running: dict[Future[_Done], FlowState] = {}
        threads = max(1, min(self.pace.threads, len(self.states)))
        with ExitStack() as ends, ThreadPoolExecutor(threads, thread_name_prefix="hoodie-ingest") as pool:
            for flow in self.flows:
                ends.callback(_close, flow)
            while running or not (stop.is_set() or all(state.is_done for state in self.states)):
                # The longest waiting first, and in the given order at the start.
                waiting, now = sorted(self._waiting(running.values()), key=lambda state: state.due), time.monotonic()
                due = [state for state in waiting if state.due <= now and not stop.is_set()]
                for state in due[: threads - len(running)]:
                    state.began = now
                    # A copy of the context, so that the listener of the caller gets the progress of the write.
                    running[pool.submit(contextvars.copy_context().run, _run_batch, state)] = state
                    waiting.remove(state)
                self._wait(stop, running, waiting)
        for state in self.states:
            if state.failures and state.result.error is None:
                state.result = replace(state.result, error=state.last_error)
        return [state.result for state in self.states]

    def _wait(self, stop: threading.Event, running: dict[Future[_Done], FlowState], waiting: list[FlowState]) -> None:
        """Wait until a batch ends or is due, and take down the batches that ended."""
        due = waiting[0].due if waiting else math.inf
        seconds = min(_LOOK_SECONDS, max(0.0, due - time.monotonic()))
        if not running:
            stop.wait(seconds)
            return
        # While all threads are busy, a batch that is due waits for the end of another one.
        has_room = len(running) < self.pace.threads and not stop.is_set()
        ended, _ = wait(running, timeout=seconds if has_room else None, return_when=FIRST_COMPLETED)
        for future in ended:
            self._ended(running.pop(future), future)

    def _waiting(self, running: Collection[FlowState]) -> list[FlowState]:
        """Return the flows that can run a batch now or later, and run none."""
        busy = {id(state) for state in running}
        found = (state for state in self.states if not state.is_done and id(state) not in busy)
        return [s for s in found if self.pace.continuous or all(earlier.is_done for earlier in s.after)]

    def _ended(self, state: FlowState, future: Future[_Done]) -> None:
        error = future.exception()
        seconds = time.monotonic() - state.began
        state.result = replace(state.result, seconds=state.result.seconds + seconds)
        if error is None:
            batch, waits_for, look_seconds = future.result()
            state.failures, state.last_error, state.raised, state.last_success = 0, None, None, time.time()
            if batch is None:
                self._idle(state, waits_for, look_seconds)
            else:
                state.batch_seconds = seconds
                self._committed(state, batch)
        else:
            self._failed(state, error)
        self.on_change(state)

    def _idle(self, state: FlowState, waits_for: str | None, look_seconds: float) -> None:
        """Take down that the source has nothing new."""
        pace, look = state.pace, look_seconds * len(self.states) / _IDLE_SHARE
        state.due = time.monotonic() + max(pace.interval, pace.idle, min(look, pace.idle_max))
        state.is_done = not self.pace.continuous
        if waits_for is None:
            state.result = replace(state.result, lag_rows=0, lag_seconds=0.0)
        elif state.is_done:
            note = f"{waits_for}: the table does not exist, and no earlier flow has created it: nothing was read"
            state.result = replace(state.result, notes=(*state.result.notes, note))

    def _committed(self, state: FlowState, batch: BatchResult) -> None:
        """Add a batch to the sums of its flow; of its notes and instants, the newest stay."""
        now, pace = time.monotonic(), state.pace
        done, write = state.result, batch.write
        state.result = replace(
            done,
            batches=done.batches + 1,
            inserted=done.inserted + write.inserted,
            updated=done.updated + write.updated,
            deleted=done.deleted + (write.deleted or 0),
            bad_rows=done.bad_rows + batch.bad_rows,
            bytes_written=done.bytes_written + write.bytes_written,
            instants=(*done.instants, write.instant)[-_INSTANTS_KEPT:],
            place=batch.place or done.place,
            lag_rows=batch.lag_rows,
            lag_seconds=batch.lag_seconds,
            notes=tuple(dict.fromkeys((*done.notes, *write.notes, *batch.notes)))[-_NOTES_KEPT:],
        )
        state.due = max(now, state.began + pace.interval) if self.pace.continuous else now
        if not batch.place:  # a full read: the source has no place to go on from
            state.is_done, state.due = not self.pace.continuous, now + max(pace.interval, pace.idle)
        if pace.batches_max is not None and state.result.batches >= pace.batches_max:
            state.is_done = True
        for later in self.states:
            if self.pace.continuous and state in later.after and not later.failures:
                later.due = min(later.due, max(now, later.began + later.pace.interval))
        self.report(state.name, batch)

    def _failed(self, state: FlowState, raised: BaseException) -> None:
        # Code of the user may end with SystemExit, and a library in Rust may panic: neither ends the other flows.
        error = raised if isinstance(raised, Exception) else HoodieError(f"{type(raised).__name__}: {raised}")
        pace = state.pace
        state.failures += 1
        state.failures_total += 1
        state.last_error, state.last_error_at = str(error) or type(error).__name__, time.time()
        state.raised = None if self.pace.continuous else error
        if not self.pace.continuous and state.failures > pace.retries:
            state.is_done = True
            state.result = replace(state.result, error=state.last_error)
        state.due = time.monotonic() + max(
            _BACK_OFF_MIN, min(pace.back_off * 2 ** min(state.failures - 1, 30), pace.back_off_max)
        )
        self.on_error(state.name, error)


def _close(flow: Flow) -> None:
    """Close the source of a flow that has ended, if it can be closed; its results stay if that fails."""
    close = getattr(flow.source, "close", None)
    try:
        if callable(close):
            close()
    except Exception as error:
        warnings.warn(f"flow {flow.name}: the source was not closed: {error}", HoodieWarning, stacklevel=2)


def _run_batch(state: FlowState) -> _Done:
    """Run the next batch of a flow, on a thread; nothing is new while a table of an earlier flow does not exist."""
    began = time.thread_time()
    missing = missing_table([earlier.flow for earlier in state.after])
    batch = None if missing else state.flow.run_batch()
    return batch, missing, time.thread_time() - began


def missing_table(writers: Sequence[Flow]) -> str | None:
    """Return the path of a table of these flows that does not exist yet; None if all exist. Raises: StorageError."""
    for target in (flow.target for flow in writers):
        if target.table is None and not exists(target.path, storage_options=target.storage_options):
            return target.path
    return None
