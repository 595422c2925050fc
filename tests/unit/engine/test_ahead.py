"""Streams that threads read ahead: every item once, bounded, ended by errors and by the consumer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from hoodie.engine.ahead import ahead


def alive() -> int:
    return sum(thread.name == "hoodie-read-ahead" for thread in threading.enumerate())


@pytest.mark.parametrize("threads", [1, 3])
def test_every_item_comes_once_and_threads_end(threads: int) -> None:
    streams = [partial(iter, range(start, start + 10)) for start in range(0, 200, 10)]
    assert sorted(ahead(streams, threads=threads, waiting=2)) == list(range(200))
    assert alive() == 0


def test_an_error_of_a_stream_is_raised_and_ends_the_others() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("of the stream")

    def endless() -> Iterator[int]:
        while True:
            yield 0

    with pytest.raises(ValueError, match="of the stream"):
        for _ in ahead([failing, endless], threads=2, waiting=1):
            pass
    assert alive() == 0


def test_what_waits_is_bounded_and_a_consumer_may_stop() -> None:
    begun = []

    def counted() -> Iterator[int]:
        for number in range(1000):
            begun.append(number)
            yield number

    found = ahead([counted], threads=1, waiting=3)
    assert next(found) == 0
    until = time.monotonic() + 20
    while len(begun) < 5 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.3)
    assert len(begun) == 5  # one consumed, three waiting, one in the thread
    found.close()  # type: ignore[attr-defined]
    assert alive() == 0
