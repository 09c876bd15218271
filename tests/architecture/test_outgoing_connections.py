"""Which modules open connections, to whose addresses: a new one has to say so here, and in SECURITY.md."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("contracts", "recipes", "factory", "evaluation", "backend", "workers", "verl")
#: What opens connections as soon as it is called.
CALLS = {
    "httpx": {
        *("Client", "AsyncClient", "HTTPTransport", "AsyncHTTPTransport"),
        *("get", "post", "put", "patch", "delete", "head", "options", "request", "stream"),
    },
    "aiohttp": {"ClientSession", "request"},
    "openai": {"OpenAI", "AsyncOpenAI"},
    "socket": {"create_connection"},
}
#: Modules that do nothing else.
MODULES = {
    *("urllib.request", "urllib3", "requests", "http.client", "websockets", "websocket", "smtplib", "ftplib"),
    *("boto3", "botocore", "aiobotocore", "s3fs", "fsspec", "paramiko", "grpc"),
}
HUB = {"HfApi", "snapshot_download", "hf_hub_download", "HfFileSystem"}
#: Loads from the hub through its client.
DATASETS = {"load_dataset"}

#: Addresses that a pipeline or an answer names: looked at before they are opened.
GUARDED = {"factory/trellis_data/addresses.py", "factory/trellis_data/guarded_clients.py"}
#: Judges and generators of TRELLIS_JUDGES, hosts of TRELLIS_WORKFLOW_HOSTS; without redirects.
OWNERS = {
    "factory/trellis_data/chat_client.py",
    "verl/trellis_train/rewards/judge.py",
    "verl/trellis_train/agents/tune/services.py",
}
#: HF_ENDPOINT, MODELSCOPE_ENDPOINT and S3's own variables; requests name a repository or a bucket.
HUBS = {
    "factory/trellis_data/reading/sources.py",
    "recipes/trellis_recipes/hub_models.py",
    "recipes/trellis_recipes/modelscope.py",
    "verl/trellis_train/agents/linksearch/checkpoints.py",
    "verl/trellis_train/agents/linksearch/sources.py",
    "verl/trellis_train/agents/tune/places.py",
    "workers/trellis_workers/models/hub.py",
    "workers/trellis_workers/transfers/push.py",
}
#: Users of the hub's client that look at no addresses: a person's own machine opens what it likes, and what
#: is on the disk opens nothing.
UNGUARDED_HUBS = {
    "recipes/trellis_recipes/hub_models.py",
    "verl/trellis_train/agents/linksearch/checkpoints.py",
}
#: The platform's own servers: its API, Ray, and engines on their ports.
OWN = {
    "backend/trellis_api/core/ray_cluster.py",
    "backend/trellis_api/endpoints/openai/engines.py",
    "factory/trellis_data/pipeline/on_ray.py",
    "verl/trellis_train/engines/engine_client.py",
    "verl/trellis_train/engines/serve.py",
    "verl/trellis_train/engines/serve_load.py",
    "verl/trellis_train/supervise/platform_client.py",
    "workers/trellis_workers/core/ray_client.py",
    "workers/trellis_workers/data/served_model.py",
}
#: The only ones that follow redirects: to addresses that are looked at where it runs on the platform, which
#: replaces ``open_client``; a person's own machine opens what it likes.
REDIRECTED = GUARDED | {"recipes/trellis_recipes/modelscope.py"}


def list_sources(words: re.Pattern[str]) -> Iterator[tuple[str, ast.Module]]:
    """Modules with one of the words: reading all of them as trees takes ten times as long."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if words.search(text := path.read_text()):
                yield path.relative_to(ROOT).as_posix(), ast.parse(text)


def opens_connections(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            if any(is_network(alias.name) for alias in node.names):
                return True
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            module, names = node.module or "", {alias.name for alias in node.names}
            opened = names & (CALLS.get(module, set()) | (HUB if module == "huggingface_hub" else set()))
            opened |= names & (DATASETS if module == "datasets" else set())
            opened |= {name for name in names if is_network(f"{module}.{name}")}
            # Proxies of the environment are read, and nothing is opened.
            if opened or (is_network(module) and not names <= {"getproxies", "proxy_bypass"}):
                return True
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            called = CALLS.get(node.value.id, set()) | (HUB if node.value.id == "huggingface_hub" else set())
            if node.attr in called:
                return True
    return False


def is_network(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in MODULES)


def follows_redirects(tree: ast.Module) -> bool:
    """Whether a call says so, in a way that is not plainly a no."""
    return any(
        isinstance(node, ast.keyword)
        and node.arg in ("follow_redirects", "allow_redirects")
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
        for node in ast.walk(tree)
    )


def test_every_module_that_opens_connections_is_known() -> None:
    roots = {name.partition(".")[0] for name in (*CALLS, *MODULES, "huggingface_hub", "datasets")}
    words = re.compile(rf"\b(import|from) +({'|'.join(sorted(roots))})\b")

    found = {name for name, tree in list_sources(words) if opens_connections(tree)}

    assert found == GUARDED | OWNERS | HUBS | OWN


def test_every_user_of_the_hubs_client_lets_addresses_be_looked_at() -> None:
    sources = {name: (ROOT / name).read_text() for name in HUBS}
    users = {name for name, text in sources.items() if "from huggingface_hub" in text}

    assert {name for name in users if "guard_hub(" not in sources[name]} == UNGUARDED_HUBS


def test_redirects_are_followed_only_to_addresses_that_are_looked_at() -> None:
    words = re.compile("redirects")

    assert {name for name, tree in list_sources(words) if follows_redirects(tree)} == REDIRECTED


def test_clients_of_judges_say_that_they_follow_no_redirects() -> None:
    """The client of the package openai follows them where nobody says otherwise."""
    for name in OWNERS - {"verl/trellis_train/agents/tune/services.py"}:
        calls = [
            node
            for node in ast.walk(ast.parse((ROOT / name).read_bytes()))
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("OpenAI", "AsyncOpenAI"))
        ]
        assert calls, name
        assert all("follow_redirects=False" in ast.unparse(call) for call in calls), name


def test_a_module_that_opens_a_connection_is_noticed() -> None:
    for source in (
        "import httpx\nhttpx.get('http://x')",
        "from httpx import AsyncClient",
        "def f():\n    import requests",
        "import urllib.request",
        "from urllib import request",
        "from urllib.request import urlopen",
        "from huggingface_hub import snapshot_download",
        "import aiohttp\nasync def f():\n    async with aiohttp.ClientSession(): ...",
        "import socket\nsocket.create_connection(('x', 1))",
        "from aiobotocore.session import AioSession",
    ):
        assert opens_connections(ast.parse(source)), source
    for source in ("import httpx\nhttpx.HTTPError", "from urllib.parse import urlsplit", "from x import get"):
        assert not opens_connections(ast.parse(source)), source
