"""A sample of a matrix is the same for the same seed, and leaves nothing out in a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import samples


@pytest.mark.matrix(keep=3)
@pytest.mark.parametrize("number", range(20))
def test_many(number: int) -> None:
    """A matrix for the test below."""
    assert number < 20


@pytest.mark.parametrize(("is_whole", "kept"), [(False, 3), (True, 20)])
def test_a_marked_test_keeps_some_of_its_cases(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, is_whole: bool, kept: int
) -> None:
    monkeypatch.setattr(samples, "IS_WHOLE", is_whole)
    module = request.node.getparent(pytest.Module)
    items = [item for item in module.session.items if item.getparent(pytest.Module) is module]
    many = [item for item in items if item.get_closest_marker("matrix")]
    found = samples.sample_matrices(items)
    assert found == samples.sample_matrices(items)
    assert len(set(found) & set(many)) == min(kept, len(many))
    assert set(items) - set(many) <= set(found)


def test_no_test_begins_after_the_time_of_the_run(tmp_path: Path) -> None:
    samples.leave_out_for_time()
    # Undone in the test: the run itself may have a list of what passed.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(samples, "PASSED", str(tmp_path / "passed"))
        patched.setattr(samples, "UNTIL", 0.0)
        with pytest.raises(pytest.skip.Exception, match="left out for time"):
            samples.leave_out_for_time()
    assert (tmp_path / "passed.left-out").exists()


def test_lanes_that_repeat_the_contract_run_a_part_of_it(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "IS_WHOLE", False)
    marks = ("matrix", "surface", "connect")
    items = [item for item in request.session.items if not any(map(item.get_closest_marker, marks))]
    found = samples.sample_lane(items, "connect")
    assert found == samples.sample_lane(items, "connect")
    assert len(found) == round(len(items) * samples.REPEATED)
    assert [item for item in items if item in set(found)] == found
    monkeypatch.setattr(samples, "IS_WHOLE", True)
    assert samples.sample_lane(items, "connect") == items


def test_few_items_cover_each_value_of_each_group() -> None:
    items = [(group, left, right) for group in "xyz" for left in range(4) for right in range(3)]
    found = samples.covering(items, lambda item: item[0], lambda item: item[1], lambda item: item[2])
    assert {(group, left) for group, left, _ in found} == {(group, left) for group, left, _ in items}
    assert {(group, right) for group, _, right in found} == {(group, right) for group, _, right in items}
    assert len(found) == 3 * 4
    assert found == sorted(found)
