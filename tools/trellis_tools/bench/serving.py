"""Streams through the platform against the same engine asked directly: same vLLM process, prompts and limits.

The engine is the one that an endpoint runs (vLLM's own server). Rounds alternate between the two addresses: a
machine that gets busier slows both.
"""

import asyncio
import json
import os
import secrets
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx
from trellis_cli.errors import Problem
from trellis_cli.services.platform import python_command
from trellis_cli.services.ports import pick_free
from trellis_contracts.attempt import ENGINE_KEY_FILE

from trellis_tools.bench.light_platform import LightPlatform
from trellis_tools.bench.result import Result

STREAMS = 64
ROUNDS = 9
TOKENS = 64
#: First token at most, and tokens a second at least, as a share of what the bare engine does.
FIRST_TOKEN_BOUND, SPEED_BOUND = 1.1, 0.9
_WINDOW = 512
_START_S = 900.0
_ANSWER_S = 600.0
_HOST = "127.0.0.1"
_KEY_VARIABLE = "TRELLIS_SERVED_MODEL_KEY"


@dataclass(frozen=True)
class Address:
    """Where streams are asked for, and as whom."""

    url: str
    key: str
    model: str


@dataclass(frozen=True)
class Stream:
    """How one answer came."""

    #: Seconds from the request to the first token; None for a stream that was lost.
    first_token_s: float | None
    tokens: int


@dataclass(frozen=True)
class Round:
    """All streams of one round."""

    streams: Sequence[Stream]
    took_s: float

    @property
    def lost(self) -> int:
        """Streams that broke off, were refused or were cut short."""
        return sum(stream.first_token_s is None for stream in self.streams)

    @property
    def first_token_p95_s(self) -> float:
        """Of the streams that came whole."""
        times = [stream.first_token_s for stream in self.streams if stream.first_token_s is not None]
        if len(times) < 2:
            raise Problem("fewer than two streams were completed", hint="See the engine's log.")
        return quantiles(times, n=20, method="inclusive")[-1]

    @property
    def tokens_per_s(self) -> float:
        """Of all streams together."""
        return sum(stream.tokens for stream in self.streams) / self.took_s


def measure_serving(platform: LightPlatform, model: Path | None = None) -> Iterator[Result]:
    """Start an engine, let an endpoint of the platform answer with it, and ask both.

    ``model`` is a model folder, the starter model for None. The starter model needs a quarter of a
    millisecond for a token: what the platform adds is a larger share of that than of any real model's time.
    """
    with _engine(platform, model) as bare:
        ours = _make_endpoint(platform, bare)
        for address in (bare, ours):  # warms both up
            asyncio.run(run_round(address, 0))
        pairs = [
            (asyncio.run(run_round(bare, number)), asyncio.run(run_round(ours, ROUNDS + number)))
            for number in range(1, ROUNDS + 1)
        ]
    yield from compare(pairs, prefix="serving" if model is None else "serving_real_model")


def compare(pairs: Sequence[tuple[Round, Round]], *, prefix: str = "serving") -> Iterator[Result]:
    """Compare pairs (bare engine, platform): streams answered, time to first token, tokens per second."""
    bare, ours = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    asked = sum(len(each.streams) for each in ours)
    yield Result(
        f"{prefix}_answered",
        asked - sum(each.lost for each in ours),
        asked,
        "streams",
        is_more_better=True,
        details={"lost_by_bare_engine": sum(each.lost for each in bare), "at_once": len(ours[0].streams)},
    )
    yield Result(
        f"{prefix}_first_token_p95",
        median(each.first_token_p95_s for each in ours),
        median(each.first_token_p95_s for each in bare),
        "s",
        bound=FIRST_TOKEN_BOUND,
        details={
            "rounds_ours_s": [round(each.first_token_p95_s, 3) for each in ours],
            "rounds_bare_s": [round(each.first_token_p95_s, 3) for each in bare],
        },
    )
    yield Result(
        f"{prefix}_speed",
        median(each.tokens_per_s for each in ours),
        median(each.tokens_per_s for each in bare),
        "tokens/s",
        bound=SPEED_BOUND,
        is_more_better=True,
        details={"load_average": round(os.getloadavg()[0], 1), "cores": os.cpu_count()},
    )


