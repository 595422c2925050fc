"""A table in a few facts, for people."""

from __future__ import annotations

from hoodie.view.table_view import TableView


def summary(view: TableView) -> dict[str, str]:
    """Return name, type, keys, partition columns, ordering, newest commit and columns, as text by heading.

    Raises: CorruptFileError if the newest commit does not parse.
    """
    config = view.config
    completed = view.timeline.completed().instants
    columns = ", ".join(f"{field.name} {field.type}" for field in view.schema().arrow)
    return {
        "name": config.name,
        "type": f"{config.table_type.value.lower()}, version {config.version.value}",
        "record key": ", ".join(config.record_key_fields) or "automatic",
        "partitioned by": ", ".join(config.partition_fields),
        "ordering": ", ".join(config.ordering_fields),
        "index": ", ".join(config.metadata_partitions),
        "newest instant": str(completed[-1]) if completed else "none: the table has no rows yet",
        "columns": columns,
    }
