"""Files of the data table: file groups and slices as of an instant, and one file read or written in bounded memory."""