async def run_round(address: Address, number: int, *, streams: int = STREAMS, tokens: int = TOKENS) -> Round:
    """Ask for all streams at once; prompts differ from round to round, so no cache answers for the engine."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=_ANSWER_S, limits=limits, trust_env=False) as client:
        started = time.perf_counter()
        done = await asyncio.gather(
            *(_stream(client, address, f"{number}.{at}: {at}+{number}=", tokens) for at in range(streams))
        )
        return Round(done, time.perf_counter() - started)


async def _stream(client: httpx.AsyncClient, address: Address, prompt: str, tokens: int) -> Stream:
    body = {
        "model": address.model,
        "prompt": prompt,
        "max_tokens": tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    headers = {"Authorization": f"Bearer {address.key}"}
    started, first, counted, is_whole = time.perf_counter(), None, 0, False
    try:
        async with client.stream(
            "POST", f"{address.url}/v1/completions", json=body, headers=headers
        ) as answer:
            async for line in answer.aiter_lines():
                if not line.startswith("data:") or answer.status_code != httpx.codes.OK:
                    continue
                if line.removeprefix("data:").strip() == "[DONE]":
                    is_whole = True
                    continue
                event = json.loads(line.removeprefix("data:"))
                if event.get("choices") and first is None:
                    first = time.perf_counter() - started
                counted = (event.get("usage") or {}).get("completion_tokens", counted)
    except httpx.HTTPError:
        is_whole = False
    return Stream(first if is_whole and counted == tokens else None, counted)


@contextmanager
def _engine(platform: LightPlatform, model: Path | None) -> Iterator[Address]:
    """Serve a model with an endpoint's server; the starter model for None."""
    (port,) = pick_free(1)
    key, root = secrets.token_hex(16), platform.settings.data_root
    command = python_command(
        *("-m", "trellis_train.serve", str(model or root / "starter" / "model"), "--name=starter"),
        *(f"--host={_HOST}", f"--port={port}", "--platform=cpu", f"--max-model-len={_WINDOW}"),
    )
    address = Address(f"http://{_HOST}:{port}", key, "starter")
    log = root / "engine.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(  # noqa: S603 - our own module
            command,
            env={**platform.environment, _KEY_VARIABLE: key},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
        ) as engine,
    ):
        try:
            _wait_for(address, engine, log)
            yield address
        finally:
            engine.terminate()


def _wait_for(address: Address, engine: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and engine.poll() is None:
        try:
            if httpx.get(f"{address.url}/health", timeout=5.0, trust_env=False).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    raise Problem("the engine did not start: " + log.read_text(errors="replace")[-2000:])


def _make_endpoint(platform: LightPlatform, bare: Address) -> Address:
    """Create an endpoint and report it ready, as a worker and a run would; the engine already runs."""
    endpoint = platform.client.post(f"/models/{platform.model}/endpoint", {"idle_timeout_s": 3600})
    token = platform.claim(endpoint["run_id"])
    folder = platform.settings.attempt_dir(endpoint["run_id"], endpoint["attempt"])
    folder.mkdir(parents=True)
    (folder / ENGINE_KEY_FILE).write_text(bare.key)
    url = httpx.URL(bare.url)
    event: dict[str, Any] = {
        "kind": "serving",
        "time": datetime.now(UTC).isoformat(),
        "host": url.host,
        "port": url.port,
        "max_model_len": _WINDOW,
    }
    told = httpx.post(
        f"{platform.client.url}/api/v1/ingest/jobs/{endpoint['run_id']}/batches",
        json={"attempt": endpoint["attempt"], "sequence": 1, "events": [event]},
        headers={"Authorization": f"Bearer {token}"},
        trust_env=False,
    )
    told.raise_for_status()
    token = platform.settings.admin_token_path.read_text().strip()
    return Address(platform.client.url, token, str(endpoint["name"]))
