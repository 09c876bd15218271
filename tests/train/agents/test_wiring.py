"""From a job's agent to verl's agent loops, and what is refused before the engine starts."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf
from trellis_contracts.agents import AgentTask
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import JobSpec, ModelSource
from trellis_testing.episodes import ScriptedServer, loop_arguments, make_tool_tokenizer
from trellis_train.agents.linksearch.generate import generate
from trellis_train.agents.linksearch.loop import LinkSearchLoop
from trellis_train.agents.preflight import check_agent
from trellis_train.agents.starter import make_tokenizer
from trellis_train.agents.unusable import AgentUnusable
from trellis_train.agents.wiring import LOOPS, loop_overrides
from trellis_train.rollout import worker


def make_spec(folder: Path, agent: AgentTask | None) -> JobSpec:
    return JobSpec(
        job_id="job_1",
        attempt=1,
        name="agents",
        recipe="linksearch",
        engine=Engine.VERL_PPO,
        platform="cpu",
        gpus=1,
        seed=0,
        params={},
        engine_overrides=[],
        model=ModelSource(model_id="model", path=str(folder / "model")),
        attempt_dir=str(folder),
        checkpoint_dir=str(folder / "checkpoints"),
        ingest_url="http://127.0.0.1:9",
        agent=agent,
    )


def linksearch(environment: Path | None, **options: Any) -> AgentTask:
    path = None if environment is None else str(environment)
    return AgentTask(kind="linksearch", environment_path=path, options=options)


def test_the_agents_loop_becomes_verls_default(tmp_path: Path) -> None:
    overrides = loop_overrides(make_spec(tmp_path, linksearch(tmp_path / "env", max_turns=3)))

    agent = "actor_rollout_ref.rollout.agent"
    assert overrides[0] == f"{agent}.default_agent_loop=linksearch"
    assert overrides[1].startswith(f"{agent}.agent_loop_config_path=")
    (entry,) = yaml.safe_load((tmp_path / "agent_loop.yaml").read_text())
    assert entry == {
        "name": "linksearch",
        "_target_": LOOPS["linksearch"],
        "environment_path": str(tmp_path / "env"),
        "options": {"max_turns": 3},
        "log_folder": str(tmp_path / "rollout_logs"),
    }


def test_a_job_without_an_agent_stays_as_it_was(tmp_path: Path) -> None:
    assert loop_overrides(make_spec(tmp_path, None)) == []
    assert list(tmp_path.iterdir()) == []


def test_a_loop_that_keeps_nothing_is_made_once_a_worker(tmp_path: Path) -> None:
    generate(tmp_path, profiles=30, train=2, evaluation=1, seed=1)
    tokenizer = make_tool_tokenizer()
    arguments = loop_arguments(ScriptedServer(tokenizer, []), tokenizer)
    (entry,) = OmegaConf.create(
        [{"name": "linksearch", "_target_": LOOPS["linksearch"], "environment_path": str(tmp_path)}]
    )

    first = worker.instantiate_agent_loop(entry, **arguments)
    second = worker.instantiate_agent_loop(entry, **arguments)
    other = worker.instantiate_agent_loop(entry, **{**arguments, "server_manager": SimpleNamespace()})

    assert isinstance(first, LinkSearchLoop)
    assert first is second
    assert other is not first


def test_an_agent_that_can_act_passes(tmp_path: Path) -> None:
    generate(tmp_path, profiles=30, train=2, evaluation=1, seed=1)

    write_tokenizer(tmp_path / "model")

    check_agent(make_spec(tmp_path, linksearch(tmp_path)))


def write_tokenizer(folder: Path, template: str | None = None) -> None:
    tokenizer = make_tokenizer(["find Ada"] * 3, vocabulary=300)
    tokenizer.chat_template = template or tokenizer.chat_template
    tokenizer.save_pretrained(folder)


def test_a_model_that_shows_no_tools_is_refused_or_given_a_template_that_does(tmp_path: Path) -> None:
    generate(tmp_path, profiles=20, train=1, evaluation=1, seed=1)
    write_tokenizer(tmp_path / "model", "{% for message in messages %}{{ message['content'] }}{% endfor %}")
    asked = make_spec(tmp_path, linksearch(tmp_path, tool_template="hermes"))

    with pytest.raises(AgentUnusable, match="does not support tools"):
        check_agent(make_spec(tmp_path, linksearch(tmp_path)))
    check_agent(asked)

    assert any(
        each.startswith("actor_rollout_ref.model.custom_chat_template='{%- set shown")
        for each in loop_overrides(asked)
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "database is missing"),
        (b"not a database at all" * 100, "cannot be used"),
        (b"", "no such table"),
    ],
)
def test_a_database_that_is_none_is_refused_before_training(
    content: bytes | None, message: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "profiles.db").write_bytes(content)

    with pytest.raises(AgentUnusable, match=message):
        check_agent(make_spec(tmp_path, linksearch(tmp_path)))


def test_no_environment_and_wrong_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(AgentUnusable, match="has no environment"):
        check_agent(make_spec(tmp_path, linksearch(None)))
    with pytest.raises(AgentUnusable, match="unknown link search option: turns"):
        check_agent(make_spec(tmp_path, linksearch(tmp_path, turns=3)))
    with pytest.raises(AgentUnusable, match="mode must be one of"):
        check_agent(make_spec(tmp_path, linksearch(tmp_path, mode="loud")))
    with pytest.raises(AgentUnusable, match="max_turns must be at least 1"):
        check_agent(make_spec(tmp_path, linksearch(tmp_path, max_turns=0)))
