"""Addresses that a pipeline names are opened, or refused whatever name, redirect or notation leads there."""

import ipaddress
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest
from trellis_data import addresses
from trellis_data.addresses import explain_refusal, open_client, open_endpoint_client
from trellis_data.dedup import embeddings
from trellis_data.operator import OperatorProblem

METADATA = "169.254.169.254"


class _Redirecting(BaseHTTPRequestHandler):
    hosts: list[str] = []  # noqa: RUF012 - of the stand-in, reset by its fixture

    def do_POST(self) -> None:
        self.hosts.append(self.headers["Host"])
        self.send_response(307)
        self.send_header("Location", f"http://{METADATA}/latest/meta-data/")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    _Redirecting.hosts = []
    server = HTTPServer(("127.0.0.1", 0), _Redirecting)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def resolve_to(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let every name resolve to the next of these answers; the names that were asked for."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        found = [host]
        if not host[0].isdigit():
            asked.append(host)
            found = answers[min(len(asked), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.parametrize(
    ("address", "with_local", "without"),
    [
        ("93.184.216.34", True, True),
        ("2606:2800:220:1::1", True, True),
        ("127.0.0.1", True, False),
        ("::1", True, False),
        ("::ffff:127.0.0.1", True, False),
        ("10.1.2.3", True, False),
        ("192.168.0.1", True, False),
        ("100.64.0.1", True, False),
        ("fd12::1", True, False),
        (METADATA, False, False),
        (f"::ffff:{METADATA}", False, False),
        ("64:ff9b::a9fe:a9fe", False, False),
        ("2002:a9fe:a9fe::1", False, False),
        ("fe80::1", False, False),
        ("fd00:ec2::254", False, False),
        ("0.0.0.0", False, False),
        ("::", False, False),
        ("224.0.0.1", False, False),
    ],
)
def test_which_addresses_are_opened(address: str, with_local: bool, without: bool) -> None:
    parsed = ipaddress.ip_address(address)

    assert (explain_refusal(parsed, allows_local=True) is None) is with_local
    assert (explain_refusal(parsed, allows_local=False) is None) is without


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/v1",
        "http://localhost:9",
        "http://2130706433:9",
        "http://0x7f.1:9",
        "http://[::1]:9",
    ],
)
def test_this_machine_is_refused_however_it_is_written(url: str) -> None:
    with pytest.raises(OperatorProblem, match="TRELLIS_ALLOW_LOCAL_ADDRESSES") as problem:
        embeddings.of_endpoint(["a"], url, "m", None, allows_local=False)

    assert problem.value.code == "address_refused"


def test_a_name_with_one_refused_address_among_others_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, ["93.184.216.34", METADATA])

    with pytest.raises(OperatorProblem, match="link-local"):
        embeddings.of_endpoint(["a"], "http://rebinding.test", "m", None, allows_local=True)


def test_the_connection_goes_to_the_address_that_was_looked_at(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = resolve_to(monkeypatch, ["127.0.0.1"], [METADATA])
    url = f"http://rebinding.test:{server.server_port}/"

    with open_client(allows_local=True, timeout_s=5, headers={}) as client:
        answer = client.post(url, json={})

    assert answer.status_code == 307
    assert _Redirecting.hosts == [f"rebinding.test:{server.server_port}"]
    assert asked == ["rebinding.test"]


def test_a_redirect_is_not_followed(server: HTTPServer) -> None:
    url = f"http://127.0.0.1:{server.server_port}/v1"

    with pytest.raises(OperatorProblem, match="returned no embeddings: 307"):
        embeddings.of_endpoint(["a"], url, "m", None, allows_local=True)

    assert len(_Redirecting.hosts) == 1


@pytest.mark.parametrize("name", ["hub.test", "127.0.0.1"])
def test_a_redirect_of_an_endpoint_leads_to_no_metadata(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    without_proxies(monkeypatch)
    monkeypatch.setenv("NO_PROXY", "localhost,.cluster")  # which is no proxy
    resolve_to(monkeypatch, ["127.0.0.1"])
    url = f"http://{name}:{server.server_port}/"
    client = open_endpoint_client(url, timeout=httpx.Timeout(5), follow_redirects=True)

    with client, pytest.raises(OperatorProblem, match="link-local"):
        client.post(url)

    assert len(_Redirecting.hosts) == 1


def test_an_endpoint_elsewhere_leads_to_nothing_on_this_machine(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_proxies(monkeypatch)
    resolve_to(monkeypatch, ["93.184.216.34"])
    client = open_endpoint_client("http://hub.test/", timeout=httpx.Timeout(5), follow_redirects=True)

    with client, pytest.raises(OperatorProblem, match="this machine's"):
        client.post(f"http://127.0.0.1:{server.server_port}/")

    assert _Redirecting.hosts == []


def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_an_unknown_host_is_an_error_of_the_connection() -> None:
    client = open_client(allows_local=True, timeout_s=5, headers={})

    with client, pytest.raises(httpx.ConnectError, match="not known"):
        client.get("http://no-such-host.invalid/")


@pytest.mark.timeout(20)
def test_a_server_that_accepts_and_says_nothing_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_proxies(monkeypatch)
    monkeypatch.setitem(addresses._LONGEST_S, "read", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        client = open_endpoint_client(url, timeout=None, follow_redirects=True)

        with client, pytest.raises(httpx.ReadTimeout):
            client.get(url, timeout=None)
