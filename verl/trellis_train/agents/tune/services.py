"""What a session may use beside the policy: tools of environments, other models, granted hosts.

The sandbox has no network: a workflow says what it wants, and this side does it within bounds.
"""

import asyncio
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from trellis_contracts.agents import AgentTask, ToolSchema
from trellis_contracts.attempt import ADDRESS_FILE, AUXILIARY_KEYS_FILE, read_address
from trellis_contracts.endpoints import OPENAI_PREFIX, ChatEndpoint
from trellis_contracts.workflows import SAMPLING_OPTIONS, ModelError

from trellis_train.agents import environments
from trellis_train.agents.tune.mapping import MappedJob

log = logging.getLogger(__name__)
#: Hosts that workflows may ask, as JSON; the same setting as the platform's.
HOSTS_VARIABLE = "TRELLIS_WORKFLOW_HOSTS"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_PORTS = {"http": 80, "https": 443}
#: Of what a host answers, and of what it is sent.
_MAX_BYTES = 4 * 1024**2
_MAX_TIMEOUT_S = 120.0
#: Of a request that a workflow makes: another Host would be another host behind the same address.
_OWN_HEADERS = frozenset({"host", "accept-encoding", "content-length", "transfer-encoding", "connection"})
#: An endpoint that is being loaded says when to come back.
_STARTING, _RETRY_S = 503, 5.0
#: Of the platform's own models: how long its API may be away, which is restarted or moves.
_AWAY_S, _AWAY_RETRY_S = 120.0, 1.0
#: The connection was refused or broke: nobody is there any more.
_AWAY = (httpx.NetworkError, httpx.RemoteProtocolError)
_PASSED_ON = (
    "max_tokens", "max_completion_tokens", "stop", "tool_choice", "parallel_tool_calls", "response_format",
    *SAMPLING_OPTIONS,
)  # fmt: skip


class ServicesUnusable(RuntimeError):
    """What a job names for its workflow is not there."""


