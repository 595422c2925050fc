"""Output of a terminal: tables, JSON lines and progress. This package renders data and calls no table operation."""
