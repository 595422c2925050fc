"""Options: all are known where they are checked."""

from __future__ import annotations

import ast

from hoodie import config
from hoodie.config import OPTIONS, Option, check_options
from tests.tidy.sources import package_sources


def test_every_option_is_known() -> None:
    defined = [value for value in vars(config).values() if isinstance(value, Option)]
    assert {option.key for option in defined} == OPTIONS.keys()
    modules = {
        source.name
        for source in package_sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Option"
    }
    # Those of creation are table properties, which are known besides.
    elsewhere = {name for name in modules if not name.startswith("src/hoodie/config/")}
    assert elsewhere == {"src/hoodie/write/create.py"}, "options of other modules would be read, but refused as unknown"


def test_the_growth_factor_of_the_record_index_is_an_option_of_every_call() -> None:
    check_options({"hoodie.metadata.record.index.growth.factor": "1.5"})
