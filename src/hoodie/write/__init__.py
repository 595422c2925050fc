"""Write operations, one module for each: prepare the rows, find their file groups, write files, and commit."""
