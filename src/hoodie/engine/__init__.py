"""Engines: they run the functions of other packages on threads or on Spark executors."""

from hoodie.engine.api import Consume, Dataset, Engine, Exchange, Prepare, TaskContext
from hoodie.engine.local import ArrowDataset, LocalEngine
from hoodie.engine.untyped import UntypedDataset

__all__ = [
    "ArrowDataset",
    "Consume",
    "Dataset",
    "Engine",
    "Exchange",
    "LocalEngine",
    "Prepare",
    "TaskContext",
    "UntypedDataset",
]
