"""Engines: where the functions of the rooms above run."""

from hoodie.engine.api import Consume, Dataset, Engine, Exchange, Prepare, TaskContext
from hoodie.engine.local import ArrowDataset, LocalEngine

__all__ = ["ArrowDataset", "Consume", "Dataset", "Engine", "Exchange", "LocalEngine", "Prepare", "TaskContext"]
