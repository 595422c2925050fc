"""No code comes from a table: who imports modules by name, evaluates text or unpickles, and why that is safe."""

from __future__ import annotations

import ast

from tests.tidy.sources import Source, package_sources

# Each with its reason.
ALLOWED = {
    ("src/hoodie/cli/app.py", "importlib.import_module"): "the modules of the commands, by constant names",
    ("src/hoodie/ingest/code.py", "importlib.import_module"): "functions that the user's job file names",
    ("src/hoodie/ingest/sources/registry.py", "importlib.import_module"): "the modules of the sources, constant names",
    ("src/hoodie/spark/engine.py", "pickle.loads"): "tasks and results between the driver and its workers",
    ("src/hoodie/spark/merged.py", "pickle.loads"): "tasks between the driver and its workers",
    ("src/hoodie/spark/workers.py", "__import__"): "hoodie, a constant name",
    ("src/hoodie/spark/workers.py", "pickle.loads"): "the function of a step, from the driver to its workers",
}
LOADERS = {
    "__import__",
    "compile",
    "eval",
    "exec",
    "importlib.import_module",
    "cloudpickle.loads",
    "marshal.loads",
    "pickle.load",
    "pickle.loads",
    "yaml.load",
}


def _loaders(source: Source) -> set[str]:
    calls = (ast.unparse(node.func) for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    return {name for name in calls if name in LOADERS}


def test_only_these_modules_load_code() -> None:
    found = {(source.name, name) for source in package_sources() for name in _loaders(source)}
    assert found == ALLOWED.keys()
