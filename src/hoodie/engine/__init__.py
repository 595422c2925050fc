"""Engines: they run the functions of other packages on threads or on Spark executors."""

from hoodie.engine.api import Consume, Dataset, Engine, EngineFor, Exchange, Prepare, TaskContext
from hoodie.engine.inputs import UntypedDataset
from hoodie.engine.local import ArrowDataset, LocalEngine, PartedDataset, engine_beside, known_bytes_of, local_engine

__all__ = [
    "ArrowDataset",
    "Consume",
    "Dataset",
    "Engine",
    "EngineFor",
    "Exchange",
    "LocalEngine",
    "PartedDataset",
    "Prepare",
    "TaskContext",
    "UntypedDataset",
    "engine_beside",
    "known_bytes_of",
    "local_engine",
]
