"""The command line: parse the arguments, call the table, print the result."""

from hoodie.cli.app import main

__all__ = ["main"]
