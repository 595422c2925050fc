"""The local time zone of this process, changed for a test."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def local_zone(name: str) -> Iterator[str]:
    """Run the block with a local time zone, such as `America/New_York`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", name)
        time.tzset()
        try:
            yield name
        finally:
            patch.undo()
            time.tzset()
