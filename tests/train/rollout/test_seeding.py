"""Requests have seeds of their own, the same in every run."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from trellis_testing.rollout_client import RolloutServer, connect_client
from trellis_train.rollout.sample_ids import PromptNames, sort_samples
from trellis_train.rollout.seeding import derive_seed, is_seeded, seed_session, seed_turns

TRAIN = {"step": 3, "validate": False}
VALIDATE = {"step": 3, "validate": True}


def seed_of(trajectory: dict[str, Any] = TRAIN, seed: int = 42, **row: Any) -> int:
    row = {"uid": "p", "session_id": 0, "raw_prompt": [{"content": "1+1="}], "index": 5} | row
    return seed_session({"temperature": 1.0}, seed=seed, trajectory=trajectory, row=row)["seed"]


def test_a_seed_is_the_same_on_every_machine() -> None:
    assert derive_seed(42, 1, "p", 0) == 1274400406


def test_the_responses_of_a_group_have_different_seeds() -> None:
    assert len({seed_of(session_id=session) for session in range(100)}) == 100


def test_step_prompt_and_the_runs_seed_all_count() -> None:
    seeds = {seed_of(), seed_of(uid="q"), seed_of(seed=43), seed_of({"step": 4, "validate": False})}

    assert len(seeds) == 4


def test_a_validation_prompt_is_known_by_its_row_and_not_by_its_random_name() -> None:
    assert seed_of(VALIDATE, uid="random-1") == seed_of(VALIDATE, uid="random-2")
    assert seed_of(VALIDATE, index=6) != seed_of(VALIDATE)


def test_a_greedy_response_among_sampled_ones_is_the_likeliest_of_one_and_has_a_seed() -> None:
    row = {"uid": "p-greedy", "session_id": 0, "raw_prompt": []}
    greedy = {"temperature": 0, "top_k": -1, "top_p": 1.0}

    params = seed_session(greedy, seed=42, trajectory=TRAIN, row=row)

    assert (params["temperature"], params["top_k"]) == (1.0, 1)
    assert "seed" in params
    assert greedy["temperature"] == 0
    assert seed_session(greedy, seed=42, trajectory=VALIDATE, row=row)["temperature"] == 0


@pytest.mark.parametrize("full_determinism", [False, True])
def test_every_turn_of_a_session_draws_anew_and_is_a_request_of_its_own(full_determinism: bool) -> None:
    server, params = RolloutServer(), {"seed": 7}
    client = connect_client(server, full_determinism=full_determinism)
    seed_turns(client)

    async def take_turns() -> None:
        for prompt in ([1], [1, 2, 3]):
            await client.generate(request_id="r", prompt_ids=prompt, sampling_params=params)

    asyncio.run(take_turns())

    assert [request["prompt_ids"] for request in server.asked] == [[1], [1, 2, 3]]
    assert len({request["sampling_params"]["seed"] for request in server.asked}) == 2
    assert len({request["request_id"] for request in server.asked}) == 2
    assert params == {"seed": 7}


@pytest.mark.parametrize(
    ("platform", "is_asked", "expected"), [("cpu", False, True), ("", False, False), ("", True, True)]
)
def test_on_gpus_only_full_determinism_seeds_requests(
    monkeypatch: pytest.MonkeyPatch, platform: str, is_asked: bool, expected: bool
) -> None:
    monkeypatch.setenv("VERL_PLATFORM", platform)

    assert is_seeded(SimpleNamespace(full_determinism=is_asked)) is expected


def test_prompts_are_named_after_their_place_in_the_step() -> None:
    names = PromptNames()

    assert names.take(1, 2) == ["0000001-0000000", "0000001-0000001"]
    assert names.take(1, 1) == ["0000001-0000002"]
    assert names.take(2, 1) == ["0000002-0000000"]


def test_samples_are_trained_on_in_the_order_of_prompts_and_not_of_arrival() -> None:
    class Batch:
        def __init__(self) -> None:
            self.keys = ["b_0_0", "a_10_0", "a_2_0"]

        def reorder(self, indexes: list[int]) -> None:
            self.keys = [self.keys[index] for index in indexes]

    batch = Batch()
    sort_samples(batch)

    assert batch.keys == ["a_2_0", "a_10_0", "b_0_0"]
