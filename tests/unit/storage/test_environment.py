"""The environment variables of docs/storage.md: each one reaches the requests, and storage options win."""

from __future__ import annotations

import base64
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import hoodie

PAGE = Path(__file__).parents[3] / "docs" / "storage.md"


@dataclass
class Server:
    """A server that has no objects. `requests`: paths and headers of what was asked."""

    url: str
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    found = Server("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            self.send_response(404)
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, *args: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


@pytest.fixture
def server(running: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server without earlier requests, in an environment without variables of object stores."""
    running.requests.clear()
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    return running


def _base(url: str) -> dict[str, dict[str, str]]:
    """The least variables with which each service asks the server."""
    key = base64.b64encode(b"k" * 32).decode()
    return {
        "s3": {
            "AWS_ENDPOINT_URL": url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "kid",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "eu-q",
        },
        "az": {
            "AZURE_STORAGE_ENDPOINT": url,
            "AZURE_ALLOW_HTTP": "true",
            "AZURE_STORAGE_ACCOUNT_NAME": "account",
            "AZURE_STORAGE_ACCOUNT_KEY": key,
        },
        "gs": {"GOOGLE_BASE_URL": url, "GOOGLE_ALLOW_HTTP": "true", "GOOGLE_SKIP_SIGNATURE": "true"},
    }


Said = Callable[[str, dict[str, str]], bool]


def _signed(text: str) -> Said:
    return lambda path, headers: text in headers["authorization"]


def _header(name: str, text: str) -> Said:
    return lambda path, headers: headers.get(name) == text


def _asked(_: str, headers: dict[str, str]) -> bool:
    return bool(headers)


# Service; variables that the least ones lack (None: take it out); what the first request says then.
CASES: list[tuple[str, dict[str, str | None], Said]] = [
    ("s3", {"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "x"}, _signed("Credential=other/")),
    ("s3", {"AWS_SESSION_TOKEN": "token"}, _header("x-amz-security-token", "token")),
    ("s3", {"AWS_REGION": "eu-r"}, _signed("/eu-r/s3/")),
    ("s3", {"AWS_REGION": None, "AWS_DEFAULT_REGION": "eu-d"}, _signed("/eu-d/s3/")),
    ("s3", {"AWS_ENDPOINT_URL": None, "AWS_ENDPOINT": "URL"}, _asked),
    ("s3", {"AWS_SKIP_SIGNATURE": "true"}, lambda _, headers: "authorization" not in headers),
    ("s3", {"AWS_VIRTUAL_HOSTED_STYLE_REQUEST": "true"}, lambda path, _: path.startswith("/folder/")),
    ("s3", {"AWS_REQUEST_PAYER": "true"}, _header("x-amz-request-payer", "requester")),
    ("s3", {"AWS_ENDPOINT_URL": "http://far.test", "AWS_PROXY_URL": "URL"}, _header("host", "far.test")),
    ("s3", {"AWS_USER_AGENT": "me"}, _header("user-agent", "me")),
    ("az", {}, _signed("SharedKey account:")),
    ("az", {"AZURE_STORAGE_ACCOUNT_KEY": None, "AZURE_STORAGE_SAS_TOKEN": "sig=x"}, lambda path, _: "sig=x" in path),
    ("az", {"AZURE_STORAGE_ACCOUNT_KEY": None, "AZURE_STORAGE_TOKEN": "token"}, _signed("Bearer token")),
    ("az", {"AZURE_STORAGE_ENDPOINT": "http://far.test", "AZURE_PROXY_URL": "URL"}, _header("host", "far.test")),
    ("az", {"AZURE_USER_AGENT": "me"}, _header("user-agent", "me")),
    ("gs", {}, lambda _, headers: "authorization" not in headers),
    ("gs", {"GOOGLE_BASE_URL": "http://far.test", "GOOGLE_PROXY_URL": "URL"}, _header("host", "far.test")),
    ("gs", {"GOOGLE_USER_AGENT": "me"}, _header("user-agent", "me")),
    *(
        ("gs", {"GOOGLE_BASE_URL": None, "GOOGLE_SKIP_SIGNATURE": None, name: value}, _asked)
        for name, value in (
            ("GOOGLE_SERVICE_ACCOUNT", "FILE"),
            ("GOOGLE_SERVICE_ACCOUNT_PATH", "FILE"),
            ("GOOGLE_SERVICE_ACCOUNT_KEY", "KEY"),
        )
    ),
]


def _opened(uri: str, **options: str) -> None:
    with pytest.raises(hoodie.StorageError):
        hoodie.open(uri, storage_options=options, spark=False)


@pytest.mark.parametrize(("service", "variables", "said"), CASES, ids=[f"{c[0]}-{'-'.join(c[1])}" for c in CASES])
def test_a_variable_reaches_the_requests(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    service: str,
    variables: dict[str, str | None],
    said: Said,
) -> None:
    key = json.dumps(
        {"gcs_base_url": server.url, "disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""}
    )
    file = tmp_path / "key.json"
    file.write_text(key)
    meant = {"URL": server.url, "FILE": str(file), "KEY": key}
    for name, value in {**_base(server.url)[service], **variables}.items():
        if value is not None:
            monkeypatch.setenv(name, meant.get(value, value))
    _opened(f"{service}://bucket/folder")
    assert any(said(*request) for request in server.requests[:2]), "the two that are sent together"


def test_http_must_be_allowed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for service, variables in _base(server.url).items():
        for name, value in variables.items():
            if not name.endswith("ALLOW_HTTP"):
                monkeypatch.setenv(name, value)
        with pytest.raises(hoodie.StorageError, match="allow_http=true"):
            hoodie.open(f"{service}://bucket/folder", spark=False)
    assert not server.requests


def test_an_option_wins_and_keeps_the_other_variables(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**_base(server.url)["s3"], "AWS_USER_AGENT": "environment"}.items():
        monkeypatch.setenv(name, value)
    _opened("s3://bucket/folder", user_agent="option", timeout="9s", aws_region="eu-o")
    _, headers = server.requests[0]
    assert headers["user-agent"] == "option"
    assert "/eu-o/s3/" in headers["authorization"]


def test_the_page_names_the_variables_that_are_tried() -> None:
    section = PAGE.read_text().partition("\n## Environment\n")[2].partition("\n## ")[0]
    told = {name for line in section.splitlines() if line.startswith("| `") for name in _names(line.split("|")[1])}
    base = {name for variables in _base("").values() for name in variables}
    assert told == base | {name for _, variables, _ in CASES for name in variables}


def _names(cell: str) -> list[str]:
    return re.findall(r"`([A-Z_]+)`", cell)
