"""Round trips of reads and writes in an object store that takes 50 ms for each request, beside delta-rs.

The store is moto's S3 behind a delay. The server notes when each request begins and ends; of the requests of an act
the longest row is counted of which each began after the one before had ended. `python -m bench.cloud LIBRARY ENDPOINT`
does the acts in a process of its own, and tells the server where each begins.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import pyarrow as pa

from bench.child import figures_of, print_figures, tell
from bench.commit_requests import CITIES, rows_of, s3_options
from bench.markdown import machine_line, table
from bench.settings import Settings, machine

DELAY_SECONDS = 0.05
LIBRARIES = ("hoodie", "delta-rs")
_BUCKET = "bench"
_ROWS = 20_000
_CHANGES = 100
_CLEANED_AFTER = 12
_MARK = "/__act__/"
_PATIENCE_SECONDS = 0.0002
"""Of two requests that follow each other, the second may be noted before the first."""

_THREE = "id in ('k000001', 'k000002', 'k000003')"
Acts = list[tuple[str, Callable[[], object]]]


def run(settings: Settings) -> dict[str, Any]:
    """Count the round trips of the acts of each library; both in one run."""
    tell("round trips in a slow object store ...")
    told = machine()
    counts: dict[str, dict[str, dict[str, float]]] = {}
    for library in LIBRARIES:
        with _slow_s3() as (endpoint, requests):
            seconds = figures_of("bench.cloud", library, endpoint)
            counts[library] = {
                act: {"requests": len(times), "row": _longest_row(times), "seconds": seconds[act]}
                for act, times in requests.items()
                if act in seconds
            }
    return {"machine": told, "rows": _ROWS, "delay": DELAY_SECONDS, "counts": counts}


def render(result: Mapping[str, Any]) -> str:
    """Render a row for each act: round trips in a row, all requests, and seconds."""
    counts = result["counts"]
    rows = []
    for act, ours in counts["hoodie"].items():
        theirs = counts["delta-rs"].get(act)
        rows.append([act, *_cells(ours), *(_cells(theirs) if theirs else ("",) * 3)])
    head = ["act", "hoodie: in a row", "requests", "seconds", "delta-rs: in a row", "requests", "seconds"]
    title = (
        f"S3 (moto) with {result['delay'] * 1000:.0f} ms for each request; {_ROWS:,} rows in {CITIES} partitions, "
        f"in process, changes of {_CHANGES} rows, {machine_line(result['machine'])}"
    )
    return "\n".join([title, "", table(head, rows), ""])


def _cells(found: Mapping[str, float]) -> tuple[str, str, str]:
    return f"{found['row']:.0f}", f"{found['requests']:.0f}", f"{found['seconds']:.2f}"


def _longest_row(times: list[tuple[float, float]]) -> int:
    """Return how many requests follow each other at most: each begins after the end of the one before."""
    count, last = 0, float("-inf")
    for begin, end in sorted(times, key=lambda found: found[1]):
        if begin >= last - _PATIENCE_SECONDS:
            count, last = count + 1, end
    return count


@contextmanager
def _slow_s3() -> Iterator[tuple[str, dict[str, list[tuple[float, float]]]]]:
    """Start an S3 service with a bucket; yield its endpoint, and by act when its requests began and ended."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    app, acts, act = DomainDispatcherApplication(create_backend_app), {}, [""]

    def slow(environ: dict[str, Any], respond: Callable[..., Any]) -> Any:
        path = environ["PATH_INFO"]
        if path.startswith(_MARK):
            act[0] = path.removeprefix(_MARK)
            if act[0]:
                acts[act[0]] = list[tuple[float, float]]()
            respond("204 No Content", [])
            return []
        begin, noted = time.perf_counter(), acts.get(act[0])
        if noted is not None:
            time.sleep(DELAY_SECONDS)
        answer = app(environ, respond)
        if noted is not None:
            noted.append((begin, time.perf_counter()))
        return answer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, slow, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.port}"
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{_BUCKET}", method="PUT")).close()
        yield endpoint, acts
    finally:
        server.shutdown()
        thread.join()


