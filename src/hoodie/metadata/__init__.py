"""The metadata table: derived data about the data table that can always be rebuilt."""
