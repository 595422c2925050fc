"""A kind of metadata partition is named by its own module and its builder; all other modules ask the registry."""

from __future__ import annotations

import ast

from tests.tidy.sources import package_sources

_NAMES = "hoodie.format.metadata_table.partition_names"
OWNERS = ("format/", "metadata/kinds/", "index/record/", "services/indexing/")
"""Folders of the kinds and of the record index, which services/indexing builds, switches and checks."""
OTHERS = {
    "commit/metadata_table.py": "whether the properties ask for a record index depends on the index types",
    "metadata/slices.py": "the log files of `files` are recorded in no other place",
}
"""May only shrink."""


def test_no_other_module_names_a_kind() -> None:
    found = {
        source.name.removeprefix("src/hoodie/")
        for source in package_sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom) and node.module == _NAMES
    }
    assert {name for name in found if not name.startswith(OWNERS)} == OTHERS.keys()
