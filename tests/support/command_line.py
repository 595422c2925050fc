"""The type of the fixture `run`, which runs command lines in this process (tests/unit/cli/conftest.py)."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[..., tuple[object, str, str]]
"""Takes the arguments of a command line; returns its exit code, output and errors."""
