"""`hoodie demo`: a year of flights in a Hudi table, every claim checked."""

from hoodie.cli.demo.command import demo

__all__ = ["demo"]
