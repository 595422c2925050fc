"""The pages in a browser: what they show, by mouse and keyboard, in light and dark, wide and narrow."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

import hoodie
from hoodie.web.export import export
from hoodie.web.places import Tables
from tests.support.web_server import Client
from tests.web.conftest import NAME, SETTLED, press, rows, wait

pytestmark = pytest.mark.timeout(120)
Visit = Callable[..., Page]
PAGES = {
    "overview": ["What is wrong", "What waits", "How it grows", "Who wrote what", "About the table"],
    "timeline": ["Timeline", "Instants in the window"],
    "files": ["File sizes", "Log backlog", "Partitions"],
    "index": ["Index", "Last check", "Metadata table", "Locks"],
    "schema": ["Columns", "History", "Compare"],
    "data": ["Find a record", "Changes of a write", "Rows"],
    "findings": ["On the timeline", "Files and indexes"],
    "flows": ["Flows and streams"],
}
AXE = resources.files("axe_playwright_python") / "axe.min.js"
MARKUP = "<i>paris</i>"


def go(page: Page, place: str) -> None:
    """Show another page of the same document, and wait until it stands."""
    page.evaluate("place => { location.hash = place; }", place)
    wait(page, f"location.hash === '{place}' && {SETTLED}")


def places(site: Client) -> list[str]:
    """The hashes of all pages, and of an instant."""
    table = f"#/{site.id_of(NAME)}"
    instant = site.report(NAME, "writers")["rows"][0]["instant"]
    return ["#/", *(f"{table}/{name}" for name in PAGES), f"{table}/timeline?instant={instant}"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_its_parts(visit: Visit, trips: str, name: str) -> None:
    page = visit(f"{trips}/{name}")
    assert [heading.strip() for heading in page.locator("main h2").all_inner_texts()] == PAGES[name]
    assert page.locator(".failure").count() == 0
    assert page.title().endswith(f"{NAME} · hoodie")


def test_the_tables_come_by_trouble_and_an_empty_one_names_what_to_do(visit: Visit, site: Client) -> None:
    page = visit("#/")
    assert page.locator("tbody a").all_inner_texts() == [NAME, "riders"]
    for name in PAGES:
        go(page, f"#/{site.id_of('riders')}/{name}")
        assert page.locator(".failure").count() == 0
        page.locator(".empty").first.wait_for()


def test_what_waits_and_the_check_name_commands(visit: Visit, trips: str) -> None:
    page = visit(f"{trips}/overview")
    expect(page.locator(".wait.dead")).to_contain_text("dead")
    expect(page.locator(".wait").filter(has_text="compaction").first).to_contain_text("requested")
    command = page.locator("#main .finding .command code, #main .command code").first.inner_text()
    press(page, "c")
    expect(page.locator("#live.toast")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == command
    go(page, f"{trips}/findings")
    page.get_by_role("button", name="Verify", exact=True).click()
    expect(page.locator("section", has_text="Files and indexes")).to_contain_text("files checked")


def test_a_walk_by_keyboard(visit: Visit, site: Client, trips: str) -> None:
    page = visit("#/")
    press(page, "j", "Enter")
    wait(page, f"location.hash === '{trips}/overview' && {SETTLED}")
    press(page, "2")
    wait(page, f"location.hash === '{trips}/timeline' && {SETTLED}")
    focused = page.locator("tr[data-item]").nth(1)
    focused.wait_for()
    press(page, "j", "j")
    expect(focused).to_be_focused()
    press(page, "Enter")
    expect(page.locator(".drawer")).to_be_focused()
    press(page, "Escape")
    expect(focused).to_be_focused()
    press(page, "/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("rollback")
    expect(page.locator("main tbody tr")).to_have_count(1)
    press(page, "Escape", "?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    press(page, "Escape")
    before = str(page.locator(".timeline").get_attribute("aria-label"))
    press(page, "+", "ArrowLeft", "-")
    expect(page.locator(".timeline")).not_to_have_attribute("aria-label", before)


def test_the_timeline_has_a_lane_an_action_and_marks(visit: Visit, trips: str) -> None:
    page = visit(f"{trips}/timeline")
    press(page, "0")
    lanes = page.locator(".timeline .lane > .lane-label")
    expected = ["deltacommit", "compaction", "clustering", "replacecommit", "rollback", "savepoint", "indexing"]
    expect(lanes).to_have_text(expected)
    expect(page.locator(".timeline .pending:not(.dead)")).to_have_count(1)
    expect(page.locator(".timeline .dead-mark")).to_have_count(1)
    page.get_by_label("Metadata table").check()
    expect(page.locator(".timeline .group-title")).to_have_text("Metadata table")
    expect(lanes).not_to_have_count(len(expected))


def test_an_instant_opens_with_decoded_statistics(visit: Visit, site: Client, trips: str) -> None:
    first = site.report(NAME, "writers")["rows"][-1]["instant"]
    page = visit(f"{trips}/overview?instant={first}")
    drawer = page.locator(".drawer")
    expect(drawer).to_contain_text("application_1_0001")
    expect(drawer.locator("tfoot")).to_contain_text("300")
    expect(drawer.locator(".file-row:visible")).to_have_count(0)
    drawer.get_by_role("button", name=MARKUP).click()
    expect(drawer.locator(".file-row:visible")).to_have_count(1)
    drawer.get_by_text("Raw content").click()
    expect(drawer.locator("pre")).to_contain_text("partitionToWriteStats")
    go(page, f"{trips}/files")
    expect(drawer).to_have_count(0)
    page.get_by_role("button", name=MARKUP).click()
    page.locator(".detail tbody button").first.click()
    expect(page.locator(".detail")).to_contain_text("current")
    assert page.locator("main i").count() == 0


def test_the_data_page_finds_records_rows_and_changes(visit: Visit, site: Client, trips: str) -> None:
    newest = site.report(NAME, "writers")["rows"][0]["instant"]
    page = visit(f"{trips}/data?key=t1&changed={newest}", allowed="status of 400")
    expect(page.locator("section", has_text="Find a record")).to_contain_text("Versions")
    expect(page.locator("section", has_text="Changes of a write").locator("tbody tr").first).to_be_visible()
    for condition, part in (
        ("fare > 0 and id = 't2'", "tbody td >> text=t2"),
        ("nothing = 1", ".failure >> text=nothing"),
    ):
        page.get_by_label("Where").fill(condition)
        page.get_by_role("button", name="Show rows").click()
        page.locator("section", has_text="Show rows").locator(part).first.wait_for()


def test_a_commit_of_another_writer_appears_within_two_seconds(visit: Visit, lake: Path, trips: str) -> None:
    page = visit(f"{trips}/timeline")
    page.wait_for_timeout(2_500)
    written = hoodie.open(lake / NAME).upsert(rows(2, 40, tip=[1.0] * 2))
    began = time.monotonic()
    page.locator("main tbody a", has_text=written.instant).wait_for(timeout=5_000)
    assert time.monotonic() - began < 2.0


def test_a_hidden_page_listens_to_nothing_and_catches_up(visit: Visit, site: Client, lake: Path, trips: str) -> None:
    page = visit(f"{trips}/timeline")
    page.wait_for_timeout(1_500)
    watched = site.server.site.watchers._watchers

    def show(is_hidden: bool) -> None:
        page.evaluate(
            "is => { Object.defineProperty(document, 'hidden', { get: () => is, configurable: true });"
            " document.dispatchEvent(new Event('visibilitychange')); }",
            is_hidden,
        )
        until = time.monotonic() + 10
        while bool(watched) is is_hidden:
            assert time.monotonic() < until
            page.wait_for_timeout(50)

    show(is_hidden=True)
    written = hoodie.open(lake / NAME).upsert(rows(2, 50, tip=[1.0] * 2))
    page.wait_for_timeout(1_500)
    assert page.locator("main tbody a", has_text=written.instant).count() == 0
    show(is_hidden=False)
    page.locator("main tbody a", has_text=written.instant).wait_for(timeout=5_000)
    go(page, "#/")
    until = time.monotonic() + 10
    while watched:
        assert time.monotonic() < until
        page.wait_for_timeout(50)


def test_a_slow_table_does_not_hold_up_the_others(visit: Visit, site: Client, trips: str) -> None:
    page = visit(f"{trips}/schema")
    page.evaluate(
        "() => { const made = AbortSignal.timeout; AbortSignal.timeout = () => made.call(AbortSignal, 2500); }"
    )
    held = list[Route]()
    page.route(re.compile(f"{site.id_of('riders')}/summary"), lambda route: held.append(route))
    page.evaluate("location.hash = '#/'")
    cells = page.locator("tbody tr", has_text=NAME).locator("td")
    for at in (1, 2):
        expect(cells.nth(at)).to_contain_text(re.compile(r"\d"), timeout=2_000)
    slow = page.locator("tbody tr", has_text="riders").locator("td").first
    assert slow.inner_text() == ""
    expect(slow).to_have_text("no answer yet")
    expect(page.locator(".verdict")).to_contain_text("1 table without an answer yet")
    assert page.locator("tbody a").all_inner_texts() == ["riders", NAME]
    for route in held:
        route.abort()
    page.unroute_all()


def test_a_large_instant_has_the_sums_of_all_files(visit: Visit, site: Client, trips: str) -> None:
    instant = site.report(NAME, "writers")["rows"][-1]["instant"]
    answer = site.report(NAME, f"instant?time={instant}")
    sums = {"files": 4_000, "numWrites": 4_321, "totalWriteBytes": 9_000}
    first = next(iter(answer["content"]["partitionToWriteStats"]))
    answer["statistics"] = {"partitions": 1, "all": sums, "by_partition": {first: sums}}
    answer["notes"] = ["statistics of the first files"]
    page = visit(f"{trips}/overview")
    body = json.dumps(answer)
    page.route(re.compile("/instant"), lambda route: route.fulfill(body=body, content_type="application/json"))
    go(page, f"{trips}/overview?instant={instant}")
    drawer = page.locator(".drawer")
    expect(drawer.locator("tfoot")).to_contain_text("4,321")
    expect(drawer.locator(".partition-row")).to_contain_text("4,000 files, 1 shown")
    expect(drawer.locator(".notes")).to_contain_text("first files")


def test_without_data_no_full_check_is_offered(visit: Visit, trips: str) -> None:
    page = visit(f"{trips}/findings")
    expect(page.get_by_label("Full")).to_have_count(1)
    answer = page.request.get(page.url.partition("#")[0] + "api/places").json()
    body = json.dumps({**answer, "data": False})
    page.route(re.compile("/api/places"), lambda route: route.fulfill(body=body, content_type="application/json"))
    page.reload()
    wait(page)
    expect(page.get_by_role("button", name="Verify", exact=True)).to_be_visible()
    expect(page.get_by_label("Full")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(visit: Visit, site: Client, scheme: str) -> None:
    page = visit("#/", color_scheme=scheme, reduced_motion="reduce", bypass_csp=True)
    page.evaluate(AXE.read_text())
    found = []
    for place in places(site):
        go(page, place)
        report = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        found += [(place, each["id"], [node["html"] for node in each["nodes"]]) for each in report["violations"]]
    assert found == []


def test_no_page_scrolls_sideways_on_a_telephone(visit: Visit, site: Client) -> None:
    page = visit("#/")
    page.set_viewport_size({"width": 400, "height": 800})
    for place in places(site):
        go(page, place)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, place


def test_colours_follow_the_system_and_the_button(visit: Visit) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light, dark = (visit("#/", color_scheme=scheme) for scheme in ("light", "dark"))
    assert light.evaluate(background) != dark.evaluate(background)
    press(light, "t", "t")
    light.reload()
    assert light.evaluate(background) == dark.evaluate(background)


def test_a_hundred_thousand_instants_stay_responsive(visit: Visit, trips: str) -> None:
    page = visit(f"{trips}/overview")
    start = datetime(2024, 1, 1, tzinfo=UTC)
    times = [start + timedelta(minutes=10 * number) for number in range(100_000, -1, -1)]
    made = [
        {"instant": f"{begun:%Y%m%d%H%M%S}000", "requested_at": f"{begun:%FT%TZ}", "completed_at": f"{ended:%FT%TZ}"}
        | {"action": "deltacommit" if ended.minute else "clean", "state": "completed"}
        for begun, ended in pairwise(reversed(times))
    ]
    body = json.dumps({"rows": made[::-1], "next": None, "notes": []})
    page.route(re.compile("/timeline"), lambda route: route.fulfill(body=body, content_type="application/json"))
    go(page, f"{trips}/timeline")
    expect(page.locator(".tools .note")).to_contain_text("100,000", timeout=60_000)
    press(page, "0")
    for key in ["+"] * 12 + ["ArrowLeft"] * 6 + ["-"] * 12:
        press(page, key)
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.locator(".timeline *").count() < 4_000
    assert page.locator("main tbody tr").count() <= 60


def test_an_export_opens_from_a_file(visit: Visit, lake: Path, tmp_path: Path) -> None:
    html, notes = export(Tables([str(lake / NAME)], {}), shows_data=True)
    assert notes == []
    file = tmp_path / "report.html"
    file.write_text(html)
    page = visit(file.as_uri())
    assert page.locator("h1").inner_text() == NAME
    for number in [*range(len(PAGES)), 1]:
        page.locator(".tabs a").nth(number).click()
        wait(page)
        assert page.locator(".failure").count() == 0
    page.locator("main tbody tr a").first.click()
    expect(page.locator(".drawer")).to_contain_text("Action")


def test_an_error_names_what_to_do_and_can_be_tried_again(visit: Visit, trips: str) -> None:
    page = visit(f"{trips}/overview", allowed="status of 500|Failed to load")
    answer = '{"error": "the store does not answer", "type": "StorageError"}'
    page.route(re.compile("/flows"), lambda route: route.fulfill(status=500, body=answer))
    go(page, f"{trips}/flows")
    expect(page.get_by_role("alert")).to_contain_text("the store does not answer")
    page.unroute_all()
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".empty")).to_contain_text("No flow writes to this table.")


def test_the_assets_are_small_and_no_text_becomes_markup() -> None:
    files = {file.name: file.read_text() for file in (resources.files("hoodie.web") / "static").iterdir()}
    assert sum(len(text.splitlines()) for name, text in files.items() if name.endswith((".js", ".css"))) <= 2_000
    assert sum(len(text.encode()) for text in files.values()) <= 200_000
    ways = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|srcdoc")
    assert [name for name, text in files.items() if ways.search(text)] == []
    assert re.findall(r"<[^>]+ (?:style|on\w+)=", files["index.html"]) == []
