"""The demonstration on a pretrained model: it learns to sort customer messages, and everyone can see how.

Supervised training on a few worked examples teaches the form of an answer, GRPO against a reward that a
program checks teaches the rest. Answers before and after are those that the GRPO job recorded when it
measured itself on held-out messages.
"""

import time
from typing import Any

from trellis_cli.client import ApiClient, connect_to
from trellis_cli.demo.steps import (
    TAG,
    ensure_dataset,
    ensure_model,
    find_or_get,
    last_checkpoint,
    measured_accuracies,
    run_job,
    say,
    write_once,
)
from trellis_cli.services.platform import Platform

SHOWN = 3
#: Before the customer's message in a prompt.
MESSAGE_MARK = "Message: "
#: Enough to answer in the form that is asked for, and to be right now and then.
SFT_PARAMS: dict[str, Any] = {
    "total_steps": 12,
    "batch_size": 8,
    "max_length": 192,
    "learning_rate": 5.0e-5,
    "validation_rows": 0,
}
GRPO_PARAMS: dict[str, Any] = {
    "total_steps": 24,
    "batch_size": 16,
    # One update of a step, on the policy's own responses: the rollout engine's log-probabilities are its own.
    "mini_batch_size": 16,
    "old_log_probs": "sampler",
    "group_size": 4,
    "max_prompt_length": 128,
    "max_response_length": 16,
    "learning_rate": 1.0e-5,
    # Adam's first updates are of full size whatever the gradient: one team would get all answers.
    "warmup_ratio": 0.2,
    # Sampled as in training: what GRPO raises is the expected reward of the policy's own answers.
    "validation_temperature": 1.0,
    "validate_before": True,
    "validate_every": 8,
}


def run_tickets_demo(platform: Platform, *, model: str, seed: int) -> dict[str, Any]:
    """Run both jobs; return the held-out accuracies of the GRPO job and some answers before and after."""
    started = time.monotonic()
    client = connect_to(platform)
    folder = platform.settings.data_root / "demo" / f"tickets-seed-{seed}"
    say(f"generating the messages (seed {seed})")
    write_once(folder, ("--seed", str(seed), "--tickets", str(folder)))
    datasets = {
        name: ensure_dataset(client, folder / f"{name}.jsonl", f"tickets-{name}-seed{seed}")
        for name in ("sft", "rl_train", "rl_validation")
    }
    schema = (folder / "schema.json").read_text()
    sft = run_job(
        client,
        {
            "name": f"demo: SFT of {model}, seed {seed}",
            "recipe": "sft",
            "model": find_or_get(client, model),
            "dataset": datasets["sft"],
            "params": SFT_PARAMS,
            "seed": seed,
            "tags": [TAG],
        },
    )
    trained = ensure_model(client, f"{model}-tickets-{sft}", last_checkpoint(client, sft))
    reward = {"name": "json_schema", "weight": 1.0, "options": {"schema": schema, "equals_answer": True}}
    grpo = run_job(
        client,
        {
            "name": f"demo: GRPO of {model}, seed {seed}",
            "recipe": "grpo",
            "model": trained,
            "dataset": datasets["rl_train"],
            "validation_dataset": datasets["rl_validation"],
            "params": {**GRPO_PARAMS, "rewards": [reward]},
            "seed": seed,
            "tags": [TAG],
        },
    )
    before, after = measured_accuracies(client, grpo)
    return {
        "seconds": round(time.monotonic() - started, 1),
        "accuracy_before": before,
        "accuracy_after": after,
        "answers": compare_answers(client, grpo),
        "jobs": [sft, grpo],
    }


def compare_answers(client: ApiClient, job: str) -> list[dict[str, Any]]:
    """Return some held-out prompts with the correct answer and the answers at the first and last measurement.

    Prompts whose answer became right come first.
    """
    measured = [each["step"] for each in client.get(f"/jobs/{job}/rollout-steps", split="validation")]
    first, last = (read_answers(client, job, step) for step in (min(measured), max(measured)))
    rows = [
        {
            "prompt": _message_of(prompt),
            "right": last[prompt]["ground_truth"],
            "before": first[prompt]["response"],
            "after": last[prompt]["response"],
            "gain": last[prompt]["score"] - first[prompt]["score"],
        }
        for prompt in first
        if prompt in last
    ]
    return sorted(rows, key=lambda row: -row["gain"])[:SHOWN]


def _message_of(prompt: str) -> str:
    """Extract the customer's message from a prompt rendered with the chat template."""
    return prompt.partition(MESSAGE_MARK)[2].removesuffix("assistant\n").removesuffix("assistant").strip()


def read_answers(client: ApiClient, job: str, step: int) -> dict[str, dict[str, Any]]:
    """Read the recorded validation responses of a step, by prompt."""
    found = client.pages(f"/jobs/{job}/rollouts", step=step, split="validation")
    return {str(each["prompt"]): each for each in found}
