"""Procedures that list the rows of the metadata table, and compare it with the files."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.statements.procedures.procedure import FILTER, TABLE, Call, Row, optional, procedure, required
from hoodie.view.listing import list_files, list_from_storage


@procedure(parameters=(*TABLE, FILTER), columns="partition string")
def show_metadata_table_partitions(call: Call) -> Iterable[Row]:
    """List the partitions of the table."""
    return ({"partition": path} for path in sorted(list_files(call.table.view())))


@procedure(parameters=(*TABLE, optional("partition", ""), optional("limit", 100), FILTER), columns="file_path string")
def show_metadata_table_files(call: Call) -> Iterable[Row]:
    """List the committed files of a partition; without one, of a table without partitions."""
    names = list_files(call.table.view(), [call["partition"]]).get(call["partition"], {})
    return call.limited({"file_path": name} for name in sorted(names))


@procedure(
    parameters=(*TABLE, optional("partition"), optional("targetColumns"), FILTER),
    columns="file_name string, column_name string, min_value string, max_value string, null_number long",
)
def show_metadata_table_column_stats(call: Call) -> Iterable[Row]:
    """List the statistics of columns of the newest base files; targetColumns has commas between names."""
    wanted = {name.lower() for name in call.names_in("targetColumns")}
    partition = call["partition"]
    for row in call.table.inspect.statistics().to_pylist():
        if (not wanted or row["column"].lower() in wanted) and partition in (None, row["partition_path"]):
            yield {
                "file_name": row["file"],
                "column_name": row["column"],
                "min_value": row["min"],
                "max_value": row["max"],
                "null_number": row["nulls"],
            }


@procedure(
    parameters=(required("table"), optional("verbose", False)),
    columns="partition string, file_name string, is_present_in_fs boolean, is_present_in_metadata boolean, "
    "fs_size long, metadata_size long",
)
def validate_metadata_table_files(call: Call) -> Iterable[Row]:
    """List the files on which the metadata table and the folders do not agree; verbose: all files."""
    view = call.table.view()
    listed = list_files(view)
    stored = list_from_storage(view.store, view.config, view.whole_timeline(), view.archive())
    for path in sorted(listed.keys() | stored.keys()):
        ours, theirs = stored.get(path, {}), listed.get(path, {})
        for name in sorted(ours.keys() | theirs.keys()):
            if call["verbose"] or ours.get(name) != theirs.get(name):
                yield {
                    "partition": path,
                    "file_name": name,
                    "is_present_in_fs": name in ours,
                    "is_present_in_metadata": name in theirs,
                    "fs_size": ours.get(name, 0),
                    "metadata_size": theirs.get(name, 0),
                }
