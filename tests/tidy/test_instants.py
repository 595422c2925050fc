"""One room moves instants of the data table on, one module those of the metadata table; all others ask them."""

from __future__ import annotations

from tests.tidy.sources import package_sources

TRANSITIONS = {"create_requested", "create_inflight", "create_completed"}
MODULES = {
    "src/hoodie/commit/pending.py": "instants of the data table",
    "src/hoodie/metadata/folder.py": "instants of the metadata table",
}


def test_only_two_modules_move_instants_on() -> None:
    users = {
        source.name
        for source in package_sources()
        if source.room != "timeline" and TRANSITIONS & {name.rpartition(".")[2] for _, name in source.imports()}
    }
    assert users == MODULES.keys(), f"these move instants on: {sorted(users)}; only {MODULES} may"
