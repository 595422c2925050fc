"""Who gets an answer of `hoodie ui`: each rule of its gate, and what no answer contains."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import hoodie
from hoodie.errors import InvalidConfigError, TableNotFoundError
from hoodie.web.places import Tables
from hoodie.web.security import Gate
from hoodie.web.server import Server, Site
from tests.support.web_server import Client, serving

MARKUP = '<img src=x onerror="alert(1)">'
SECRET = "hunter2-not-to-be-seen"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    lake = tmp_path_factory.mktemp("lake")
    hoodie.create(lake / "trips", {"id": ["a"]}, record_key="id").upsert({"id": ["a"]})
    hoodie.create(lake / MARKUP, {"id": ["a"]}, record_key="id", name="markup").upsert({"id": [MARKUP]})
    with serving(lake) as client:
        yield client


def test_it_listens_on_the_local_address_only(client: Client) -> None:
    assert client.server.gate.host == "127.0.0.1"
    others = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), None)} - {"127.0.0.1", "::1"}
    for address in others:
        with socket.socket(socket.AF_INET6 if ":" in str(address) else socket.AF_INET) as other:
            assert other.connect_ex((address, client.server.gate.port)) != 0


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/places", "/api/tables/x/summary", "/no/such"])
def test_nothing_is_served_without_the_cookie(client: Client, path: str) -> None:
    for cookie in ("", "other=1", f"{client.server.gate.cookie}=wrong", f"hoodie_ui_1={client.server.gate.session}"):
        reply = client.send(path, Cookie=cookie)
        assert (reply.status, "trips" in reply.text) == (401, False)


def test_the_token_becomes_a_cookie_and_leaves_the_address(client: Client) -> None:
    reply = client.send(f"/?token={client.server.gate.token}", Cookie="")
    assert (reply.status, reply.headers["location"]) == (303, "/")
    name_and_value, *attributes = reply.headers["set-cookie"].split("; ")
    assert set(attributes) == {"HttpOnly", "Path=/", "SameSite=strict"}
    assert client.server.gate.token not in name_and_value
    assert client.send("/", Cookie=name_and_value).status == 200


@pytest.mark.parametrize("token", ["", "wrong", "é", "%00", "{0}x", "{0}&token={0}", "{0}&token=x"])
def test_a_wrong_token_gives_no_cookie(client: Client, token: str) -> None:
    reply = client.send(f"/?token={quote(token.format(client.server.gate.token), safe='&=%')}", Cookie="")
    assert (reply.status, reply.headers.get("set-cookie")) == (401, None)


def test_a_token_is_of_use_for_the_first_page_only(client: Client) -> None:
    assert client.send(f"/api/places?token={client.server.gate.token}", Cookie="").status == 401


def test_an_address_for_once_is_void_after_its_use(client: Client) -> None:
    gate = client.server.gate
    one, other = ("/?" + gate.address_for_once().partition("?")[2] for _ in range(2))
    assert len({one, other, f"/?token={gate.token}"}) == 3
    statuses = [client.send(path, Cookie="").status for path in (one, one, other, other, f"/?token={gate.token}")]
    assert statuses == [303, 401, 303, 401, 303]


def test_each_server_has_other_secrets() -> None:
    one, other = Gate("127.0.0.1", 80), Gate("127.0.0.1", 80)
    assert len({one.token, one.session, other.token, other.session}) == 4
    assert one.token not in repr(one)
    assert one.session not in repr(one)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.:{port}", ""]
)
def test_another_host_is_refused(client: Client, host: str) -> None:
    assert client.send("/api/places", Host=host.format(port=client.server.gate.port)).status in (400, 403)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_the_local_names_are_accepted(client: Client, host: str) -> None:
    own = f"{host}:{client.server.gate.port}"
    assert client.send("/api/places", Host=own, Origin=f"http://{own.lower()}").status == 200


def test_the_given_host_is_accepted_too() -> None:
    gate = Gate("10.1.2.3", 8080)
    assert gate.hosts == {"127.0.0.1:8080", "localhost:8080", "[::1]:8080", "10.1.2.3:8080"}
    assert Gate("fe80::1", 80).hosts >= {"[fe80::1]:80", "[fe80::1]", "localhost"}
    assert Gate("fe80::1", 80).address.startswith("http://[fe80::1]:80/?token=")


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "https://127.0.0.1:{port}", "http://127.0.0.1", "http://localhost:1"]
)
def test_another_origin_is_refused(client: Client, origin: str) -> None:
    reply = client.send("/api/places", Origin=origin.format(port=client.server.gate.port))
    assert (reply.status, "tables" in reply.text) == (403, False)


@pytest.mark.parametrize(
    ("site", "status"), [("same-origin", 200), ("none", 200), ("cross-site", 403), ("same-site", 403)]
)
def test_requests_of_other_sites_are_refused(client: Client, site: str, status: int) -> None:
    assert client.send("/api/places", Sec_Fetch_Site=site).status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_reads_are_answered(client: Client, method: str) -> None:
    for path in ("/", "/api/places", f"/api/tables/{client.id_of('trips')}/verify?start=1"):
        assert client.send(path, method).status == 405
    assert client.get(f"tables/{client.id_of('trips')}/verify")["state"] == "none"


def test_head_has_the_headers_alone(client: Client) -> None:
    reply = client.send("/api/places", "HEAD")
    assert (reply.status, reply.text) == (200, "")
    assert client.send(f"/api/tables/{client.id_of('trips')}/live", "HEAD").status == 200


def test_every_answer_has_the_headers(client: Client) -> None:
    for path, cookie in (("/", client.cookie), ("/", ""), ("/no", client.cookie), ("/api/places", client.cookie)):
        headers = client.send(path, Cookie=cookie).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert not [name for name in headers if name.startswith("access-control-")]
        assert "server" not in headers


@pytest.mark.parametrize(
    "name",
    ["..", "../server.py", "..%2fserver.py", "%2e%2e%2fserver.py", "%2e%2e/server.py", "/etc/passwd", "%00", "."],
)
def test_static_files_have_exact_names(client: Client, name: str) -> None:
    reply = client.send(f"/static/{name}")
    assert (reply.status, "import" in reply.text) == (404, False)


@pytest.mark.parametrize("text", ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "/etc/passwd", "trips", "file:///etc"])
def test_no_text_of_a_request_becomes_a_path(client: Client, text: str) -> None:
    trips = client.id_of("trips")
    encoded = quote(text, safe="")
    assert client.send(f"/api/tables/{encoded}/summary").status == 404
    assert client.send(f"/api/tables/{text}/summary").status == 404
    assert client.send(f"/api/tables/{trips}/{encoded}").status == 404
    for request in (f"instant?time={encoded}", f"group?file_id={encoded}", f"slices?partition={encoded}"):
        reply = client.send(f"/api/tables/{trips}/{request}")
        assert "root:" not in reply.text
        assert reply.status in (200, 400, 404), reply
        assert reply.status != 200 or reply.values["rows"] == []


def test_names_are_texts_and_no_markup(client: Client) -> None:
    reply = client.send("/api/places")
    assert reply.headers["content-type"] == "application/json"
    assert MARKUP in {table["name"] for table in reply.values["tables"]}
    rows = client.send(f"/api/tables/{client.id_of(MARKUP)}/rows")
    assert (rows.headers["content-type"], rows.values["rows"]) == ("application/json", [{"id": MARKUP}])


def test_a_secret_of_the_properties_is_in_no_answer(tmp_path: Path) -> None:
    properties = {
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        "hoodie.metaserver.password": SECRET,
        "hoodie.meta.sync.client.tool.token": SECRET,
        "fs.s3a.secret.key": SECRET,
    }
    hoodie.create(tmp_path / "t", {"id": ["a"]}, record_key="id").upsert({"id": ["a"]})
    file = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    file.write_text(file.read_text() + "".join(f"{key}={value}\n" for key, value in properties.items()))
    with serving(tmp_path) as client:
        for report in ("summary", "locks", "timeline", "waits", "writers", "verify"):
            reply = client.send(f"/api/tables/{client.id_of('t')}/{report}")
            assert reply.status == 200, reply
            assert SECRET not in reply.text
        summary = client.report("t", "summary")
        assert summary["properties"].keys() >= {"hoodie.metaserver.password"}


def test_storage_options_are_in_no_answer(tmp_path: Path) -> None:
    hoodie.create(tmp_path / "t", {"id": ["a"]}, record_key="id").upsert({"id": ["a"]})
    options = {
        "aws_access_key_id": SECRET,
        "aws_secret_access_key": SECRET,
        "aws_endpoint": "http://127.0.0.1:9",
        "allow_http": "true",
        "timeout": "1s",
    }
    bucket = "s3://no-such-bucket/tables"
    with serving(tmp_path, options=options) as client:
        assert client.id_of("t")
        site = Site.of(Tables([str(tmp_path)], options), shows_data=True)
        for shown in (client.send("/api/places").text, repr(site), repr(site.tables)):
            assert SECRET not in shown
    with pytest.raises(InvalidConfigError) as refused:
        Tables([bucket], {**options, "no_such_option": SECRET})
    assert SECRET not in str(refused.value)


def test_a_place_with_a_password_is_refused_without_it() -> None:
    with pytest.raises(InvalidConfigError, match="without credentials") as refused:
        Tables([f"s3://user:{SECRET}@bucket/tables"], {})
    assert SECRET not in str(refused.value)


def test_a_symbolic_link_out_of_a_place_is_not_followed(tmp_path: Path) -> None:
    lake, elsewhere = tmp_path / "lake", tmp_path / "elsewhere"
    for path in (lake / "own", lake / "moved", elsewhere / "other"):
        hoodie.create(path, {"id": ["a"]}, record_key="id").upsert({"id": ["a"]})
    (lake / "out").symlink_to(elsewhere)
    (lake / "straight").symlink_to(elsewhere / "other")
    (lake / "within").symlink_to(lake / "own")
    (lake / "nowhere").symlink_to(tmp_path / "gone")
    (lake / "own" / "up").symlink_to(lake)
    with serving(lake) as client:
        places = client.get("places")
        assert [table["name"] for table in places["tables"]] == ["moved", "own"]
        for name in ("out", "straight", "nowhere"):
            assert [note for note in places["notes"] if f"{lake}/{name} leads to" in note], places["notes"]
        # A link takes the place of a table after it was found.
        moved = client.id_of("moved")
        (lake / "moved").rename(tmp_path / "was")
        (lake / "moved").symlink_to(elsewhere / "other")
        reply = client.send(f"/api/tables/{moved}/rows")
        assert reply.status >= 400
        assert reply.values["type"] == "PartitionPathError"


def test_a_link_as_a_place_is_followed(tmp_path: Path) -> None:
    hoodie.create(tmp_path / "real" / "t", {"id": ["a"]}, record_key="id").upsert({"id": ["a"]})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = Tables([str(tmp_path / "link"), str(tmp_path / "real" / "t"), str(tmp_path)], {}).search()
    assert len(found.tables) == 1


def test_without_data_no_row_is_shown(tmp_path: Path) -> None:
    hoodie.create(tmp_path / "t", {"id": ["a"]}, record_key="id").upsert({"id": [SECRET]})
    with serving(tmp_path, shows_data=False) as client:
        assert client.get("places")["data"] is False
        table = client.id_of("t")
        for report in ("rows", "changed?instant=1", "record?key=a"):
            reply = client.send(f"/api/tables/{table}/{report}")
            assert (reply.status, SECRET in reply.text) == (403, False)
        for request in ("full=1", "start=1&full=1"):
            assert client.send(f"/api/tables/{table}/verify?{request}").status == 403
        assert client.get(f"tables/{table}/verify?start=1&full=0")["full"] is False


def test_a_port_in_use_is_refused_in_one_line(client: Client, tmp_path: Path) -> None:
    site = Site.of(Tables([str(tmp_path)], {}), shows_data=True)
    with pytest.raises(InvalidConfigError, match=r"cannot be opened: Address already in use; pass another --port"):
        Server(site, host="127.0.0.1", port=client.server.gate.port)
    for host in ("no such host", "x" * 50_000, "a\x00b", "\udcff"):
        with pytest.raises(InvalidConfigError, match="cannot be opened"):
            Server(site, host=host, port=0)


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps({}))
    for place in (tmp_path / "missing", tmp_path / "file"):
        with pytest.raises(TableNotFoundError, match="expected a table, or a folder with tables below"):
            Tables([str(place)], {})
