"""Options: all are known where they are checked."""

from __future__ import annotations

import ast
import importlib
import pkgutil

import hoodie.config
from hoodie.config import OPTIONS, Option, check_options
from tests.tidy.sources import package_sources


def _config_modules() -> list[pkgutil.ModuleInfo]:
    return list(pkgutil.iter_modules(hoodie.config.__path__))


def test_every_option_is_known() -> None:
    modules_of_options = [importlib.import_module(f"hoodie.config.{found.name}") for found in _config_modules()]
    defined = [value for module in modules_of_options for value in vars(module).values() if isinstance(value, Option)]
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
