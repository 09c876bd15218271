"""Link Search as an agent loop of verl: episodes against a database of profiles.

One loop serves all episodes of a worker; what belongs to an episode is in its transcript.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput

from trellis_train.agents.episode.alternation import render_users_in_turn
from trellis_train.agents.episode.rendering import remember_renderings
from trellis_train.agents.episode.transcript import Transcript
from trellis_train.agents.linksearch.calls import open_desk
from trellis_train.agents.linksearch.logs import describe_rollout, log_path, write_log
from trellis_train.agents.linksearch.options import Options
from trellis_train.agents.linksearch.play import Played, play
from trellis_train.agents.linksearch.query_rows import parse_handles
from trellis_train.agents.linksearch.rubric import assess
from trellis_train.agents.linksearch.scoring import (
    describe_episode,
    judge,
    look_at_first_try,
    report,
    report_answer,
)
from trellis_train.hooks.step_responses import EARNED_KEY
from trellis_train.rollout.synchronous_executor import Inline

#: Characters of an episode that travel with its sample.
MAX_TRAJECTORY_CHARACTERS = 24_000


class LinkSearchLoop(AgentLoopBase):
    """Plays the episodes of rows that ``rows.query_row`` made."""

    #: Made once a worker (``rollout.worker``).
    is_shared = True

    def __init__(
        self,
        *args: Any,
        environment_path: str,
        options: Mapping[str, Any] | None = None,
        log_folder: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        # Rendering a turn takes less than handing it to a thread.
        self.loop = Inline()
        remember_renderings(self.continuous_token_builder)
        render_users_in_turn(self.continuous_token_builder, self.tokenizer)
        self.options = Options.parse(options or {})
        self.desk = open_desk(Path(environment_path))
        self.log_folder = Path(log_folder) if log_folder and self.options.detailed_logging else None

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Play the row's episode and score it."""
        transcript = Transcript(self, tools=self.desk.tools.schemas)
        played = await play(
            transcript,
            self.desk,
            [dict(message) for message in row["raw_prompt"]],
            self.options,
            request_id=uuid4().hex,
            sampling_params=sampling_params,
        )
        return await self._settle(transcript, played, row)

    async def _settle(
        self, transcript: Transcript, played: Played, row: Mapping[str, Any]
    ) -> AgentLoopOutput:
        gold = parse_handles((row.get("reward_model") or {}).get("ground_truth"))
        rubric = assess(played.as_episode(gold, self.options, transcript))
        first = look_at_first_try(played, rubric.gold_handles)
        score = judge(rubric, first, self.options)
        is_all_trained = self.options.mode == "rollout"
        whole = transcript.trajectory(played.stop_reason, is_all_trained=is_all_trained)
        tokens = len(transcript.prompt_ids) + len(transcript.response_ids)
        output = transcript.to_output(
            reward=score.total,
            tools_s=played.tools_s,
            is_all_trained=is_all_trained,
            extra_fields={
                "reward_extra_info": report(rubric, first, score, self.options, tokens=tokens),
                EARNED_KEY: {"answer_score": report_answer(rubric, first, self.options), **score.parts},
                "agent": describe_episode(played, rubric, whole.duration_s, tokens=tokens),
                "trajectory": transcript.trajectory(
                    played.stop_reason,
                    is_all_trained=is_all_trained,
                    most_characters=MAX_TRAJECTORY_CHARACTERS,
                ).model_dump(mode="json"),
            },
        )
        if self.log_folder is not None:
            query = _describe_query(row)
            path = log_path(
                self.log_folder, step=query["step"], query_id=query["query_id"], session=query["rollout"]
            )
            content = describe_rollout(
                query=query, transcript=transcript, trajectory=whole, rubric=rubric, first=first,
                score=score, options=self.options, mask=output.response_mask,
            )  # fmt: skip
            await asyncio.to_thread(write_log, path, content)
        return output


def _describe_query(row: Mapping[str, Any]) -> dict[str, Any]:
    """Describe which rollout of which row this is."""
    info = row.get("extra_info") or {}
    question = [message["content"] for message in row["raw_prompt"] if message["role"] == "user"]
    return {
        "query_id": str(info.get("id") or info.get("index") or row.get("index", 0)),
        "query": str(question[-1]) if question else "",
        "split": str(info.get("split") or "train"),
        "step": int(row.get("global_steps", 0)),
        "rollout": int(row.get("session_id", 0)),
    }
