"""`hoodie upgrade`, `downgrade` and `drop-old-timeline`: move a table to another table version."""

from __future__ import annotations

from typing import Annotated

import typer

from hoodie.cli.options import Call, Execute, Properties, pairs, table_command
from hoodie.cli.terminal import progress_bar
from hoodie.results import ServiceResult


@table_command()
def upgrade(
    call: Call,
    to: Annotated[int, typer.Option("--to", metavar="VERSION", help="8 or 9.")] = 9,
    execute: Execute = False,
    option: Properties = None,
) -> ServiceResult:
    """Move a table to a later version: print the plan, or do it. Stop writers of other engines first.

    The plan reads the log files of a merge-on-read table, and notes those that are damaged: they would stop the move.
    """
    with progress_bar("upgrade"):
        return call.table.upgrade(to, dry_run=not execute, properties=pairs(option))


@table_command()
def downgrade(
    call: Call,
    to: Annotated[int, typer.Option("--to", metavar="VERSION", help="8 or 6.")],
    execute: Execute = False,
    option: Properties = None,
) -> ServiceResult:
    """Move a table to an earlier version: print the plan, or do it. Stop writers of other engines first.

    The plan reads the log files of a merge-on-read table, and notes those that are damaged: they would stop the move.
    """
    with progress_bar("downgrade"):
        return call.table.downgrade(to, dry_run=not execute, properties=pairs(option))


@table_command()
def drop_old_timeline(call: Call, execute: Execute = False) -> ServiceResult:
    """Delete the timeline that the last upgrade or downgrade kept; by default only count its files."""
    return call.table.drop_old_timeline(dry_run=not execute)
