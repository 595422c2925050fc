"""The reports of a table (`Table.inspect`): Arrow tables or plain values of what a page and the command line show.

A module for each subject; none lists all files of a large table at once except `files`, `slices` and `statistics`.
"""

from hoodie.read.inspect.files import RowCounts
from hoodie.read.inspect.inspection import Inspection
from hoodie.read.report import notes_of

__all__ = ["Inspection", "RowCounts", "notes_of"]
