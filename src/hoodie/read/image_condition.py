"""A condition on rows as a condition on change data: it is true if the row before or after the change matches."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from hoodie.records.condition import Condition
from hoodie.records.sql.parse import parse_expression, to_sql
from hoodie.records.sql.quoting import quoted

_ABSENT = {"before": "i", "after": "d"}
"""The operation in which an image is not there."""


def condition_on_images(where: Condition, images: pa.Schema) -> str:
    """Return the condition in SQL on `op`, and on `before` and `after`, which are structs of the columns of images.

    An image that is not there does not match, even if the condition is true for nulls.
    """
    sides = [f"op <> '{op}' AND ({_about(where, image, images)})" for image, op in _ABSENT.items()]
    return " OR ".join(f"({side})" for side in sides)


def _about(where: Condition, image: str, images: pa.Schema) -> str:
    """Return the condition with the name of the image before each column; other names stay as they are."""
    known = {name.lower() for name in images.names}

    def named(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Column) or node.parts[0].name.lower() not in known:
            return node
        return parse_expression(".".join(quoted(part) for part in (image, *(one.name for one in node.parts))))

    return to_sql(where.tree.transform(named))
