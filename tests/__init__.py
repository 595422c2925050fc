"""Tests of hoodie; a package so that its parts can import each other by name."""
