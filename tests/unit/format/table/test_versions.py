"""Table versions and their predicates."""

from __future__ import annotations

import pytest

from hoodie.errors import UnsupportedError
from hoodie.format.table.versions import VERSIONS, TableVersion


def test_what_differs() -> None:
    six, eight, nine = TableVersion.SIX, TableVersion.EIGHT, TableVersion.NINE
    assert [version.layout_version for version in VERSIONS] == [1, 2, 2]
    for predicate in (
        "has_completion_time_in_name",
        "commit_metadata_is_avro",
        "stores_merge_mode",
        "stores_partition_field_types",
        "has_index_definitions",
        "has_log_compaction",
    ):
        assert [getattr(version, predicate) for version in (six, eight, nine)] == [False, True, True]
    assert [version.stores_payload_class for version in (six, eight, nine)] == [True, True, False]
    assert [version.names_single_complex_key for version in (six, eight, nine)] == [False, False, True]
    assert [version.log_name_has_base_instant for version in (six, eight, nine)] == [True, False, False]
    assert [version.validates_log_blocks for version in (six, eight, nine)] == [True, False, False]


@pytest.mark.parametrize("number", [6, 8, 9])
def test_known_versions(number: int) -> None:
    assert TableVersion.of(number).value == number


@pytest.mark.parametrize("number", [-1, 0, 5, 7, 10])
def test_unknown_versions(number: int) -> None:
    with pytest.raises(UnsupportedError, match=f"^p/hoodie.properties: .* found {number}"):
        TableVersion.of(number, path="p/hoodie.properties")
