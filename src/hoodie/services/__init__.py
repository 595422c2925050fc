"""Table services: operations that look after a table."""
