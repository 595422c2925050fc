"""Write the versions that are installed in the environment of this Python to a constraint file of pip.

Usage: .venv/bin/python scripts/write_constraints.py constraints/newest.txt (or `make constraints`, for all
environments). The first line names the Python. Packages with compiled code are never built from their source, so that
an installation for a Python that lacks them fails at once.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

# The project itself, and what comes with Python.
LEFT_OUT = {"hoodie", "pip", "setuptools", "wheel"}


def constraints() -> str:
    """Return the content of the file."""
    found = {_name(package): package for package in distributions()}
    kept = {name: found[name] for name in sorted(found.keys() - LEFT_OUT)}
    compiled = [
        name for name, package in kept.items() if "Root-Is-Purelib: false" in (package.read_text("WHEEL") or "")
    ]
    lines = [f"{name}=={package.version}" for name, package in kept.items()]
    return "\n".join([_heading(), *(f"--only-binary {name}" for name in compiled), *lines]) + "\n"


def _heading() -> str:
    return f"# Python {sys.version_info.major}.{sys.version_info.minor}. `make constraints` writes this file."


def _name(package: Distribution) -> str:
    return re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(constraints(), encoding="utf-8")
