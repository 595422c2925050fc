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
# The page of `Table` begins with what people call first. Each public name has one place; `_table` checks it.
OPENING = ("create", "open", "exists", "adopt")
METHODS = {
    "Read": "to_arrow head count read_keys read to_pandas to_polars to_duckdb to_batches to_dataset changes "
    "changes_since filter_exists record_locations explain",
    "Write": "insert upsert bulk_insert update delete delete_where merge insert_overwrite insert_overwrite_table "
    "delete_partitions stream write_batch",
    "Look at the table": "schema history timeline inspect path view",
    "Columns and indexes": "alter index",
    "Check and repair": "verify repair",
    "Take back": "savepoint savepoints delete_savepoint rollback restore",
    "Services": "services clean archive schedule_compaction compact pending_compactions schedule_log_compaction "
    "compactor cluster schedule_clustering pending_clusterings clustering_advice expire_partitions",
    "Table versions": "upgrade downgrade drop_old_timeline",
}
# The names in signatures that stand for several types.
ARGUMENTS = (
    "hoodie.table.context.Text",
    "hoodie.table.context.Where",
    "hoodie.table.context.Assignments",
    "hoodie.table.context.Partitions",
    "hoodie.table.context.Session",
    "hoodie.table.context.Spark",
    "hoodie.read.times.When",
)
# What public methods return, and what these results have.
RETURNED = (
    "hoodie.results.ServiceResult",
    "hoodie.results.Report",
    "hoodie.results.Finding",
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
    functions = [name for name in public if name not in {*classes, *OPENING}]
    results = [name for name in classes if name not in {*errors, "Table"}]
    return {
        "reference/functions.md": _api(
            "Functions",
            "`import hoodie`. The functions that create and open tables are on the page of [Table](table.md).",
            [f"hoodie.{name}" for name in functions],
        ),
        "reference/table.md": _table(),
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


def _table() -> str:
    """Return the page of `Table`: its functions and methods by what they are for, then what its properties return."""
    methods = [name for names in METHODS.values() for name in names.split()]
    public = {name for name in dir(hoodie.Table) if not name.startswith("_")}
    if wrong := {*methods} ^ public:
        raise ValueError(f"METHODS in {__file__} and the methods of Table differ: {sorted(wrong)}")
    parts = [
        "# Table",
        "`hoodie.create` and `hoodie.open` return a `Table`.",
        "## Create and open",
        *(_object(f"hoodie.{name}") for name in OPENING),
        "## The handle",
        _object("hoodie.Table", "members: false", "inherited_members: false"),
    ]
    for title, names in METHODS.items():
        parts += [f"## {title}", *(_object(f"hoodie.Table.{name}") for name in names.split())]
    parts += ["## The types of arguments", "Names in signatures that stand for several types."]
    parts += map(_object, ARGUMENTS)
    parts += [
        "## What `t.index`, `t.alter` and `t.merge` return",
        _object("hoodie.table.indexes.TableIndex"),
        _object("hoodie.table.alter.TableAlter"),
        _object("hoodie.table.merge.TableMerger"),
    ]
    return "\n\n".join(parts)


def _object(name: str, *options: str) -> str:
    lines = "".join(f"      {option}\n" for option in ("heading_level: 3", *options))
    return f"::: {name}\n    options:\n{lines}"


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
