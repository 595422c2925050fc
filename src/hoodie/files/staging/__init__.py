"""Stage the changes of a write as Arrow files between two steps, and spill tables from memory to files."""
