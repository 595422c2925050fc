"""`hoodie ui` and `hoodie report` as commands: the export to one file, exit codes, the first line, Ctrl-C."""

from __future__ import annotations

import base64
import hashlib
import http.cookiejar
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import hoodie
from hoodie.cli.options import FOUND
from tests.support.command_line import Run

MARKUP = "</script><script>alert('x')</script><!--"
SECRET = "hunter2-not-to-be-seen"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "lake" / MARKUP.replace("/", "∕")
    made = hoodie.create(path, {"id": ["a"]}, record_key="id", name="markup", type="merge_on_read")
    made.upsert({"id": [MARKUP]}, extra_metadata={"note": MARKUP, "db.password": SECRET})
    made.upsert({"id": [MARKUP]})
    return path


class _Page(HTMLParser):
    """The scripts and styles of a page, and what it loads."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.loaded: list[str] = []
        self._open: dict[str, str | None] | None = None
        self.policy = ""
        self.styles: list[str] = []
        self._style = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loaded += [value for name, value in attrs if name in ("src", "href") and value and value[:1] != "#"]
        if tag == "script":
            self._open = given
        self._style = tag == "style"
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.scripts.append((self._open, data))
        if self._style:
            self.styles.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._open, self._style = None, False


def _exported(file: Path) -> Any:
    page = _Page(file.read_text(encoding="utf-8"))
    assert [url for url in page.loaded if not url.startswith("data:")] == []
    (answers, (kind, script)) = page.scripts[0], page.scripts[1]
    assert len(page.scripts) == 2
    assert answers[0] == {"type": "application/json", "id": "exported"}
    assert kind == {"type": "module"}
    for text in (script, *page.styles):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in page.policy
    assert "default-src 'none'" in page.policy
    assert "unsafe" not in page.policy
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    names = re.findall(r"^(?:async )?(?:function\*?|const|let|class) (\w+)", script, re.MULTILINE)
    assert len(names) == len({*names}) > 20
    if shutil.which("node"):
        (file.parent / "joined.mjs").write_text(script, encoding="utf-8")
        subprocess.run(["node", "--check", file.parent / "joined.mjs"], check=True, timeout=60)
    return json.loads(answers[1])


def test_an_export_has_the_answers_of_one_table(run: Run, table: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert str(file) in run.text("ui", table.parent, "--export", file)
    text = file.read_text(encoding="utf-8")
    exported = _exported(file)
    prefix = f"tables/{exported['table']}"
    answers = exported["answers"]
    parts = {key.removeprefix(f"{prefix}/").partition("?")[0] for key in answers if key != "places"}
    assert parts == {
        *("summary", "sizes", "timeline", "waits", "growth", "writers", "partitions", "backlog", "index", "schemas"),
        *("flows", "locks", "verify", "instant"),
    }
    assert answers["places"]["export"]
    assert not answers["places"]["data"]
    assert answers["places"]["notes"] == []
    assert answers["places"]["tables"][0]["id"] == exported["table"]
    assert answers[f"{prefix}/verify"]["report"]["ok"]
    instants = {row["instant"] for row in answers[f"{prefix}/timeline?archived=1&limit=1000"]["rows"]}
    assert len(instants) == 2
    for instant in instants:
        assert answers[f"{prefix}/instant?time={instant}"]["content"]["operationType"] == "UPSERT"
    assert SECRET not in text
    assert MARKUP not in text


def test_rows_are_exported_on_request(run: Run, table: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    run.text("ui", table, "--data", "--export", file)
    exported = _exported(file)
    rows = exported["answers"][f"tables/{exported['table']}/rows?limit=200"]["rows"]
    assert rows == [{"id": MARKUP}]


def test_an_export_is_of_one_table(run: Run, table: Path, tmp_path: Path) -> None:
    hoodie.create(tmp_path / "lake" / "other", {"id": ["a"]}, record_key="id")
    done = run("ui", tmp_path / "lake", "--export", tmp_path / "report.html")
    assert done.code == 1
    assert "expected one below" in done.err
    assert "2 tables" in done.err
    assert "lake/other" in done.err
    (tmp_path / "none").mkdir()
    done = run("ui", tmp_path / "none", "--export", tmp_path / "report.html")
    assert (done.code, "found no table" in done.err) == (1, True)
    assert not (tmp_path / "report.html").exists()


def test_what_cannot_be_read_is_a_note(run: Run, table: Path, tmp_path: Path) -> None:
    newest = max((table / ".hoodie" / "timeline").glob("*.deltacommit"))
    newest.write_bytes(b"no commit")
    done = run("ui", table, "--export", tmp_path / "report.html")
    assert done.code == 0
    assert "note:" in done.err
    exported = _exported(tmp_path / "report.html")
    assert exported["answers"]["places"]["notes"]
    assert not exported["answers"][f"tables/{exported['table']}/verify"]["report"]["ok"]


def test_a_report_of_findings_has_an_exit_code(run: Run, tmp_path: Path) -> None:
    table = hoodie.create(tmp_path / "t", {"id": ["a"]}, record_key="id", type="merge_on_read")
    table.upsert({"id": ["a"]})
    for fail_on in ("error", "warning"):
        assert run("report", tmp_path / "t", "--fail-on", fail_on).code == 0
    next((tmp_path / "t" / ".hoodie" / "timeline").glob("*.requested")).unlink()
    assert run("report", tmp_path / "t").code == 0
    assert run("report", tmp_path / "t", "--fail-on", "warning").code == FOUND
    next(found for found in (tmp_path / "t").glob("*-0_*.parquet")).unlink()
    done = run("report", tmp_path / "t", "--json")
    assert done.code == FOUND
    assert not json.loads(done.out)["ok"]
    assert run("report", tmp_path / "none").code == 1
    assert run("report", tmp_path / "t", "--fail-on", "never").code == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["memory://x", "--host", "no such host"], "cannot be opened"),
        (["/no/such/folder"], "expected a table, or a folder with tables below"),
        (["s9://bucket/x"], "no store for 's9'"),
        (["memory://x", "--storage-option", "a"], "expected KEY=VALUE"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(run: Run, arguments: list[str], expected: str) -> None:
    done = run("ui", *arguments, "--no-browser")
    assert done.code in (1, 2)
    assert expected in " ".join(done.err.split())


def _start(*arguments: object, code: str = "from hoodie.cli import main; main()") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, "ui", *map(str, arguments), "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "BROWSER": "false"},
    )


def test_it_prints_its_address_and_ends_quietly(table: Path) -> None:
    for stop in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        process = _start(table.parent)
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", address)
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(address.partition("?")[0], timeout=10)
        process.send_signal(stop)
        out, err = process.communicate(timeout=20)
        assert (out, err) == ("", "")
        assert process.returncode == (0 if stop == signal.SIGINT else -stop)


def test_it_ends_although_a_store_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {
            "aws_endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "allow_http": "true",
            "aws_access_key_id": "a",
            "aws_secret_access_key": "b",
        }
        given = [text for key, value in options.items() for text in ("--storage-option", f"{key}={value}")]
        process = _start("s3://bucket/x", *given)
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        browser = urllib.request.build_opener(cookies)
        browser.open(address, timeout=20).close()
        with pytest.raises(TimeoutError):
            browser.open(f"{address.partition('?')[0]}api/places", timeout=1)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20) == ("", "")
        assert process.returncode == 0


def test_the_browser_gets_an_address_for_once(table: Path, tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-c", "from hoodie.cli import main; main()", "ui", table.parent],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "BROWSER": f"{browser} %s"},
    )
    assert process.stdout is not None
    printed = process.stdout.readline().strip()
    until = time.monotonic() + 20
    while not opened.exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    address = opened.read_text().strip()
    assert address.partition("=")[0] == printed.partition("=")[0]
    assert address != printed

    def read(each: str) -> None:
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        urllib.request.build_opener(cookies).open(each, timeout=20).close()

    for each in (address, printed, printed):
        read(each)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        read(address)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)


WITHOUT_THE_EXTRA = """
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("starlette", "uvicorn"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
from hoodie.cli import main
main()
"""


def test_without_the_extra_only_the_export_works(table: Path, tmp_path: Path) -> None:
    process = _start(table, code=WITHOUT_THE_EXTRA)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert "pip install 'hoodie[ui]'" in err
    assert err.count("\n") == 1
    process = _start(table, "--export", tmp_path / "x.html", code=WITHOUT_THE_EXTRA)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert (tmp_path / "x.html").exists()


def test_the_server_loads_no_spark() -> None:
    code = "import sys, hoodie.web.server, hoodie.cli.ui; print([m for m in ('pyspark', 'pandas') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "[]"
