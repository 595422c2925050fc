"""Signals that end a command."""

from __future__ import annotations

import os
import signal

import pytest

from hoodie.cli.signals import interrupted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_second_signal_ends_at_once(number: int) -> None:
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    with interrupted() as stopped:
        assert not stopped.is_set()
        os.kill(os.getpid(), number)
        assert stopped.wait(5)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before
