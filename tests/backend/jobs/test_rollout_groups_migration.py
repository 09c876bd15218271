"""Responses from before there were groups: each prompt of each step is counted on the way up."""

from alembic import command
from sqlmodel import select
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.migrations import make_config
from trellis_api.jobs import repository
from trellis_api.jobs.models import Job, RolloutGroup, RolloutSample
from trellis_api.jobs.rollouts.groups import hash_prompt

BEFORE = "0020_workflow_packages"


def test_groups_are_counted_from_the_responses_that_are_kept(unmigrated: Database) -> None:
    with unmigrated.engine.begin() as connection:
        command.upgrade(make_config(connection), "head")
    with unmigrated.write() as session:
        job = Job(
            id=new_id("job"),
            name="old",
            recipe="grpo",
            model_id="mdl_aaaaaaaaaaaa",
            dataset_id="ds_aaaaaaaaaaaa",
        )
        repository.add_job(session, job=job, tags=())
        for group, score in [("a", 1.0), ("b", 0.0), ("a", 1.0), ("b", None)]:
            parts = {} if score is None else {"acc": score}
            session.add(
                RolloutSample(
                    job_id=job.id, attempt=1, step=3, split="train", group=group, prompt=f"prompt {group}",
                    response="r", score=score, reward_parts=parts, response_tokens=5,
                )
            )  # fmt: skip

    with unmigrated.engine.begin() as connection:
        command.downgrade(make_config(connection), BEFORE)
        command.upgrade(make_config(connection), "head")

    with unmigrated.read() as session:
        first, second = session.exec(select(RolloutGroup).order_by(RolloutGroup.group)).all()
    assert (first.count, first.mean, first.correct, first.is_uniform, first.tokens) == (2, 1.0, 2, True, 10)
    assert (second.count, second.scored, second.correct, second.is_uniform) == (2, 1, None, False)
    assert (first.prompt_key, first.excerpt) == (hash_prompt("prompt a"), "prompt a")
