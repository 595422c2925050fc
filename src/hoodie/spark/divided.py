"""Divide the rows of a DataFrame into good and bad ones in one pass, and count the bad ones on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql import Observation, functions

_PATIENCE_SECONDS: Final = 10.0
"""How long the count is waited for: it is there at once after an action that read the rows, and never without one."""


def divided(frame: Any, reason: str) -> tuple[Any, Callable[[], int | None]]:
    """Return the rows whose column `reason` is null, and a function that returns the number of the others.

    The first action on the returned rows counts, and must read all of them; without an action the number is None.
    """
    counting = Observation()
    observed = frame.observe(counting, functions.count(functions.col(f"`{reason}`")).alias("bad"))

    def count() -> int | None:
        found: list[Mapping[str, Any]] = []
        waiting = threading.Thread(target=lambda: found.append(counting.get), daemon=True)
        waiting.start()
        waiting.join(_PATIENCE_SECONDS)
        number = found[0].get("bad") if found else None
        return None if number is None else int(number)

    return observed.where(f"`{reason}` IS NULL"), count
