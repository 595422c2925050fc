"""The two consoles of a terminal: standard output for results, standard error for progress and errors."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from hoodie.ui.values import shown


def output() -> Console:
    """Create a console on the current standard output. A new console is needed after the stream is redirected."""
    return Console(highlight=False, soft_wrap=False, emoji=False)


def errors() -> Console:
    """Create a console on the current standard error."""
    return Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def print_error(error: BaseException, *, words: Mapping[str, str] | None = None) -> None:
    """Print an error in one line on standard error; `words` has replacements of parts of its message."""
    text = _line(str(error), words) or type(error).__name__
    errors().print("hoodie:", text, style="red", markup=False)


def print_note(text: str, *, words: Mapping[str, str] | None = None) -> None:
    """Print a note in one line on standard error; `words` as for `print_error`."""
    errors().print("note:", _line(text, words), style="yellow", markup=False)


def _line(text: str, words: Mapping[str, str] | None) -> str:
    text = shown(" ".join(text.split()))
    for call, said in (words or {}).items():
        text = text.replace(call, said)
    return text