def _changes(number: int) -> pa.Table:
    return rows_of(range(number * _CHANGES, (number + 1) * _CHANGES), number)


def _hoodie_acts(endpoint: str) -> Acts:
    import hoodie

    uri, options = f"s3://{_BUCKET}/hoodie", s3_options(endpoint)
    schema, known = rows_of(range(1), 0).schema, {"record_key": "id", "partition_by": "city", "ordering": "ts"}
    t: Any = hoodie.create(uri, schema, **cast(Any, known), storage_options=options, spark=False)
    handles: list[Any] = []

    def opened() -> Any:
        handles.append(hoodie.open(uri, storage_options=options, spark=False))
        return handles[-1]

    return [
        ("bulk insert of all rows", lambda: t.bulk_insert(rows_of(range(_ROWS), 0))),
        ("", lambda: [t.upsert(_changes(number)) for number in range(1, 3)]),
        ("upsert", lambda: t.upsert(_changes(3))),
        ("upsert, a new handle", lambda: opened().upsert(_changes(4))),
        ("open", opened),
        ("read all, a new handle", lambda: opened().to_arrow()),
        ("read all again", lambda: handles[-1].to_arrow()),
        ("three keys, a new handle", lambda: opened().to_arrow(where=_THREE)),
        ("one partition, a new handle", lambda: opened().to_arrow(where="city = 'c1'")),
        ("", lambda: [t.upsert(_changes(number)) for number in range(5, _CLEANED_AFTER + 1)]),
        ("upsert with a clean", lambda: t.upsert(_changes(_CLEANED_AFTER + 1))),
    ]


def _delta_acts(endpoint: str) -> Acts:
    from deltalake import DeltaTable, QueryBuilder, write_deltalake

    uri, options = f"s3://{_BUCKET}/delta", {**s3_options(endpoint), "aws_conditional_put": "etag"}
    handles: list[Any] = []

    def opened() -> Any:
        handles.append(DeltaTable(uri, storage_options=options))
        return handles[-1]

    def upsert(into: Any, number: int) -> None:
        merge = into.merge(_changes(number), "t.id = s.id and t.city = s.city", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def query(of: Any, condition: str) -> object:
        return QueryBuilder().register("t", of).execute(f"select * from t{condition}").read_all()

    first = rows_of(range(_ROWS), 0)
    return [
        (
            "bulk insert of all rows",
            lambda: write_deltalake(uri, first, partition_by=["city"], storage_options=options),
        ),
        ("", lambda: [upsert(opened(), number) for number in range(1, 3)]),
        ("upsert", lambda: upsert(handles[-1], 3)),
        ("upsert, a new handle", lambda: upsert(opened(), 4)),
        ("open", opened),
        ("read all, a new handle", lambda: query(opened(), "")),
        ("read all again", lambda: query(handles[-1], "")),
        ("three keys, a new handle", lambda: query(opened(), f" where {_THREE}")),
        ("one partition, a new handle", lambda: query(opened(), " where city = 'c1'")),
    ]


def main() -> None:
    """Do the acts of a library in the store that the arguments name; print the seconds of each."""
    library, endpoint = sys.argv[1:3]
    acts = _hoodie_acts(endpoint) if library == "hoodie" else _delta_acts(endpoint)
    seconds = {}
    for act, do in acts:
        if act:
            urllib.request.urlopen(f"{endpoint}{_MARK}{act.replace(' ', '%20')}").close()
        begin = time.perf_counter()
        do()
        if act:
            seconds[act] = time.perf_counter() - begin
            urllib.request.urlopen(f"{endpoint}{_MARK}").close()
    print_figures(seconds)


if __name__ == "__main__":
    main()
