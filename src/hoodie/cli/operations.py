"""The commands of the table of operations: one for each row that has no command of its own module."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from hoodie.cli.options import Call, Execute, Properties, pairs, table_command
from hoodie.cli.terminal import Answer
from hoodie.cli.words import result_in_words
from hoodie.results import ServiceResult
from hoodie.table.operations import OPERATIONS, About, Operation, kind_of


def command_of(operation: Operation) -> Callable[..., None]:
    """Return the command of an operation: its parameters are those of the row."""
    declared = operation.signature()

    def run(call: Call, **given: Any) -> Any:
        found = operation.run(call.table, {name: _value(declared[name], given[name]) for name in declared})
        if isinstance(found, ServiceResult):
            said = str(result_in_words(found, call.path))
            return Answer("\n".join([said, *found.details()]), [found.to_dict()])
        return found

    own = inspect.Parameter("call", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    shown = [_shown(parameter, operation.parameters[name]) for name, parameter in declared.items()]
    run.__signature__ = inspect.Signature([own, *shown])  # type: ignore[attr-defined]
    run.__doc__ = operation.about
    title = operation.name if operation.has_progress else None
    return table_command(title, failed=operation.problems_code)(run)


def group_of(name: str, about: str) -> typer.Typer:
    """Return a group of commands with those of the rows; a module may add further ones."""
    group = typer.Typer(help=about, no_args_is_help=True, rich_markup_mode=None)
    for operation in OPERATIONS:
        if operation.group == name:
            group.command(operation.name.rpartition(" ")[2])(command_of(operation))
    return group


def _plans_first(parameter: inspect.Parameter) -> bool:
    """Return whether the operation changes nothing by default, so that the command has `--execute`."""
    return parameter.name == "dry_run" and parameter.default is True


def _shown(parameter: inspect.Parameter, about: About) -> inspect.Parameter:
    """Return the parameter of the command: an argument for a text that may be given by place, else an option."""
    kind, may_be_none = kind_of(parameter)
    annotation: Any
    if _plans_first(parameter):
        return _declared(parameter.name, Execute, False)
    if kind is dict:
        return _declared(parameter.name, Properties, None)
    is_argument = kind is str and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    if is_argument:
        annotation = typer.Argument(help=about.text, metavar=about.metavar)
    else:
        name = f"--{about.option or parameter.name.replace('_', '-')}"
        annotation = typer.Option(name, help=about.text, metavar=about.metavar, min=about.least)
    shown: Any = list[str] if kind is list else kind
    return _declared(parameter.name, Annotated[shown | None if may_be_none else shown, annotation], parameter.default)


def _declared(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


def _value(parameter: inspect.Parameter, given: Any) -> Any:
    """Return the argument of the method for what the command was given."""
    if _plans_first(parameter):
        return not given
    if kind_of(parameter)[0] is dict:
        return pairs(given)
    return given