@dataclass(frozen=True)
class Services:
    """What the sessions of a job may use."""

    #: Folders of environments by name.
    environments: Mapping[str, Path] = field(default_factory=dict)
    auxiliary: Mapping[str, ChatEndpoint] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    #: ``name`` or ``name:port``.
    hosts: frozenset[str] = frozenset()
    #: Models that the platform serves itself, and the file that says where its API is now.
    platform_models: frozenset[str] = frozenset()
    address_file: Path | None = None

    @classmethod
    def of_task(cls, task: AgentTask, attempt: Path | None) -> "Services":
        """Create the services of a job's agent; keys are in the attempt's folder."""
        path = None if attempt is None else attempt / AUXILIARY_KEYS_FILE
        keys = json.loads(path.read_text()) if path is not None and path.is_file() else {}
        places = {name: Path(folder) for name, folder in task.tool_environments.items()}
        return cls(
            places,
            task.auxiliary_models,
            keys,
            frozenset(task.hosts),
            frozenset(task.platform_models),
            None if attempt is None else attempt / ADDRESS_FILE,
        )

    @classmethod
    def of_job(cls, job: MappedJob) -> "Services":
        """Create the services of a configuration, for sessions that are run before training."""
        places = {name: Path(folder) for name, folder in job.environments.items()}
        found = {name: ChatEndpoint.model_validate(each) for name, each in job.auxiliary_models.items()}
        return cls(places, found, {}, frozenset(json.loads(os.environ.get(HOSTS_VARIABLE) or "[]")))

    @property
    def constants(self) -> dict[str, Any]:
        """What ``inside`` knows of them; ``ServicesUnusable`` where an environment is not there."""
        return {
            "ENVIRONMENTS": {
                name: [_describe(tool) for tool in self._read_tools(name)] for name in self.environments
            },
            "AUXILIARY": list(self.auxiliary),
        }

    async def answer(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a session asked for as plain data; ``ModelError`` gives the reason for a failure."""
        kind = call.get("of")
        if kind == "tool":
            return await self._call_tool(call["environment"], call["tool"], call["arguments"])
        if kind == "auxiliary":
            return await self._ask(call["name"], call["messages"], call["tools"], call["options"])
        if kind == "host":
            return await self._fetch(call["request"])
        raise ModelError(f"unknown call {kind!r}")

    async def warm_up(self) -> None:
        """Ask each of the other models once, which loads it; ``ServicesUnusable`` where that fails."""
        hello = [{"role": "user", "content": "hello"}]
        for name in self.auxiliary:
            try:
                await self._ask(name, hello, [], {"max_tokens": 1})
            except ModelError as error:
                raise ServicesUnusable(f"The auxiliary model '{name}' cannot be used: {error}.") from None

    def _read_tools(self, name: str) -> list[ToolSchema]:
        try:
            return environments.read_manifest(self.environments[name]).tools
        except environments.BadRequest as error:
            raise ServicesUnusable(f"The environment '{name}' cannot be used: {error}") from None

    async def _call_tool(self, name: str, tool: str, arguments: Any) -> dict[str, Any]:
        if name not in self.environments or not isinstance(arguments, dict):
            raise ModelError(f"the job has no environment {name!r}")
        try:
            found = await asyncio.to_thread(environments.call, self.environments[name], tool, arguments)
        except environments.BadRequest as error:
            return {"result": str(error), "error": "BAD_ARGUMENTS", "ends_episode": False}
        return found.model_dump(mode="json", include={"result", "error", "ends_episode"})

    async def _ask(self, name: str, messages: Any, tools: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        endpoint = self.auxiliary.get(name)
        if endpoint is None:
            raise ModelError(f"the job has no auxiliary model {name!r}")
        body = {"model": endpoint.model, "messages": messages, **({"tools": tools} if tools else {})}
        body |= {key: options[key] for key in _PASSED_ON if options.get(key) is not None}
        key = self.keys.get(name)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        clock = asyncio.get_running_loop().time
        deadline, patient_until = clock() + endpoint.timeout_s, None
        async with httpx.AsyncClient(timeout=endpoint.timeout_s) as client:
            while True:
                address = self._find_address(name, endpoint)
                try:
                    answer = await client.post(f"{address}/chat/completions", json=body, headers=headers)
                except httpx.HTTPError as error:
                    patient_until = patient_until or min(deadline, clock() + _AWAY_S)
                    is_moving = name in self.platform_models and isinstance(error, _AWAY)
                    if is_moving and clock() < patient_until:
                        await asyncio.sleep(_AWAY_RETRY_S)
                        continue
                    raise ModelError(f"the model {name} is not responding: {type(error).__name__}") from None
                patient_until = None
                if answer.status_code == _STARTING and clock() <= deadline:
                    await asyncio.sleep(_RETRY_S)
                elif answer.is_success or self._find_address(name, endpoint) == address:
                    return read_completion(name, answer)

    def _find_address(self, name: str, endpoint: ChatEndpoint) -> str:
        """Find a model's address; the platform's own is read again, as the API may have been restarted."""
        if name in self.platform_models and self.address_file is not None:
            try:
                address = read_address(self.address_file)
            except (OSError, ValueError) as error:
                log.warning("the API's address could not be read: %s", error)
                address = None
            if address is not None:
                return f"{address.rstrip('/')}{OPENAI_PREFIX}"
        return endpoint.base_url.rstrip("/")

    async def _fetch(self, request: Mapping[str, Any]) -> dict[str, Any]:
        address, method = str(request["url"]), str(request["method"]).upper()
        self._check_host(address)
        if method not in _METHODS:
            raise ModelError(f"the method must be one of {', '.join(_METHODS)}, not {method[:20]}")
        body, given = request["body"], request["json"]
        if body is not None and not isinstance(body, str):
            raise ModelError("the request body must be a string; use json= for other data")
        content = json.dumps(given) if given is not None else body
        if content is not None and len(str(content)) > _MAX_BYTES:
            raise ModelError(f"a request can be at most {_MAX_BYTES // 1024**2} MiB")
        headers = {
            str(name): str(value)
            for name, value in request["headers"].items()
            if str(name).lower() not in _OWN_HEADERS
        } | {"Accept-Encoding": "identity"}
        if given is not None:
            headers.setdefault("Content-Type", "application/json")
        timeout_s = min(max(float(request["timeout"]), 0.1), _MAX_TIMEOUT_S)
        try:
            # Not to another host: redirects are answers.
            async with (
                httpx.AsyncClient(timeout=timeout_s, follow_redirects=False) as client,
                client.stream(method, address, content=content, headers=headers) as answer,
            ):
                received = await _read(answer)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ModelError(f"{address[:200]} is not responding: {type(error).__name__}: {error}") from None
        text = received.decode(answer.encoding or "utf-8", "replace")
        return {"status": answer.status_code, "headers": dict(answer.headers), "text": text}

    def _check_host(self, address: str) -> None:
        try:
            parts = urlsplit(address)
            port = parts.port or _PORTS.get(parts.scheme)
        except ValueError as error:
            raise ModelError(f"{address[:200]!r} is not a valid URL: {error}") from None
        host = parts.hostname or ""
        names = {f"{host}:{port}", *([host] if port == _PORTS.get(parts.scheme) else [])}
        if parts.scheme not in _PORTS or parts.username is not None or not names & self.hosts:
            granted = ", ".join(sorted(self.hosts)) or "none"
            raise ModelError(
                f"the host {host or address[:100]} is not allowed for workflows (allowed: {granted});"
                " an administrator can add hosts to TRELLIS_WORKFLOW_HOSTS"
            )


NO_SERVICES = Services()


def read_completion(name: str, answer: httpx.Response) -> dict[str, Any]:
    """Convert a chat completion to the reply for a workflow; ``ModelError`` for anything else."""
    if answer.status_code != httpx.codes.OK:
        raise ModelError(f"the model {name} returned HTTP {answer.status_code}: {answer.text[:300]}")
    try:
        told = answer.json()
        choice, usage = told["choices"][0], told.get("usage") or {}
        message = choice["message"]
        calls = [
            {
                "id": str(call["id"]),
                "name": str(call["function"]["name"]),
                "arguments": json.loads(call["function"]["arguments"] or "{}"),
            }
            for call in message.get("tool_calls") or ()
        ]
    except (ValueError, KeyError, TypeError, LookupError) as error:
        raise ModelError(f"the model {name} returned an invalid completion: {error}") from None
    text = str(message.get("content") or "")
    return {
        "text": text,
        "raw": text,
        "tool_calls": calls,
        "finish_reason": str(choice.get("finish_reason") or "stop"),
        "prompt_tokens": int(usage.get("prompt_tokens") or 0),
        "completion_tokens": int(usage.get("completion_tokens") or 0),
    }


def _describe(tool: ToolSchema) -> dict[str, Any]:
    return tool.model_dump(mode="json", include={"name", "description", "parameters"})


async def _read(answer: httpx.Response) -> bytes:
    """Read the raw response up to the size limit; compressed ones are refused as they may expand."""
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise ModelError("the host returned a compressed response that was not requested")
    received = b""
    async for chunk in answer.aiter_raw():
        received += chunk
        if len(received) > _MAX_BYTES:
            raise ModelError(f"the host returned more than {_MAX_BYTES // 1024**2} MiB")
    return received
