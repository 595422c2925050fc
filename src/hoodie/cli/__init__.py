"""The command line: parse, call the table, render the answer."""

from hoodie.cli.app import main

__all__ = ["main"]
