"""Pages of the site that are made when `make site` builds it: a hook of mkdocs.yml.

The reference of the API names the objects that mkdocstrings renders: each public name of `hoodie`, and the classes that
methods of a table return. The reference of the commands is the help of each command. CHANGELOG.md becomes a page.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import hoodie
from hoodie.cli.app import build_app

ROOT = Path(__file__).parents[1]
HELP_CHARS = 100
# What public methods return, and what these results have.
RETURNED = (
    "hoodie.services.results.ServiceResult",
    "hoodie.services.results.Report",
    "hoodie.services.results.Finding",
    "hoodie.read.changes.ChangedRows",
    "hoodie.read.dataset.TableDataset",
    "hoodie.read.inspect.Inspection",
    "hoodie.read.plan.ReadExplained",
    "hoodie.index.api.LookUpCost",
    "hoodie.services.cleaning.clean.CleanResult",
    "hoodie.services.clustering.clustering.PendingClusterings",
    "hoodie.services.compaction.compaction.PendingCompactions",
    "hoodie.services.runner.Compactor",
    "hoodie.services.runner.ServiceRunner",
    "hoodie.services.ttl.ExpiredResult",
    "hoodie.view.commit_cache.Savepoint",
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, content in _pages().items():
        files.append(File.generated(config, name, content=content))
    return files


def _pages() -> dict[str, str]:
    # By their names: `hoodie.ship` cannot be loaded without PySpark, which the site does not need.
    public = [name for name in hoodie.__all__ if name != "__version__"]
    classes = [name for name in public if name[0].isupper()]
    errors = [name for name in classes if name.endswith(("Error", "Warning"))]
    functions = [name for name in public if name not in classes]
    results = [name for name in classes if name not in {*errors, "Table"}]
    return {
        "reference/functions.md": _api("Functions", "`import hoodie`", [f"hoodie.{name}" for name in functions]),
        "reference/table.md": _api(
            "Table",
            "`hoodie.create` and `hoodie.open` return a `Table`, `t.index` a `TableIndex`, `t.alter` a `TableAlter`, "
            "`t.merge` a `TableMerger`.",
            [
                "hoodie.Table",
                "hoodie.table.indexes.TableIndex",
                "hoodie.table.alter.TableAlter",
                "hoodie.table.merge.TableMerger",
            ],
        ),
        "reference/results.md": _api(
            "Results", "What methods of a table return.", [*(f"hoodie.{name}" for name in results), *RETURNED]
        ),
        "reference/errors.md": _api(
            "Errors", "`except hoodie.HoodieError` catches all of them.", [f"hoodie.{name}" for name in errors]
        ),
        "reference/commands.md": _commands(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "]("),
    }


def _api(title: str, introduction: str, names: list[str]) -> str:
    return f"# {title}\n\n{introduction}\n\n" + "\n".join(f"::: {name}\n" for name in names)


def _commands() -> str:
    help_ = (f"## {path}\n\n```text\n{text}\n```\n" for path, text in _help_of(typer.main.get_command(build_app([]))))
    return "# Commands\n\nThe help of every command.\n\n" + "\n".join(help_)


def _help_of(command: Any, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Return the name and the help of a command and of those below it."""
    name = command.name if parent else "hoodie"
    context = command.context_class(command, info_name=name, parent=parent, terminal_width=HELP_CHARS)
    yield context.command_path, command.get_help(context)
    for below in getattr(command, "commands", {}).values():
        yield from _help_of(below, context)
