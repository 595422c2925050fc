"""The matrices of tests/crash are sampled; `make test-all` runs every case."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.samples import sample_folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the sample of each matrix."""
    sample_folder(config, items, Path(__file__).parent)
