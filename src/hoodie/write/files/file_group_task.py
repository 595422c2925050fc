"""Write the changes of one file group: a new base file, or one more log file."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.engine import TaskContext
from hoodie.storage import explained
from hoodie.write.context import WriteContext
from hoodie.write.files.file_task import rewrite
from hoodie.write.files.log_task import append
from hoodie.write.files.written import Written
from hoodie.write.plan import FileTask, TaggedRows


@dataclass(frozen=True, slots=True)
class WriteFileGroup:
    """Callable for `Engine.run`: write the changes of a task's file group; `rows` contains these changes.

    Memory: as `file_task.rewrite` and `log_task.append`.
    """

    context: WriteContext
    rows: TaggedRows

    def __call__(self, task: FileTask, attempt: TaskContext) -> Written:
        """Write the file and return its write statistics; the result is empty if there is nothing to write."""
        with explained(self.context.store.uri):
            return (append if task.appends else rewrite)(self.context, self.rows, task, attempt)
