"""The wheel holds what the pages need, and the other files of the packages that are not Python."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ASSETS = "hoodie/web/static/"
ASSETS_BYTES_MAX = 200_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of this source."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_each_file_of_the_packages_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    source = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"hoodie/web/static/index.html", "hoodie/py.typed"} <= source
    assert source <= set(wheel.namelist())


def test_the_assets_of_the_pages_stay_small(wheel: zipfile.ZipFile) -> None:
    assets = [entry for entry in wheel.infolist() if entry.filename.startswith(ASSETS)]
    assert 0 < sum(entry.file_size for entry in assets) < ASSETS_BYTES_MAX


def test_the_licence_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    assert any(name.endswith("/LICENSE") for name in wheel.namelist())
