"""Log files on storage: find their blocks, read the records in the blocks, append blocks."""
