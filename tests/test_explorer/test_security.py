"""Who may ask the explorer's server, for what, and with what: everything else is refused."""

import http.client
import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import urllib.request

import pytest

from contrica import ContrastiveICA
from contrica.errors import ParameterError, ParameterWarning
from contrica.explorer import ViewState
from contrica.explorer._security import MAX_BYTES, TokenFilter, is_loopback
from contrica.explorer._server import Server
from tests.test_explorer.small import small_data

pytest.importorskip("dash")


class Client:
    """A browser without a page: it keeps cookies, and sends the headers it is told to."""

    def __init__(self, server):
        self.server, self.cookies = server, {}

    def ask(self, path="/", method="GET", body=None, **headers):
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            pairs = (f"{name}={value}" for name, value in self.cookies.items())
            names.setdefault("Cookie", "; ".join(pairs))
        link = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            link.request(method, path, body, {k: v for k, v in names.items() if v is not None})
            answer = link.getresponse()
            self.headers, self.body = answer.headers, answer.read()
            for given in answer.headers.get_all("Set-Cookie") or ():
                name, _, value = given.partition(";")[0].partition("=")
                self.cookies[name] = value
            return answer.status
        finally:
            link.close()

    def enter(self):
        assert self.ask(f"/?token={self.server.token}") == 303
        assert self.ask(self.headers["Location"]) == 200
        return self

    @property
    def origin(self):
        return self.server.origin

    def post(self, path="/_dash-update-component", content=None, **headers):
        body = json.dumps({} if content is None else content)
        given = {"Origin": self.origin, "Content_Type": "application/json", **headers}
        return self.ask(path, "POST", body, **given)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    names = ["<script>alert(1)</script>", *"bcdef"]
    data = small_data()
    server = Server(
        type(data).of(data.fore, data.backs[0], names=names),
        folder=tmp_path_factory.mktemp("saved"),
    ).start()
    yield server
    server.stop()


@pytest.fixture
def client(server):
    return Client(server).enter()


PATHS = ["/", "/_dash-layout", "/_dash-dependencies", "/assets/desk.js", "/favicon.ico", "/any"]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_answered_without_the_token(server, path):
    stranger = Client(server)
    assert stranger.ask(path) == 403
    assert b"needs its token" in stranger.body
    assert stranger.cookies == {}
    assert stranger.post(path) == 403
    separator = "&" if "?" in path else "?"
    for token in ("", "a", server.token[:-1], server.token + "a", "%ff"):
        assert stranger.ask(f"{path}{separator}token={token}") == 403
    for value in ("", "a", server.token):
        assert stranger.ask(path, Cookie=f"contrica_explorer_{server.port}={value}") == 403


def test_the_token_gives_way_to_a_cookie_that_no_script_and_no_other_page_has(server):
    client = Client(server)
    assert client.ask(f"/?l=3&token={server.token}&name1=a%26b") == 303
    assert client.headers["Location"] == "/?l=3&name1=a%26b"
    assert client.ask("/?l=3") == 200
    assert len(client.cookies) == 2
    client = Client(server)
    client.ask(f"/?token={server.token}")
    for given in client.headers.get_all("Set-Cookie"):
        assert "HttpOnly" in given
        assert "SameSite=Strict" in given
        assert server.token not in given


def test_a_link_of_another_page_goes_on_by_a_page_of_ours(server):
    client = Client(server)
    headers = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert client.ask(f"/?token={server.token}&name1=%22%3E%3Cscript%3E", **headers) == 200
    assert b"http-equiv" in client.body
    assert b"<script" not in client.body
    assert server.token.encode() not in client.body


HOSTS = ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil:{port}"]
HOSTS += ["", "a@127.0.0.1:{port}", "127.0.0.1:{port}/x", "[::1", "localhost:99999999"]


@pytest.mark.parametrize("host", HOSTS)
def test_names_that_were_made_to_point_here_are_refused(client, server, host):
    assert client.ask("/", Host=host.format(port=server.port)) == 400


def test_names_of_this_machine_are_answered(client, server):
    for host in ("127.0.0.1", "localhost", "[::1]"):
        assert client.ask("/", Host=f"{host}:{server.port}") == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": None, "Sec_Fetch_Site": "cross-site"},
        {"Origin": None, "Sec_Fetch_Site": "same-site"},
        {"Origin": None, "Sec_Fetch_Site": "none"},
    ],
    ids=str,
)
def test_requests_of_other_pages_change_nothing(client, headers):
    assert client.post(**headers) == 403


def test_other_pages_embed_nothing(client):
    for site in ("cross-site", "same-site"):
        assert client.ask("/assets/desk.js", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors") == 403
        assert client.ask("/_dash-layout", Sec_Fetch_Site=site, Sec_Fetch_Mode="cors") == 403
    assert client.ask("/assets/desk.js", Sec_Fetch_Site="same-origin") == 200


def test_what_is_too_large_is_refused(client):
    assert client.post(Content_Length=str(MAX_BYTES + 1)) == 413
    assert client.ask("/?note1=" + "a" * 70_001) in (414, 400)
    assert client.ask("/") == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client, method):
    assert client.ask("/", method, Origin=client.origin) in (403, 405)


def test_nothing_is_uploaded(client):
    for kind in (
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "text/plain",
    ):
        assert client.post(Content_Type=kind) == 405


