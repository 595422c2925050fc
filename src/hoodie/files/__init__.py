"""Files of the data table: file groups and file slices as of an instant, and file access in bounded memory."""
