"""From a job's agent to verl's agent loops: which class plays the episodes, and what it is made with."""

from pathlib import Path

import yaml
from trellis_contracts.spec import JobSpec
from trellis_recipes.hydra_text import text

from trellis_train.agents.episode.tool_template import HERMES, choose_template

#: The loop of each kind of agent (``trellis_contracts.agents.AgentKind``).
LOOPS = {
    "linksearch": "trellis_train.agents.linksearch.loop.LinkSearchLoop",
    "tune": "trellis_train.agents.tune.loop.TuneLoop",
}
LOOP_FILE = "agent_loop.yaml"
#: Of a workflow's task, what it may use beside the policy.
SERVICES = ("tool_environments", "auxiliary_models", "platform_models", "hosts")
#: Beside the folder of checkpoints, so that the attempts of a job share it.
LOG_FOLDER = "rollout_logs"
_TEMPLATE = "actor_rollout_ref.model.custom_chat_template"
_AGENT = "actor_rollout_ref.rollout.agent"


def loop_overrides(spec: JobSpec) -> list[str]:
    """Return Hydra overrides that make the job's rollouts episodes; none for a job without an agent.

    Writes the file that they name into the attempt's folder.
    """
    if spec.agent is None:
        return []
    path = _write_loop_file(spec)
    return [
        f"{_AGENT}.default_agent_loop={spec.agent.kind}",
        f"{_AGENT}.agent_loop_config_path={text(str(path))}",
        *_template_overrides(spec),
    ]


def _template_overrides(spec: JobSpec) -> list[str]:
    """Return the override with the chat template that shows tools, if the job asks for it.

    Checkpoints keep this template.
    """
    if spec.agent is None or spec.agent.options.get("tool_template") != HERMES:
        return []
    return [f"{_TEMPLATE}={text(choose_template(spec.model.path, HERMES))}"]


def log_folder(spec: JobSpec) -> Path:
    """Return the folder where a job's agent writes what it is asked to log."""
    return Path(spec.checkpoint_dir).parent / LOG_FOLDER


def _write_loop_file(spec: JobSpec) -> Path:
    agent = spec.agent
    if agent is None:
        raise ValueError("the job has no agent")
    entry = {
        "name": agent.kind,
        "_target_": LOOPS[agent.kind],
        "environment_path": agent.environment_path,
        "options": agent.options,
        "log_folder": str(log_folder(spec)),
    }
    if agent.workflow_path is not None:
        entry["workflow_path"] = agent.workflow_path
        entry["workflow_packages"] = agent.workflow_packages
        entry["services"] = agent.model_dump(mode="json", include=set(SERVICES))
    path = Path(spec.attempt_dir) / LOOP_FILE
    path.write_text(yaml.safe_dump([entry], allow_unicode=True), encoding="utf-8")
    return path
