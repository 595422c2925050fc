"""Streams that threads read ahead: every item once, bounded, ended by errors and by the consumer."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest

from hoodie.engine import ahead as ahead_module
from hoodie.engine.ahead import ahead, reader_of


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


def test_threads_end_when_nobody_asks_and_their_streams_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that was closed or left in a variable keeps no thread."""
    monkeypatch.setattr(ahead_module, "_IDLE_SECONDS", 0.2)
    streams = [partial(iter, range(start, start + 10)) for start in range(0, 100, 10)]
    found = ahead(streams, threads=3, waiting=2)
    taken = [next(found)]
    for _ in range(3):
        until = time.monotonic() + 20
        while alive() and time.monotonic() < until:
            time.sleep(0.01)
        assert alive() == 0
        taken += [next(found) for _ in range(20)]
    assert sorted([*taken, *found]) == list(range(100))
    assert alive() == 0


def test_several_threads_may_ask_one_reader() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(200):
            time.sleep(0.0005)
            yield pa.record_batch({"n": [number]})

    reader = reader_of(pa.schema([("n", pa.int64())]), batches())
    taken: list[int] = []

    def ask() -> None:
        for batch in reader:
            taken.append(batch["n"][0].as_py())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(200))


ENDS = """
import gc, sys, threading
import pyarrow as pa
import hoodie
from hoodie.storage import MemoryStore
rows = pa.table({"id": [str(n) for n in range(3000)], "p": [n % 6 for n in range(3000)], "v": ["x" * 300] * 3000})
t = hoodie.create("memory://ends", rows, record_key="id", partition_by="p", type="merge_on_read")
t.bulk_insert(rows)
t.upsert(rows.slice(0, 100))
kept = [t.to_batches(batch_rows=10) for _ in range(3)]
first = [reader.read_next_batch() for reader in kept]
kept[0].close()
dataset = t.to_dataset().to_batches()
next(dataset)
if sys.argv[1] == "thread":
    threading.Thread(target=lambda: kept[1].read_all()).start()
elif sys.argv[1] == "error":
    raise SystemExit(3)
elif sys.argv[1] == "cycle":
    loop = [kept]
    loop.append(loop)
    gc.disable()
"""


@pytest.mark.parametrize("way", ["plain", "thread", "error", "cycle"])
def test_a_process_ends_with_readers_that_were_not_read_to_their_end(way: str) -> None:
    done = subprocess.run([sys.executable, "-c", ENDS, way], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (3 if way == "error" else 0, "")
