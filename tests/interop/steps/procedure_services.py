"""SQL procedures that run table services, and list what they did: cleans, clusterings, archiving, compactions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.interop.steps.procedures import KEYED, call, create, drop, instant
from tests.interop.steps.script import Page, Script

PAGE = Page("SQL procedures: table services")


def planned(it: Script) -> str:
    """Return the requested time of the clustering that is planned."""
    return instant(it, "clustering.requested")


@PAGE.step("a copy-on-write table with partitions")
def _(it: Script) -> None:
    create(it, "serve_cow")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5, 'x'), (2, 'b', 5, 'x'), (3, 'c', 5, 'y')")
    it.sql("UPDATE {t} SET v = 'u', ts = 6 WHERE id = 1")
    it.sql("DELETE FROM {t} WHERE id = 2")


@PAGE.step("run_clean with nothing to do")
def _(it: Script) -> Any:
    return call(it, "run_clean(table => '{t}')")


@PAGE.step("run_clean that keeps one commit")
def _(it: Script) -> Any:
    it.sql("UPDATE {t} SET v = 'u1' WHERE id = 1")
    return call(it, "run_clean(table => '{t}', retain_commits => 1)")


@PAGE.step("run_clean that keeps one version of the files")
def _(it: Script) -> Any:
    it.sql("UPDATE {t} SET v = 'u2' WHERE id = 1")
    text = "run_clean(table => '{t}', clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1)"
    return call(it, text)


@PAGE.step("show_cleans")
def _(it: Script) -> Any:
    return call(it, "show_cleans(table => '{t}')")


@PAGE.step("show_cleans_metadata")
def _(it: Script) -> Any:
    return call(it, "show_cleans_metadata(table => '{t}')")


@PAGE.step("show_clean_plans")
def _(it: Script) -> Any:
    return call(it, "show_clean_plans(table => '{t}')").drop("extra_metadata")


@PAGE.step("run_clustering: schedule, sorted, and the partitions shown")
def _(it: Script) -> Any:
    it.sql("INSERT INTO {t} VALUES (11, 'k', 5, 'x'), (10, 'l', 5, 'x')")
    return call(it, "run_clustering(table => '{t}', op => 'schedule', order => 'v', show_involved_partition => true)")


@PAGE.step("show_clustering")
def _(it: Script) -> Any:
    return call(it, "show_clustering(table => '{t}', show_involved_partition => true)")


@PAGE.step("run_clustering: execute")
def _(it: Script) -> Any:
    return call(it, "run_clustering(table => '{t}', op => 'execute')")


@PAGE.step("run_clustering of the partitions of a predicate")
def _(it: Script) -> Any:
    text = """run_clustering(table => '{t}', predicate => "p = 'x'", order => 'id', show_involved_partition => true)"""
    return call(it, text)


@PAGE.step("archive_commits")
def _(it: Script) -> Any:
    return call(it, "archive_commits(table => '{t}', min_commits => 4, max_commits => 5, retain_commits => 1)")


@PAGE.step("show_archived_commits")
def _(it: Script) -> Any:
    return call(it, "show_archived_commits(table => '{t}')")


@PAGE.step("show_archived_commits between two times")
def _(it: Script) -> Any:
    text = "show_archived_commits(table => '{t}', start_ts => '20200101000000000', end_ts => '20990101000000000')"
    return call(it, text)


@PAGE.step("show_archived_commits_metadata")
def _(it: Script) -> Any:
    text = "show_archived_commits_metadata(table => '{t}', start_ts => '2020', end_ts => '2099', limit => 100)"
    return call(it, text)


@PAGE.step("show_timeline with archived instants")
def _(it: Script) -> Any:
    times = ("requested_time", "inflight_time", "completed_time")
    return call(it, "show_timeline(table => '{t}', showArchived => true)", *times)


@PAGE.step("export_instants")
def _(it: Script) -> Any:
    folder = Path(it.path).parent / "exported"
    folder.mkdir()
    found = call(it, f"export_instants(table => '{{t}}', local_folder => '{folder}', actions => 'commit')")
    found.collect()
    return it.frame("files int", (len(list(folder.glob("[0-9]*"))),))


@PAGE.step("drop_partition")
def _(it: Script) -> Any:
    return call(it, "drop_partition(table => '{t}', partition => 'p=y')")


@PAGE.step("truncate_table of a partition")
def _(it: Script) -> Any:
    it.sql("INSERT INTO {t} VALUES (20, 'a', 5, 'y'), (21, 'b', 5, 'z')")
    return call(it, "truncate_table(table => '{t}', partitions => 'p=y')")


@PAGE.step("run_ttl")
def _(it: Script) -> Any:
    return call(it, "run_ttl(table => '{t}', retain_days => 1)")


@PAGE.step("run_clean with options, of a table in a database")
def _(it: Script) -> Any:
    it.sql("UPDATE {t} SET v = 'u3' WHERE id = 1")
    return call(it, "run_clean(table => 'default.{t}', options => 'hoodie.clean.commits.retained=1')")


@PAGE.step("show_cleans with archived ones")
def _(it: Script) -> Any:
    return call(it, "show_cleans(table => '{t}', showArchived => true)")


@PAGE.step("run_clustering by two columns in an order of space, with options")
def _(it: Script) -> Any:
    it.sql("INSERT INTO {t} VALUES (30, 'a', 5, 'y'), (31, 'b', 5, 'z')")
    options = "options => 'hoodie.clustering.plan.strategy.target.file.max.bytes=1048576'"
    order = "order => 'ts,v', order_strategy => 'zorder'"
    return call(it, f"run_clustering(table => '{{t}}', op => 'scheduleAndExecute', {order}, {options})")


@PAGE.step("run_clustering by a column that is not there is refused")
def _(it: Script) -> Any:
    return call(it, "run_clustering(table => '{t}', order => 'nothing')")


@PAGE.step("run_clustering of no partition")
def _(it: Script) -> Any:
    return call(it, """run_clustering(table => '{t}', predicate => "p = 'absent'", order => 'id')""")


@PAGE.step("run_clustering by a predicate on rows is refused")
def _(it: Script) -> Any:
    return call(it, """run_clustering(table => '{t}', predicate => "ts > 1L", order => 'id')""")


@PAGE.step("show_compaction of a copy-on-write table is refused")
def _(it: Script) -> Any:
    return call(it, "show_compaction(table => '{t}')")


@PAGE.step("run_compaction of a copy-on-write table")
def _(it: Script) -> Any:
    return call(it, "run_compaction(op => 'run', table => '{t}')")


@PAGE.step("drop_partition of two, and of one that is not there")
def _(it: Script) -> Any:
    return call(it, "drop_partition('{t}', 'p=y,p=z,p=absent')")


@PAGE.step("run_clustering of single files, without an order")
def _(it: Script) -> Any:
    return call(it, "run_clustering(table => '{t}', selected_partitions => 'p=x')")


@PAGE.step("truncate_table")
def _(it: Script) -> Any:
    return call(it, "truncate_table(table => '{t}')")


@PAGE.step("a merge-on-read table with log files")
def _(it: Script) -> None:
    create(it, "serve_mor", f"type = 'mor', {KEYED}")
    it.sql("INSERT INTO {t} VALUES (1, 'a', 5, 'x'), (2, 'b', 5, 'x'), (3, 'c', 5, 'y')")
    it.sql("UPDATE {t} SET v = 'u', ts = 6 WHERE id < 4")


@PAGE.step("run_compaction: schedule")
def _(it: Script) -> Any:
    return call(
        it, "run_compaction(op => 'schedule', table => '{t}', options => 'hoodie.compact.inline.max.delta.commits=1')"
    )


@PAGE.step("show_compaction")
def _(it: Script) -> Any:
    return call(it, "show_compaction(table => '{t}')")


@PAGE.step("run_compaction: run")
def _(it: Script) -> Any:
    return call(it, "run_compaction(op => 'run', table => '{t}')")


@PAGE.step("show_compaction after it, by path")
def _(it: Script) -> Any:
    return call(it, f"show_compaction(path => '{it.path}')")


@PAGE.step("run_compaction of an instant")
def _(it: Script) -> Any:
    it.sql("UPDATE {t} SET v = 'w', ts = 7 WHERE id = 3")
    call(
        it, "run_compaction(op => 'schedule', table => '{t}', options => 'hoodie.compact.inline.max.delta.commits=1')"
    ).collect()
    plan = instant(it, "compaction.requested")
    return call(it, f"run_compaction(op => 'execute', table => '{{t}}', instants => '{plan}')")


@PAGE.step("run_compaction of an instant that is not pending is refused")
def _(it: Script) -> Any:
    return call(it, "run_compaction(op => 'execute', table => '{t}', instants => '20200101000000000')")


@PAGE.step("run_compaction with an unknown operation is refused")
def _(it: Script) -> Any:
    return call(it, "run_compaction(op => 'sometimes', table => '{t}')")


@PAGE.step("run_compaction: scheduleAndExecute with nothing to do")
def _(it: Script) -> Any:
    return call(it, "run_compaction(op => 'scheduleAndExecute', table => '{t}')")


@PAGE.step("run_rollback_inflight_tableservice of a plan that nobody began")
def _(it: Script) -> Any:
    call(it, "run_clustering(table => '{t}', op => 'schedule', order => 'id')").collect()
    return call(it, f"run_rollback_inflight_tableservice(table => '{{t}}', pending_instant => '{planned(it)}')")


@PAGE.step("run_rollback_inflight_tableservice of a plan that somebody began")
def _(it: Script) -> Any:
    Path(it.path, ".hoodie", "timeline", f"{planned(it)}.clustering.inflight").touch()
    return call(it, f"run_rollback_inflight_tableservice(table => '{{t}}', pending_instant => '{planned(it)}')")


@PAGE.step("show_clustering after it")
def _(it: Script) -> Any:
    return call(it, "show_clustering(table => '{t}')")


@PAGE.step("drop the tables")
def _(it: Script) -> None:
    drop(it, "serve_cow", "serve_mor")
