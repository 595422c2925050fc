"""A table with every kind of instant, its server, and a headless Chromium whose console must stay empty."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import hoodie
from tests.support.web_server import Client, serving

CHROMIUM = os.environ.get("HOODIE_CHROMIUM", "/usr/bin/chromium")
NAME = "trips <b>&"
SETTLED = "!document.querySelector('.skeleton, .bone, [aria-busy]') && document.querySelector('h1') !== null"


def wait(page: Page, expression: str = SETTLED) -> None:
    """Wait until an expression is true: by default, until the page has all its answers."""
    until = time.monotonic() + 20
    while not page.evaluate(expression):
        assert time.monotonic() < until, expression
        page.wait_for_timeout(20)


def press(page: Page, *keys: str) -> None:
    """Press keys, one after the other."""
    for key in keys:
        page.keyboard.press(key)


def rows(count: int, at: int, first: int = 0, **more: Any) -> pa.Table:
    """Rows with the keys t0, t1, …, in three partitions; a name of a partition is markup."""
    numbers = range(first, first + count)
    cities = [("sf", "nyc", "<i>paris</i>")[number % 3] for number in numbers]
    columns = {"id": [f"t{n}" for n in numbers], "city": cities, "fare": [n / 2 for n in numbers], "at": [at] * count}
    return pa.table({**columns, **more})


def _every_kind(path: Path) -> None:
    soon = {"hoodie.compact.inline.max.delta.commits": "1"}
    t = hoodie.create(path, rows(1, 0), record_key="id", partition_by="city", ordering="at", type="merge_on_read")
    t.insert(rows(300, 1), extra_metadata={"spark.application": "application_1_0001"})
    for number in range(3):
        t.upsert(rows(9, 2 + number, number))
    t.schedule_compaction(properties=soon)
    t.compact()
    t.savepoint(user="ann", comment="before the migration")
    t.rollback(t.upsert(rows(3, 20)).instant)
    t.alter.add_column("tip", "double")
    t.upsert(rows(5, 21, tip=[1.0] * 5))
    t.cluster(properties={"hoodie.clustering.plan.strategy.small.file.limit": "1000000000"})
    t.insert_overwrite(rows(3, 22, tip=[0.0] * 3))
    t.index.build("column_stats")
    t.upsert(rows(5, 30, tip=[1.0] * 5))
    t.schedule_compaction(properties=soon)
    timeline = path / ".hoodie" / "timeline"
    first = min(each.name for each in timeline.glob("*.deltacommit.inflight")).partition(".")[0]
    dead = f"{int(first) + 1}"
    for state in ("requested", "inflight"):
        copied = shutil.copy(timeline / f"{first}.deltacommit.{state}", timeline / f"{dead}.deltacommit.{state}")
        # A young write without a heartbeat may be one of a running JVM.
        os.utime(copied, times=(time.time() - 3600,) * 2)


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of every kind of instant, and an empty table."""
    folder = tmp_path_factory.mktemp("lake")
    _every_kind(folder / NAME)
    hoodie.create(folder / "riders", rows(1, 0), record_key="id")
    return folder


@pytest.fixture(scope="session")
def site(lake: Path) -> Iterator[Client]:
    """A server of both tables."""
    with serving(lake) as client:
        yield client


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The Chromium of the system; no browser is downloaded."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser, site: Client) -> Iterator[Callable[..., Page]]:
    """Open pages as the browser of the reader. After the test no console message and no foreign request is allowed."""
    contexts, troubles = [], []

    def visited(place: str, *, allowed: str = "$.", **options: Any) -> Page:
        context = chromium.new_context(viewport={"width": 1280, "height": 900}, **options)
        contexts.append(context)
        origin = f"http://127.0.0.1:{site.server.gate.port}"
        name, _, value = site.cookie.partition("=")
        context.add_cookies([{"name": name, "value": value, "url": origin}])
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.set_default_timeout(20_000)

        def note(text: str, known: bool) -> None:
            if not known:
                troubles.append(text)

        ours = (origin, "data:", "file:")
        page.on("console", lambda sent: note(sent.text, re.search(allowed, sent.text) is not None))
        page.on("pageerror", lambda error: note(str(error), False))
        page.on("request", lambda request: note(request.url, request.url.startswith(ours)))
        page.goto(place if place.startswith("file:") else f"{origin}/{place}")
        wait(page)
        return page

    yield visited
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture
def trips(site: Client) -> str:
    """The hash of the pages of the table with every kind of instant."""
    return f"#/{site.id_of(NAME)}"
