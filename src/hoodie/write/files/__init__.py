"""Tasks of a write, each for one file group: they run in workers and return write statistics."""
