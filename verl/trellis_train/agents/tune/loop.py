"""A person's workflow as an agent loop of verl: one session, one training sample for each of its branches.

A session that fails teaches nothing: its one sample has no trained token, and no part in its group's
baseline (``hooks.branches``).
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from trellis_contracts.agents import AgentTask
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput

from trellis_train.agents.episode.alternation import render_users_in_turn
from trellis_train.agents.episode.rendering import remember_renderings
from trellis_train.agents.episode.transcript import PromptTooLong, Transcript
from trellis_train.agents.tune.isolation import SessionFailed, SessionResult, WorkflowRunner
from trellis_train.agents.tune.model import RecordingChatModel
from trellis_train.agents.tune.options import NO_PARSER, Options
from trellis_train.agents.tune.program import WorkflowSource
from trellis_train.agents.tune.services import Services
from trellis_train.agents.tune.tasks import read_task
from trellis_train.hooks.event_spool import ATTEMPT_DIR_VARIABLE
from trellis_train.hooks.session_failures import FAILURE_KEY, Failure
from trellis_train.hooks.step_responses import EARNED_KEY
from trellis_train.rewards.error_notes import ErrorNotes
from trellis_train.rewards.mixture import ERROR_KEY
from trellis_train.rollout.synchronous_executor import Inline

#: Characters of a session that travel with its samples.
MAX_TRAJECTORY_CHARACTERS = 24_000
NO_CALL = "the workflow never called the model, so there is nothing to train on"


class TuneLoop(AgentLoopBase):
    """Runs the sessions of one workflow."""

    #: Made once a worker (``rollout.worker``): the sandbox's processes serve many sessions.
    is_shared = True

    def __init__(
        self,
        *args: Any,
        workflow_path: str,
        workflow_packages: str | None = None,
        services: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        for name in ("environment_path", "log_folder"):  # of other agents
            kwargs.pop(name, None)
        super().__init__(*args, **kwargs)
        self.loop = Inline()
        remember_renderings(self.continuous_token_builder)
        render_users_in_turn(self.continuous_token_builder, self.tokenizer)
        self._options = Options.parse(options or {})
        source = WorkflowSource.read(workflow_path, packages=workflow_packages)
        named = os.environ.get(ATTEMPT_DIR_VARIABLE)
        attempt = Path(named) if named else None
        task = AgentTask.model_validate({"kind": "tune", **_plain(services or {})})
        self._runner = WorkflowRunner(source, self._options.as_limits(), Services.of_task(task, attempt))
        self._notes = ErrorNotes(attempt)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        """Run one session; return its samples, with the branch that was completed last at the end."""
        if self._options.reply_tokens is not None:
            sampling_params = {**sampling_params, "max_tokens": self._options.reply_tokens}
        has_thinking = self._options.reasoning_parser != NO_PARSER
        model = RecordingChatModel(self, sampling_params, has_thinking=has_thinking)
        blank = Transcript(self)  # for its clock, and for a session that leaves nothing else
        try:
            result = await self._runner.run(read_task(row), model)
            if not model.trained_branches:
                raise SessionFailed(NO_CALL, kind="no model call")
        except SessionFailed as error:
            self._notes.add("workflow", str(error))
            return [await self._settle_failed(blank, model, error, row)]
        return self._settle(blank, model, result)

    def close(self) -> None:
        """End the sandbox's processes."""
        self._runner.close()

    def _settle(
        self, blank: Transcript, model: RecordingChatModel, result: SessionResult
    ) -> list[AgentLoopOutput]:
        branches = model.trained_branches
        agent = _count(model, blank.duration_s)
        agent |= {f"workflow/{name}": value for name, value in result.metrics.items()}
        outputs = []
        for branch in branches:
            extra: dict[str, Any] = {
                "reward_extra_info": _report(result.reward, branches=len(branches)),
                EARNED_KEY: result.metrics,
                "agent": agent,
                "trajectory": None,
                FAILURE_KEY: None,
            }
            if branch is branches[-1]:
                extra["trajectory"] = _tell(branch.transcript, "answered")
            generated = model.waited_s if branch is branches[-1] else 0.0
            outputs.append(
                branch.transcript.to_output(
                    reward=result.reward, extra_fields=extra, generation_s=generated,
                    tools_s=max(0.0, blank.duration_s - model.waited_s) if generated else 0.0,
                )
            )  # fmt: skip
        return outputs

    async def _settle_failed(
        self, blank: Transcript, model: RecordingChatModel, error: SessionFailed, row: Mapping[str, Any]
    ) -> AgentLoopOutput:
        last = model.last_branch
        transcript = blank if last is None else last.transcript
        if last is None:
            # Its end is kept, which is enough for a sample that nobody learns from.
            with suppress(PromptTooLong):
                await transcript.begin([dict(message) for message in row["raw_prompt"]])
        reason = "timeout" if error.is_timeout else f"workflow_error:{error.kind}"
        told = _tell(transcript, reason) | {"error": error.traceback or str(error)}
        report = _report(0.0, branches=0) | {"workflow_error": 1.0, ERROR_KEY: 1.0}
        output = transcript.to_output(
            reward=0.0,
            extra_fields={
                "reward_extra_info": report,
                EARNED_KEY: {},
                "agent": _count(model, blank.duration_s) | {"answered": 0.0, "workflow_error": 1.0},
                "trajectory": told,
                FAILURE_KEY: Failure(error.kind, str(error), error.traceback).as_dict(),
            },
        )
        output.response_mask = [0] * len(output.response_mask)
        return output


def _plain(services: Mapping[str, Any]) -> dict[str, Any]:
    """Convert to dictionaries and lists: Hydra passes its own kinds of them."""
    found = OmegaConf.to_container(OmegaConf.create(dict(services)))
    return {str(name): value for name, value in dict(found).items()} if isinstance(found, dict) else {}


def _report(reward: float, *, branches: int) -> dict[str, float]:
    """Report values beside the reward; the same keys for every sample of a run, as verl demands."""
    return {"score": reward, "branches": float(branches), "workflow_error": 0.0, ERROR_KEY: 0.0}


def _count(model: RecordingChatModel, duration_s: float) -> dict[str, float]:
    """Count turns, calls and branches for the metrics of agents."""
    spans = [span for branch in model.branches for span in branch.transcript.spans]
    return {
        "turns": float(sum(span.is_sampled for span in spans)),
        "calls": float(sum(len(span.calls) for span in spans)),
        "branches": float(len(model.branches)),
        "missing_calls": float(model.missing_calls),
        "episode_s": duration_s,
        "answered": 1.0,
        "workflow_error": 0.0,
    }


def _tell(transcript: Transcript, reason: str) -> dict[str, Any]:
    whole = transcript.trajectory(reason, most_characters=MAX_TRAJECTORY_CHARACTERS)
    return whole.model_dump(mode="json")
