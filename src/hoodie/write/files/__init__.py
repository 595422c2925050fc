"""Tasks of a write that write files: they run in workers and return write statistics."""
