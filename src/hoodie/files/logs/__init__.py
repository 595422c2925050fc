"""Log files on storage: find their blocks, read the records in them, append blocks."""
