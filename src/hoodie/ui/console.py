"""The two ends of a terminal: results go to standard output, progress and errors to standard error."""

from __future__ import annotations

from rich.console import Console


def output() -> Console:
    """Console on standard output as it is now; made anew, so that a redirected stream is honoured."""
    return Console(highlight=False, soft_wrap=False)


def errors() -> Console:
    """Console on standard error as it is now."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_error(error: BaseException) -> None:
    """Say an error in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    errors().print("hoodie:", text, style="red", markup=False)
