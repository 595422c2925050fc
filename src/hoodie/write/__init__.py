"""Write operations, one module each: prepare the rows, find their file groups, write files, and commit."""
