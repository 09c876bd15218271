"""The clients of the hub and of S3 open nothing of this machine or of its cloud that an answer leads to."""

import socket
import threading
from asyncio.selector_events import BaseSelectorEventLoop
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.transfers import PUSH_ORDER_FILE, PushedFile, PushOrder
from trellis_data.reading.sources import HubSource, S3Source, SourceFile, SourceUnavailable
from trellis_testing.stand_in_hub import COMMIT, StandInHub
from trellis_workers.models.hub import FetchFailed, Hub
from trellis_workers.transfers import push

METADATA = "169.254.169.254"
#: An address of the internet, behind which the stand-ins are reached.
PUBLIC = "93.184.216.34"
FILE = SourceFile("rows.jsonl", None)
ROWS = b'{"n": 1}\n'


class Network:
    """Names resolve to these addresses, and the public one is that of this machine's stand-ins."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        #: The answers to each question for a name, one after the other; the last one stays.
        self.names: dict[str, list[str]] = {}
        self.connected: list[str] = []
        connect, connect_async = socket.create_connection, BaseSelectorEventLoop.sock_connect

        def getaddrinfo(host: str, port: int | str | None, *_: Any, **__: Any) -> list[Any]:
            answers = self.names.get(host, [host])
            found = answers.pop(0) if len(answers) > 1 else answers[0]
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found, port))]

        def create_connection(address: tuple[str, int], *arguments: Any, **options: Any) -> socket.socket:
            return connect(self._lead(address), *arguments, **options)

        async def sock_connect(loop: Any, opened: socket.socket, address: tuple[str, int]) -> None:
            await connect_async(loop, opened, self._lead(address))

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        monkeypatch.setattr(socket, "create_connection", create_connection)
        monkeypatch.setattr(BaseSelectorEventLoop, "sock_connect", sock_connect)

    def _lead(self, address: tuple[str, int]) -> tuple[str, int]:
        self.connected.append(address[0])
        return ("127.0.0.1" if address[0] == PUBLIC else address[0], address[1])


class Recorder:
    """A server of this machine that nobody should reach: what it was asked, with the Host header."""

    def __init__(self, answer: tuple[int, dict[str, str], bytes] = (200, {}, ROWS)) -> None:
        self.asked: list[str] = []
        recorder = self
        status, headers, body = answer

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                recorder.asked.append(self.headers["Host"])
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_HEAD = do_PUT = do_GET

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("TRELLIS_ALLOW_LOCAL_ADDRESSES", raising=False)
    return Network(monkeypatch)


@pytest.fixture
def inside() -> Iterator[Recorder]:
    recorder = Recorder()
    yield recorder
    recorder.close()


@pytest.fixture
def hub(network: Network, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    """A hub on the internet."""
    hub = StandInHub({FILE.name: ROWS}, repository="team/rows", kind="datasets")
    network.names["hub.test"] = [PUBLIC]
    hub.url = f"http://hub.test:{hub.server.server_port}"
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.setenv("HF_TOKEN", "t")
    yield hub
    hub.close()


@pytest.mark.parametrize(
    "target", [f"http://{METADATA}/latest", "http://127.0.0.1", "file:///etc", "http://[::1]"]
)
def test_a_redirect_of_the_hub_leads_to_nothing_inside(
    hub: StandInHub, network: Network, inside: Recorder, target: str, tmp_path: Path
) -> None:
    hub.redirects_to = inside.url if target == "http://127.0.0.1" else target

    with pytest.raises(SourceUnavailable) as caught:
        HubSource("team/rows").bring(FILE, tmp_path)

    assert caught.value.code == "hub_unreachable"
    assert inside.asked == []
    assert set(network.connected) == {PUBLIC}
    assert not list(tmp_path.rglob(FILE.name))


def test_a_redirect_to_another_host_of_the_internet_is_followed(
    hub: StandInHub, network: Network, tmp_path: Path
) -> None:
    store = Recorder()
    network.names["store.test"] = [PUBLIC]
    hub.redirects_to = f"http://store.test:{store.server.server_port}"
    try:
        path = HubSource("team/rows").bring(FILE, tmp_path)
    finally:
        store.close()

    assert path.read_bytes() == ROWS
    assert {host.partition(":")[0] for host in store.asked} == {"store.test"}


def test_a_name_that_resolves_to_this_machine_later_is_not_opened(
    hub: StandInHub, network: Network, tmp_path: Path
) -> None:
    # The first answer is for the endpoint's own place, the second for the connection.
    network.names["hub.test"] = [PUBLIC, "127.0.0.1"]

    with pytest.raises(SourceUnavailable, match=r"isn't opened.*TRELLIS_ALLOW_LOCAL_ADDRESSES"):
        HubSource("team/rows").bring(FILE, tmp_path)

    assert hub.downloaded == []
    assert network.connected == []


def test_the_owner_may_allow_local_addresses_and_never_metadata(
    hub: StandInHub, inside: Recorder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRELLIS_ALLOW_LOCAL_ADDRESSES", "true")
    hub.redirects_to = inside.url
    HubSource("team/rows").bring(FILE, tmp_path)
    assert inside.asked

    hub.redirects_to = f"http://{METADATA}"
    with pytest.raises(SourceUnavailable, match="link-local"):
        HubSource("team/rows").bring(FILE, tmp_path / "again")


def test_a_mirror_on_this_machine_is_opened_and_leads_to_no_metadata(
    hub: StandInHub, network: Network, tmp_path: Path
) -> None:
    network.names["hub.test"] = ["127.0.0.1"]

    assert HubSource("team/rows").bring(FILE, tmp_path).is_file()

    hub.redirects_to = f"http://{METADATA}"
    with pytest.raises(SourceUnavailable, match="link-local"):
        HubSource("team/rows").bring(FILE, tmp_path / "again")


def test_models_and_pushes_are_led_to_nothing_inside(
    hub: StandInHub, network: Network, inside: Recorder, tmp_path: Path
) -> None:
    hub.redirects_to = inside.url
    with pytest.raises(FetchFailed, match=r"hub\.test leads to an address that isn't opened"):
        Hub().download_files("team/rows", COMMIT, [FILE.name], tmp_path / "model", kind="dataset")
    hub.close()

    models = StandInHub({})
    models.url = f"http://hub.test:{models.server.server_port}"
    models.stores_at = inside.url
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"weights")
    pushed = PushedFile(name=weights.name, path=str(weights))
    order = PushOrder(
        repo_id="team/tiny", revision="main", private=True, message="m", files=[pushed], card="c"
    )
    (tmp_path / PUSH_ORDER_FILE).write_text(order.model_dump_json(), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_ENDPOINT", models.url)
        with pytest.raises(push.PushRefused, match="isn't opened"):
            push.push(tmp_path)
    models.close()

    assert inside.asked == []
    assert models.committed == []
    assert set(network.connected) == {PUBLIC}


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "of-the-test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def s3_source(endpoint: str) -> S3Source:
    options = {"endpoint_url": endpoint, "config_kwargs": {"retries": {"max_attempts": 0}}}
    return S3Source("s3://data/chat", options=options)


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("place", [f"http://{METADATA}", "inside"])
def test_a_redirect_of_s3_leads_to_nothing_inside(network: Network, inside: Recorder, place: str) -> None:
    target = inside.url if place == "inside" else place
    store = Recorder((307, {"Location": f"{target}/data"}, b""))
    network.names["store.test"] = [PUBLIC]
    try:
        with pytest.raises(SourceUnavailable, match="isn't opened"):
            s3_source(f"http://store.test:{store.server.server_port}").list_files()
    finally:
        store.close()

    assert store.asked
    assert inside.asked == []
    assert set(network.connected) == {PUBLIC}


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([PUBLIC, "127.0.0.1"], "this machine's"),
        (["127.0.0.1", METADATA], "link-local"),
        ([METADATA], "link-local"),
    ],
)
def test_a_name_of_s3_that_leads_inside_is_not_opened(
    network: Network, inside: Recorder, answers: list[str], reason: str
) -> None:
    network.names["store.test"] = answers

    with pytest.raises(SourceUnavailable, match=f"isn't opened.*{reason}") as caught:
        s3_source(f"http://store.test:{inside.server.server_port}").list_files()

    assert caught.value.code == "source_unreachable"
    assert inside.asked == []


@pytest.mark.usefixtures("keys", "network")
def test_an_address_of_metadata_is_no_endpoint_of_s3() -> None:
    with pytest.raises(SourceUnavailable, match="link-local"):
        s3_source(f"http://{METADATA}").list_files()
