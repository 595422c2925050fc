"""A module is named after its noun; these names mean that the noun is missing."""

from __future__ import annotations

from pathlib import Path

from tests.tidy.sources import PACKAGE, ROOT, all_test_sources, package_sources

NAMES_WITHOUT_A_NOUN = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}


def test_no_module_is_named_after_nothing() -> None:
    wrong = [
        source.name
        for source in package_sources() + all_test_sources()
        if NAMES_WITHOUT_A_NOUN & set(Path(source.name).with_suffix("").parts)
    ]
    assert not wrong, f"name these after what they hold: {wrong}"


def test_unit_tests_mirror_the_package() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    folders = {
        path.name for path in (ROOT / "tests" / "unit").iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    assert folders <= rooms, f"tests/unit has folders for rooms that do not exist: {folders - rooms}"
