"""What the processes of an attempt may see: written beside its spec, before it is submitted."""

from pathlib import Path

from trellis_api.core.settings import Settings
from trellis_contracts.agents import AgentTask
from trellis_contracts.attempt import (
    ISOLATION_FILE,
    REWARDS_FILE,
    SPEC_FILE,
    TEMPORARY_FOLDER,
    TOKEN_FILE,
    locate_job,
    locate_replay,
)
from trellis_contracts.evaluation import HarnessOrder
from trellis_contracts.recipe import Engine
from trellis_contracts.rewards import RewardResources
from trellis_contracts.spec import JobSpec

from trellis_workers.core.isolation import make_rules

#: Of what the cluster's processes share: sockets, logs and the token that opens it.
_RAY_VARIABLES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_HUB_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def write_rules(settings: Settings, spec: JobSpec) -> Path:
    """Write the rules of an attempt; the file."""
    attempt_dir = Path(spec.attempt_dir)
    inputs = inputs_of(spec)
    if (attempt_dir / REWARDS_FILE).exists():
        inputs += inputs_of_rewards(
            RewardResources.model_validate_json((attempt_dir / REWARDS_FILE).read_bytes())
        )
    uses_ray = spec.engine == Engine.VERL_PPO
    if uses_ray:
        inputs.append(str(settings.data_root / "ray" / "token"))
    path = attempt_dir / ISOLATION_FILE
    rules = make_rules(
        settings,
        inputs,
        writable=_list_writable(settings, spec),
        locked=[path, attempt_dir / SPEC_FILE, attempt_dir / TOKEN_FILE],
        temporary=attempt_dir / TEMPORARY_FOLDER,
        kept_variables=[*(_RAY_VARIABLES if uses_ray else ()), *(_HUB_VARIABLES if _uses_hub(spec) else ())],
    )
    rules.write(path)
    return path


def inputs_of(spec: JobSpec) -> list[str]:
    """Return the paths that a job reads: those in the path fields of its spec, and no others."""
    evaluation, served = spec.evaluation, spec.serve
    checkpoints = [task.checkpoint for task in (evaluation, served) if task is not None]
    found = [
        spec.model.path,
        *(
            path
            for data in (spec.train_data, spec.validation_data)
            if data is not None
            for path in data.paths
        ),
        spec.resume_from,
        spec.export.checkpoint_path if spec.export is not None else None,
        *(checkpoint.path for checkpoint in checkpoints if checkpoint is not None),
        *(_inputs_of_agent(spec.agent) if spec.agent is not None else ()),
    ]
    for benchmark in evaluation.benchmarks if evaluation is not None else []:
        found.append(benchmark.scorer_path)
        if benchmark.files is not None:
            found += [path for paths in benchmark.files.paths.values() for path in paths]
    return [path for path in found if path]


def inputs_of_rewards(resources: RewardResources) -> list[str]:
    """Return the files that a mixture of rewards reads: user files and models."""
    files = [file.path for file in resources.files.values()]
    return files + [model.path for model in resources.models.values() if model.path]


def _inputs_of_agent(agent: AgentTask) -> list[str | None]:
    # A workflow is named with its function: ``<file or folder>:<function>``.
    workflow = agent.workflow_path.partition(":")[0] if agent.workflow_path else None
    return [agent.environment_path, workflow, agent.workflow_packages, *agent.tool_environments.values()]


def _list_writable(settings: Settings, spec: JobSpec) -> list[str]:
    # Earlier attempts and checkpoints lie there as well: a job is resumed from them.
    folders = [str(locate_job(settings.data_root, spec.job_id)), spec.checkpoint_dir]
    if spec.engine == Engine.VERL_PPO:
        folders.append(str(settings.data_root / "ray" / "head"))
    if spec.params.get("use_online_continual"):
        folders.append(str(locate_replay(settings.data_root)))
    if spec.export is not None:
        folders.append(spec.export.output_path)
    if spec.evaluation is not None:
        folders += [path for path in (spec.evaluation.output_dir, spec.evaluation.hub_cache) if path]
    return folders


def _uses_hub(spec: JobSpec) -> bool:
    """Tell whether it downloads files itself, as tasks of lm-evaluation-harness do."""
    tasks = spec.evaluation.benchmarks if spec.evaluation is not None else []
    return any(isinstance(task.order, HarnessOrder) for task in tasks)
