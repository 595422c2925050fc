"""Refusals as a table: a call, the error, words of its message; a refused call leaves no trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import hoodie


@contextmanager
def refused(
    table: hoodie.Table, *words: str, error: type[BaseException] | tuple[type[BaseException], ...] = hoodie.HoodieError
) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """The block raises this error with all of these words, and instants and rows of the table stay as they were."""
    before, rows = [str(instant) for instant in table.timeline], table.count()
    with pytest.raises(error) as caught:
        yield caught
    message = str(caught.value)
    message.encode()  # a terminal can print it
    assert [text for text in words if text not in message] == [], message
    again = hoodie.Table(table.view().store)
    assert ([str(instant) for instant in again.timeline], again.count()) == (before, rows)


def all_refused(error: type[BaseException], words: str, *calls: Callable[[], object]) -> None:
    """Each of the calls raises this error, and its message matches the words."""
    for call in calls:
        with pytest.raises(error, match=words):
            call()
