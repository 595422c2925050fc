"""Comparative measurements: `make bench`. No test runs them."""
