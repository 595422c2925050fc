"""The commands that a finding names mend it: each is run as it is written, until `verify` is clean."""

from __future__ import annotations

import re
import shlex

import pytest

from hoodie.table import Table
from tests.support.command_line import Run
from tests.unit.services.check.wounds import WOUNDS, Wound

ROUNDS_MAX = 5
COMMAND = re.compile(r"hoodie (\w+ [^;,]*)")
BY_HAND = {"history-file-missing", "instant-doubled", "instant-not-requested", "key-doubled", "lock-damaged"}
"""Findings whose page asks a person to decide what is right, to restore a copy, or to wait."""
NOT_IN_6 = re.compile("manifest of the archive|partition statistics")
"""Wounds of files that tables of version 6 do not have."""
CASES = [
    pytest.param(wound, version, id=f"{wound.name} in version {version}")
    for wound in WOUNDS
    for version in (6, 8, 9)
    if not {kind.name for kind in wound.findings} <= BY_HAND and not (version == 6 and NOT_IN_6.search(wound.name))
]


@pytest.mark.matrix(keep=30)
@pytest.mark.parametrize(("wound", "version"), CASES)
def test_the_advice_of_a_finding_mends_it(wound: Wound, version: int, run: Run) -> None:
    store = wound.make(version)
    for _ in range(ROUNDS_MAX):
        report = Table(store).verify(full=True)
        left = [finding for finding in report.findings if finding.kind not in BY_HAND]
        if not left:
            break
        *_, command = COMMAND.findall(left[0].remedy or "")
        words = shlex.split(command)
        if "--accept-loss" in words:
            words.append("--execute")
        done = run(*words)
        assert done.code == 0, (left[0], done)
    assert not left, str(report)
    Table(store).to_arrow()
