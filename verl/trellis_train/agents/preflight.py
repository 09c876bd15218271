"""Looks at what an agent's episodes need before its engine starts: a mistake shows minutes earlier."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

from trellis_contracts.agents import AgentTask
from trellis_contracts.attempt import PREPARED_FOLDER, TRAIN_FILE
from trellis_contracts.spec import JobSpec

from trellis_train.agents.episode.tool_template import OWN, choose_template
from trellis_train.agents.linksearch.generate import DATABASE_FILE
from trellis_train.agents.linksearch.guard import SqlGuard
from trellis_train.agents.linksearch.options import BadOptions, Options
from trellis_train.agents.tune import options as tune_options
from trellis_train.agents.tune.isolation import WorkflowRunner
from trellis_train.agents.tune.program import WorkflowSource, WorkflowUnusable
from trellis_train.agents.tune.services import Services, ServicesUnusable
from trellis_train.agents.tune.trial import read_prepared_tasks, try_sessions
from trellis_train.agents.unusable import AgentUnusable


def check_agent(spec: JobSpec) -> None:
    """Raise ``AgentUnusable`` where the job's agent could not act."""
    if spec.agent is not None and spec.agent.kind in _CHECKS:
        _CHECKS[spec.agent.kind](spec.agent)
        if spec.agent.kind == "linksearch":
            choose_template(spec.model.path, _tool_template(spec.agent))


def _tool_template(task: AgentTask) -> str:
    return str(task.options.get("tool_template") or OWN)


def check_linksearch(task: AgentTask) -> None:
    """Check the options, and that the database of profiles answers."""
    try:
        Options.parse(task.options)
    except BadOptions as error:
        raise AgentUnusable(f"Invalid agent options: {error}.") from error
    if task.environment_path is None:
        raise AgentUnusable("The agent has no environment: it needs a profile database.")
    path = Path(task.environment_path) / DATABASE_FILE
    try:
        reply = SqlGuard(path).run("SELECT linkedin_handle FROM profiles LIMIT 1")
    except FileNotFoundError as error:
        raise AgentUnusable(f"The agent's database is missing: {error}.") from error
    except sqlite3.Error as error:
        raise AgentUnusable(f"The agent's database {path} cannot be used: {error}.") from error
    if reply.error is not None or not reply.rows:
        raise AgentUnusable(f"The agent's database {path} contains no profiles. {reply.message}".rstrip())


def check_first_sessions(spec: JobSpec) -> None:
    """Raise ``AgentUnusable`` where a workflow fails for each of the first rows before any reply of a model.

    What comes after a reply may be the scripted model's doing, and is left to the run.
    """
    if spec.agent is None or spec.agent.workflow_path is None:
        return
    tasks = read_prepared_tasks(Path(spec.attempt_dir) / PREPARED_FOLDER / TRAIN_FILE)
    limits = tune_options.Options.parse(spec.agent.options).as_limits()
    try:
        services = Services.of_task(spec.agent, Path(spec.attempt_dir))
        asyncio.run(services.warm_up())  # else loading it would be the first sessions' time
        trials = try_sessions(read_source(spec.agent), tasks, limits, services)
    except (WorkflowUnusable, ServicesUnusable) as error:
        raise AgentUnusable(str(error)) from error
    if any(trial.has_tools for trial in trials):
        choose_template(spec.model.path, _tool_template(spec.agent))
    if not trials or not all(trial.is_certain for trial in trials):
        return
    failure = trials[0].failure
    keys = ", ".join(tasks[0])
    raise AgentUnusable(
        f"The workflow fails before it calls the model on all of the first {len(trials)} rows: {failure}. "
        f"Keys of its task: {keys}."
    )


def read_source(task: AgentTask) -> WorkflowSource:
    """Read the job's workflow. Raises ``WorkflowUnusable``."""
    return WorkflowSource.read(str(task.workflow_path), packages=task.workflow_packages)


def check_tune(task: AgentTask) -> None:
    """Check the options, and that the workflow loads in the sandbox."""
    if task.workflow_path is None:
        raise AgentUnusable("The agent has no workflow.")
    try:
        limits = tune_options.Options.parse(task.options).as_limits()
        source = read_source(task)
        if source.needs_auxiliary and not task.auxiliary_models:
            raise AgentUnusable(
                f"The workflow '{source.name}' has the parameter auxiliary_models, but the job sets none."
            )
        runner = WorkflowRunner(source, limits, Services.of_task(task, None))
    except ServicesUnusable as error:
        raise AgentUnusable(str(error)) from error
    except tune_options.BadOptions as error:
        raise AgentUnusable(f"Invalid agent options: {error}.") from error
    except WorkflowUnusable as error:
        raise AgentUnusable(str(error)) from error
    try:
        runner.check()
    except WorkflowUnusable as error:
        raise AgentUnusable(str(error)) from error
    finally:
        runner.close()


_CHECKS: dict[str, Callable[[AgentTask], None]] = {"linksearch": check_linksearch, "tune": check_tune}
