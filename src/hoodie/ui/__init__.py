"""What a terminal shows: tables, JSON lines, progress. Renders what it is given, and knows no table operation."""
