"""Agents: what a job is told of its episodes, and how an episode is told of turn by turn."""

from typing import Any, Literal

from pydantic import Field

from trellis_contracts.endpoints import ChatEndpoint
from trellis_contracts.recipe import Strict

#: The agent loops of ``trellis_train.agents``.
AgentKind = Literal["linksearch", "tune"]
Role = Literal["system", "user", "assistant", "tool"]


class AgentTask(Strict):
    """How the rollouts of a job are made, where they are episodes of several turns."""

    kind: AgentKind
    #: Folder of the environment that the tools work on (``EnvironmentManifest`` lies in it); None for none.
    environment_path: str | None = None
    #: The user's workflow: a Python file, or the folder of a package; only of ``tune``.
    workflow_path: str | None = None
    #: Folder in which a package's requirements were installed, by their hash; None for this machine's cache.
    workflow_packages: str | None = None
    #: Folders of environments whose tools the workflow may call, by the name that it calls them by.
    tool_environments: dict[str, str] = Field(default_factory=dict)
    #: Models that the workflow may call and that are not trained, by its names for them; their keys lie in
    #: the attempt's ``AUXILIARY_KEYS_FILE``.
    auxiliary_models: dict[str, ChatEndpoint] = Field(default_factory=dict)
    #: Those of them that the platform serves itself: asked where its API is now, which may move.
    platform_models: list[str] = Field(default_factory=list)
    #: Hosts that the workflow may ask, as ``name`` or ``name:port``; it has no network of its own.
    hosts: list[str] = Field(default_factory=list)
    #: Of the agent's own (mode, max_turns ...), as its recipe's parameters say.
    options: dict[str, Any] = Field(default_factory=dict)


class ToolCall(Strict):
    """One call of a tool by the model."""

    #: As the model wrote it; empty where the call could not be parsed.
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    #: What the model was shown; None where the call was not run.
    result: str | None = None
    #: Rows or items of the result, where a count means something.
    result_count: int | None = None
    #: Code of the failure (``TIMEOUT``, ``DENIED``, ``BAD_CALL`` ...).
    error: str | None = None
    duration_s: float = Field(default=0.0, ge=0)


class Turn(Strict):
    """One message of an episode, in the order in which the model saw them."""

    role: Role
    text: str
    tokens: int = Field(ge=0)
    #: Whether the loss is taken over its tokens (mask 1).
    is_trained: bool
    #: Of an assistant's turn, in the order in which they stand in its text.
    calls: list[ToolCall] = Field(default_factory=list)
    #: Of generating it, or of running the tool; None where nothing was waited for.
    duration_s: float | None = Field(default=None, ge=0)


class Trajectory(Strict):
    """A full episode in readable form."""

    turns: list[Turn]
    #: Why it ended: ``answered``, ``turns``, ``context``, ``parse``, ``workflow_error:KeyError`` ...
    stop_reason: str
    duration_s: float = Field(ge=0)
    #: Why the episode gave no reward: the error, and the traceback through the workflow's own lines.
    error: str | None = None
    #: Texts were shortened or turns left out to fit the transport.
    is_shortened: bool = False


class ToolSchema(Strict):
    """A tool as described to the model: an OpenAI function without the envelope."""

    name: str
    description: str
    #: JSON Schema of its arguments.
    parameters: dict[str, Any]
    #: Calling it ends the episode.
    ends_episode: bool = False


class EnvironmentManifest(Strict):
    """``environment.json`` in an environment's folder: what it holds, for those without its code."""

    kind: str
    #: What it was made with (seed, counts ...): the same parameters give the same bytes.
    parameters: dict[str, Any]
    #: What is in it by name (profiles, queries, tools ...).
    counts: dict[str, int]
    tools: list[ToolSchema]
    #: Rows to train on and to measure with, by split: files relative to the folder (JSON lines, ``verl-rl``).
    datasets: dict[str, str] = Field(default_factory=dict)
    #: Of every file but this one, by its path relative to the folder.
    sha256: dict[str, str]
