"""The operations that look after a table, one row each.

A row names a method of `Table` or of `table.index`, and describes the operation and its parameters. Types and
defaults are those of the method. The command line and CALL are made of the rows: a new operation is a method and a row.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hoodie.table import Table

MEND: Final = "Mend and go back"
MAINTAIN: Final = "Maintain"
LOOK: Final = "Look"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a parameter is for. `option`: its name on the command line, if that is not its own; `least`: its minimum."""

    text: str
    option: str = ""
    metavar: str | None = None
    least: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation.

    `name`: the words of its command. `method`: of `Table`, or `index.` and a method of `table.index`. `parameters`: the
    parameters of the method that the command and CALL have. `section`: where help lists it, for commands of one word.
    `procedure`: the procedure of JVM Hudi that does the same; without one, CALL has a procedure of this name.
    `command`: the module of `cli/` with a command that does more than call the method. `has_progress`: it can take
    long. `problems_code`: exit code of a report with problems.
    """

    name: str
    method: str
    about: str
    parameters: Mapping[str, About] = field(default_factory=dict)
    section: str = ""
    procedure: str | None = None
    command: str | None = None
    has_progress: bool = False
    problems_code: int = 1

    @property
    def group(self) -> str:
        """The group of the command; empty for a command of one word."""
        return self.name.rpartition(" ")[0]

    def signature(self) -> Mapping[str, inspect.Parameter]:
        """Return the parameters, as the method declares them; annotations are text."""
        name = self.method.removeprefix("index.")
        if name == self.method:
            from hoodie.table import Table as owner
        else:
            from hoodie.table.indexes import TableIndex as owner  # type: ignore[assignment]
        declared = inspect.signature(getattr(owner, name)).parameters
        return {name: declared[name] for name in self.parameters}

    def run(self, table: Table, arguments: Mapping[str, Any]) -> Any:
        """Call the method with arguments by name. Raises: as the method."""
        target: Any = table
        for name in self.method.split("."):
            target = getattr(target, name)
        return target(**arguments)


_KINDS: Final[Mapping[str, type]] = MappingProxyType(
    {"str": str, "bool": bool, "int": int, "float": float, "Sequence[str]": list, "Text": dict}
)


def kind_of(parameter: inspect.Parameter) -> tuple[type, bool]:
    """Return the type of a declared parameter (`list` of texts, `dict` of options), and whether it may be None."""
    parts = str(parameter.annotation).split(" | ")
    kinds = [part for part in parts if part != "None"]
    return _KINDS["Text" if kinds[-1].startswith("Mapping") else kinds[-1]], len(kinds) < len(parts)


_DRY_RUN: Final = About(text="Change nothing; print what would be deleted.")
_UNDO_DRY_RUN: Final = About(text="Only print what would be rolled back.")
_PLAN_FIRST: Final = About(text="Do it, or only print what would be done (default).")
_OPTIONS: Final = About(text="A `hoodie.*` option.")
_WAIT: Final = About(text="Seconds to wait for JVM writes that began before.", option="wait", least=0)
_VERSION_ABOUT: Final = (
    "Move a table to {} version: print the plan, or do it. Stop writers of other engines first.\n\n"
    "The plan reads the log files of a merge-on-read table, and notes those that are damaged: they would stop the move."
)
_INDEX: Final = About(text="record, hbase, column_stats, partition_stats or bloom_filters.", metavar="[NAME]")

OPERATIONS: Final = (
    Operation(
        name="verify",
        method="verify",
        about="Check a table. Exit code 0: sound, warnings included; 1: the table cannot be checked; 3: errors were "
        "found.",
        parameters={"full": About(text="Read every file, every key and the record index too.")},
        section=LOOK,
        has_progress=True,
        problems_code=3,
    ),
    Operation(
        name="repair",
        method="repair",
        about="Mend what `hoodie verify` found; by default only print what would be done.",
        parameters={
            "dry_run": _PLAN_FIRST,
            "full": About(text="Read every file, every key and the record index too."),
            "min_age_seconds": About(
                text="Keep orphaned and temporary files that are younger, in seconds.", option="min-age", least=0
            ),
            "accept_loss": About(text="Give up this lost file and its rows instead; may be repeated."),
        },
        section=MEND,
        command="recovery",
    ),
    Operation(
        name="rollback",
        method="rollback",
        about="Roll back a write or compaction: delete its files, and its instant from the timeline.\n\n"
        "The result counts the instants, the rows that they had inserted, updated and deleted, and the deleted files.",
        parameters={
            "instant": About(text="Requested time of a write or compaction, pending or completed."),
            "chain": About(text="Roll back all later commits too."),
            "dry_run": _UNDO_DRY_RUN,
            "properties": _OPTIONS,
        },
        section=MEND,
        procedure="rollback_to_instant",
    ),
    Operation(
        name="restore",
        method="restore",
        about="Restore the table to a savepoint: roll back everything after it. Completes a restore whose process "
        "died.",
        parameters={
            "savepoint": About(text="Requested time of a savepoint, or of another completed commit."),
            "dry_run": _UNDO_DRY_RUN,
            "properties": _OPTIONS,
        },
        section=MEND,
        procedure="rollback_to_savepoint",
    ),
    Operation(
        name="savepoint create",
        method="savepoint",
        about="Create a savepoint of a commit.",
        parameters={
            "instant": About(text="Requested time of a completed commit; default: the newest."),
            "user": About(text="Name of the user, for the list."),
            "comment": About(text="Comment, for the list."),
        },
        procedure="create_savepoint",
    ),
    Operation(
        name="savepoint delete",
        method="delete_savepoint",
        about="Delete a savepoint; its files stay until a clean finds them obsolete.",
        parameters={"instant": About(text="Requested time of the savepoint's commit.")},
        procedure="delete_savepoint",
    ),
    Operation(
        name="clean",
        method="clean",
        about="Delete the files that no retained snapshot needs; pending cleans are finished first.",
        parameters={"dry_run": _DRY_RUN, "properties": _OPTIONS},
        section=MAINTAIN,
        procedure="run_clean",
    ),
    Operation(
        name="expire-partitions",
        method="expire_partitions",
        about="Delete the partitions whose time to live is over, in one commit.",
        parameters={"dry_run": _DRY_RUN, "properties": _OPTIONS},
        section=MAINTAIN,
        procedure="run_ttl",
    ),
    Operation(
        name="archive",
        method="archive",
        about="Move the oldest instants of the timeline to its archive, if there are more than "
        "hoodie.keep.max.commits.",
        parameters={"dry_run": About(text="Change nothing; print what would be moved."), "properties": _OPTIONS},
        section=MAINTAIN,
        procedure="archive_commits",
    ),
    Operation(
        name="upgrade",
        method="upgrade",
        about=_VERSION_ABOUT.format("a later"),
        parameters={"to": About(text="8 or 9.", metavar="VERSION"), "dry_run": _PLAN_FIRST, "properties": _OPTIONS},
        section=MAINTAIN,
        procedure="upgrade_table",
        has_progress=True,
    ),
    Operation(
        name="downgrade",
        method="downgrade",
        about=_VERSION_ABOUT.format("an earlier"),
        parameters={"to": About(text="8 or 6.", metavar="VERSION"), "dry_run": _PLAN_FIRST, "properties": _OPTIONS},
        section=MAINTAIN,
        procedure="downgrade_table",
        has_progress=True,
    ),
    Operation(
        name="drop-old-timeline",
        method="drop_old_timeline",
        about="Delete the timeline that the last upgrade or downgrade kept; by default only count its files.",
        parameters={"dry_run": _PLAN_FIRST},
        section=MAINTAIN,
    ),
    Operation(
        name="index build",
        method="index.build",
        about="Build the record index, HBase index (with --option) or column statistics. Repeat it after a crash.",
        parameters={
            "name": _INDEX,
            "columns": About(text="A column to cover; repeat it. Default: the first 32.", option="column"),
            "buckets": About(
                text="Number of index file groups; default: one for each million keys, with room for growth.", least=1
            ),
            "properties": _OPTIONS,
            "wait_seconds": _WAIT,
        },
        has_progress=True,
    ),
    Operation(
        name="index drop",
        method="index.drop",
        about="Drop the record or HBase index (the table then finds records by `global_simple`), or column statistics.",
        parameters={"name": _INDEX},
    ),
    Operation(
        name="index switch",
        method="index.switch",
        about="Switch to another index, after a check that keys stay unique; writers can run. Repeat it after a crash.",
        parameters={
            "name": About(text="The new index, such as record, simple or bucket.", metavar="NAME"),
            "buckets": About(text="bucket: the number of buckets.", least=1),
            "hash_field": About(text="bucket: columns of the record key, separated by commas."),
            "key_keeps_partition": About(text="Assert that no later row gives a stored key another partition."),
            "dry_run": About(text="Only check whether the table can be switched."),
            "wait_seconds": _WAIT,
        },
        has_progress=True,
    ),
    Operation(
        name="index rebuild",
        method="index.rebuild",
        about="Build a damaged metadata table anew, with its record index; it holds derived data only.",
        parameters={"wait_seconds": _WAIT},
        has_progress=True,
    ),
    Operation(
        name="index verify",
        method="index.verify",
        about="Check the record index, HBase index or column statistics against the data; exit code 1 if they differ.",
        parameters={"name": About(text="As for build; default: the table's index of its keys.", metavar="[NAME]")},
        has_progress=True,
    ),
)
"""All operations. Help lists them in this order."""
