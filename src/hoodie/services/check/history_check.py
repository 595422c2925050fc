"""Check that the files of earlier states and of savepoints exist: of all states that no clean has passed.

The newest rows do not need these files, so that a listing that was built anew does not show that one is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from hoodie.display import counted
from hoodie.errors import CorruptFileError
from hoodie.files.slices import join_path
from hoodie.format.filenames import BaseFileName, LogFileName, parse_data_file
from hoodie.format.instants.replaced_files import FileGroup, found_by
from hoodie.results import EXAMPLES_MAX
from hoodie.services.check import kinds
from hoodie.services.check.files_check import KnownFiles
from hoodie.services.check.survey import Problem, Survey
from hoodie.timeline import Action
from hoodie.view.history import oldest_readable_instant, read_savepoint, savepointed_instants
from hoodie.view.table_view import TableView


def history_problems(survey: Survey, known: KnownFiles) -> Iterator[Problem]:
    """Check the base files that commits replaced, and the files that savepoints name; one read for each savepoint.

    A savepoint or clean that does not parse is left out: the check of the timeline reports it.
    """
    there = survey.data_files.keys() | known.leaving | known.needed
    saved: dict[str, list[str]] = {}
    for path, commit in _of_savepoints(survey.view):
        if path not in there:
            saved.setdefault(commit, []).append(path)
    for commit, paths in sorted(saved.items()):
        missing = f"{counted(len(paths), 'files')} missing: {', '.join(sorted(paths)[:EXAMPLES_MAX])}"
        yield Problem(kinds.SAVEPOINT_FILE_MISSING, commit, "all files that the savepoint names", missing)
    there = there.union(*saved.values())
    with suppress(CorruptFileError):
        replaced = {path: commit for path, commit in _replaced(survey) if path not in there}
        for path, commit in sorted(replaced.items()):
            yield Problem(kinds.HISTORY_FILE_MISSING, path, f"a file, which {commit} replaced", "none")


def _of_savepoints(view: TableView) -> Iterator[tuple[str, str]]:
    """Yield the paths of the files of each savepoint, with its commit.

    A savepoint of the JVM can name log files that were written after its commit, and may have been rolled back.
    """
    for commit in savepointed_instants(view):
        savepoint = view.timeline.get(commit, Action.SAVEPOINT)
        with suppress(CorruptFileError):
            for path, names in read_savepoint(view, savepoint).files.items() if savepoint else ():
                for name in names:
                    parsed = parse_data_file(name)
                    is_log = isinstance(parsed, LogFileName)
                    if parsed and not (is_log and (view.config.may_have_slice_logs or parsed.instant_time > commit)):
                        yield join_path(path, name), commit


def _replaced(survey: Survey) -> Iterator[tuple[str, str]]:
    """Yield the paths of the base files that a state which is not cleaned needs, with the commit that replaced each."""
    view, earliest = survey.view, oldest_readable_instant(survey.view)
    bases: dict[FileGroup, list[tuple[str, str]]] = {}
    for path in survey.recorded:
        name = parse_data_file(path)
        if isinstance(name, BaseFileName):
            bases.setdefault((path.rpartition("/")[0], name.file_id), []).append((name.instant_time, path))
    for instant, commit in survey.commits.items():
        # A clean keeps what the state as of its earliest commit needs; what that commit replaced may be gone.
        for was in found_by(commit).replaced if instant.requested_time > earliest else ():
            if was.base is not None and view.timeline.contains_or_before_start(was.base.instant_time):
                yield join_path(was.group[0], was.base.name), instant.requested_time
            elif was.is_ended:
                before = [found for found in bases.get(was.group, ()) if found[0] < instant.requested_time]
                yield from ((path, instant.requested_time) for _, path in before and [max(before)])
