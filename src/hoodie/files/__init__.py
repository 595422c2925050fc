"""Base files, log files and file slices."""
