"""`hoodie demo`: write a year of flights to Hudi tables, and check the result of every step."""

from hoodie.cli.demo.command import demo

__all__ = ["demo"]
