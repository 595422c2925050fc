"""The lanes that `.ci/run` chooses for a change: first those whose code it touches, then the others in turn."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("choose_lanes", ROOT / "scripts" / "choose_lanes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def order(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], turn: int
) -> list[str]:
    answer = script._git
    monkeypatch.setattr(script, "_git", lambda *words: str(turn) if words[0] == "rev-list" else answer(*words))
    script.main()
    return [line.split()[0] for line in capsys.readouterr().out.splitlines()]


def test_each_lane_is_a_target_and_its_rooms_exist(script: ModuleType) -> None:
    targets = re.findall(r"^lane-([a-z0-9.-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert {lane.name for lane in script.LANES} | {"judges"} == set(targets)
    for lane in script.LANES:
        for room in lane.rooms:
            path = ROOT / script._path(room)
            assert path.exists() or path.with_suffix(".py").exists(), room


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ("src/hoodie/index/hbase/tag.py", {"hbase"}),
        ("src/hoodie/spark/scan.py", {"classic", "connect", "spark-3.5"}),
        ("tests/interop/older/test_releases.py", {"older"}),
        ("docs/start.md", set()),
    ],
)
def test_lanes_whose_code_changes_come_first(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changed: str,
    first: set[str],
) -> None:
    monkeypatch.setattr(script, "changed_files", lambda: [changed])
    found = order(script, monkeypatch, capsys, 0)
    assert set(found[: len(first)]) == first
    assert sorted(found) == sorted(lane.name for lane in script.LANES)


def test_every_lane_is_the_first_in_its_turn(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "changed_files", list)
    found = [order(script, monkeypatch, capsys, turn)[0] for turn in range(len(script.LANES))]
    assert found == [lane.name for lane in script.LANES]