FILES = ["../pyproject.toml", "..%2f..%2fpyproject.toml", "%2e%2e/%2e%2e/_page.py", "/etc/passwd"]
FILES += ["..\\..\\x", "....//_page.py", "_page.py", "../_page.py", "..%5c_page.py", "%00"]
FOLDERS = ["/", "/assets/", "/_dash-component-suites/", "/_dash-component-suites/dash/", "/static/"]


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("name", FILES)
def test_no_request_reads_a_file(client, folder, name):
    assert client.ask(folder + name) in (404, 500, 400)
    assert b"def " not in client.body
    assert b"root:" not in client.body
    assert b"Traceback" not in client.body


def test_answers_say_that_nothing_is_loaded_from_elsewhere(client, server):
    assert client.ask("/") == 200
    headers = client.headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'self'"
    assert "unsafe" not in policy["script-src"]
    assert "http" not in headers["Content-Security-Policy"]
    assert policy["frame-ancestors"] == "'none'"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    addresses = re.findall(rb"(?:src|href)=\"([^\"]*)\"", client.body)
    assert addresses
    assert all(each.startswith(b"/") and not each.startswith(b"//") for each in addresses)
    assert server.token.encode() not in client.body


def test_names_from_data_are_never_in_the_page_as_markup(client):
    for path in ("/", "/_dash-layout", "/?name1=%3Cscript%3Ealert(1)%3C/script%3E"):
        assert client.ask(path) == 200
        assert b"<script>alert" not in client.body


def test_a_session_does_not_see_another(tmp_path):
    server = Server(small_data(), folder=tmp_path).start()
    try:
        assert_sessions_apart(server)
    finally:
        server.stop()


def assert_sessions_apart(server):
    one, other = Client(server).enter(), Client(server).enter()
    cookie = server.sessions.cookie
    assert one.cookies[cookie] != other.cookies[cookie]
    first, second = (server.sessions._of(each.cookies[cookie]) for each in (one, other))
    first.history = first.history.then(ViewState().edit(0, name="secret"))
    first.save(first.history.now)
    assert second.history.now == ViewState()
    assert first._saved.path != second._saved.path
    assert not second._saved.path.exists()
    # whoever guesses a cookie gets a session of their own
    stranger = Client(server).enter()
    stranger.cookies[cookie] = one.cookies[cookie][:-1] + "x"
    assert stranger.ask("/") == 200
    assert stranger.cookies[cookie] not in (one.cookies[cookie], other.cookies[cookie])


def test_the_token_is_in_no_line_of_the_log():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    log = logging.Logger("requests")
    log.addHandler(handler)
    log.addFilter(TokenFilter("s3cret"))
    log.info('"GET /?l=3&token=s3cret&x=1 HTTP/1.1" %s', 303)
    log.info("cookie %s", "s3cret")
    assert "s3cret" not in stream.getvalue()
    assert "/?l=3&token=…&x=1" in stream.getvalue()


def test_other_hosts_than_this_machine_are_warned_of_and_need_the_token(tmp_path):
    with pytest.warns(ParameterWarning, match="other machines"):
        server = Server(small_data(), "0.0.0.0", folder=tmp_path).start()
    try:
        assert Client(server).ask("/") == 403
        Client(server).enter()
        assert Client(server).ask("/", Host=f"rebound.example:{server.port}") == 400
    finally:
        server.stop()
    assert [is_loopback(each) for each in ("127.0.0.1", "localhost", "127.9.9.9", "::1")] == [
        True
    ] * 4
    assert not any(is_loopback(each) for each in ("0.0.0.0", "10.0.0.1", "127.0.0.1.evil"))


def test_a_port_in_use_is_told_of_and_the_next_one_is_taken(server, tmp_path):
    with pytest.raises(ParameterError) as raised:
        Server(small_data(), port=server.port)
    assert raised.value.code == "port-in-use"
    with pytest.raises(ParameterError) as raised:
        Server(small_data(), "256.0.0.1")
    assert raised.value.code == "no-address"
    other = Server(small_data(), folder=tmp_path)
    assert other.port != server.port
    other.start().stop()


def test_a_model_opens_its_page_and_a_notebook_shows_it(tmp_path, capsys):
    data = small_data()
    model = ContrastiveICA(solver="subspace", n_foreground=2, scale="pooled", random_state=4)
    page = model.explore(data.fore, background=data.backs[0], folder=tmp_path)
    try:
        assert page.address in capsys.readouterr().out
        state = page.sessions._of("").history.now
        assert state == ViewState("subspace", "pooled", n_foreground=2, random_state=4)
        html = page._repr_html_()
        assert '<iframe src="http://localhost:' in html
        client = Client(page).enter()
        policy = client.headers["Content-Security-Policy"]
        assert "frame-ancestors http://localhost:* http://127.0.0.1:*" in policy
    finally:
        page.stop()


def test_ctrl_c_ends_the_command_and_keeps_what_was_said(tmp_path):
    command = [sys.executable, "-c", "from contrica.cli import main; main()", "explore"]
    process = subprocess.Popen(
        [*command, "--no-browser", "--state", "keep=2&name1=zero"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        address = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", address)
        link = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert b"contrica explorer" in link.open(address, timeout=60).read()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode in (0, 130)
    assert "Traceback" not in out + err
    kept = json.loads((tmp_path / "contrica-explorer.json").read_text())
    assert ViewState.decode(kept["state"]).edit_of(0).name == "zero"
    assert "token" not in kept["state"]
    assert address.partition("token=")[2] not in json.dumps(kept)
    assert [path.name for path in tmp_path.iterdir()] == ["contrica-explorer.json"]
