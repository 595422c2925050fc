"""Errors of plans that must not stop other plans: they are kept, and the first is raised at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Failures:
    """The errors of the plans of one call. Errors of every library are kept, as those of Arrow or Spark."""

    def __init__(self) -> None:
        """Start without errors."""
        self._errors: list[Exception] = []

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the error of the body instead of raising it."""
        try:
            yield
        except Exception as error:
            self._errors.append(error)

    def keep(self, error: Exception) -> None:
        """Keep an error that the caller has caught."""
        self._errors.append(error)

    def raise_first(self) -> None:
        """Raise the first error, if there is one; its notes name the others."""
        if not self._errors:
            return
        first, *others = self._errors
        for other in others:
            first.add_note(f"another plan failed too: {type(other).__name__}: {other}")
        raise first
