"""Log files of file groups: the frame of a block, and the content of data blocks and delete blocks."""
