"""Side-by-side measurements: `make bench`. Never part of a test."""
