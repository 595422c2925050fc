"""Transforms: the rows of a batch, changed before they are written."""

from hoodie.ingest.transforms.registry import transforms_of
from hoodie.ingest.transforms.transform import Context, Transform

__all__ = ["Context", "Transform", "transforms_of"]
